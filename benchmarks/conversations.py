"""Long conversations on a warm engine, each request again on a cold one, and the same on llama.cpp.

    python -m benchmarks.conversations [--models builtin tiny-thinker gemma4] [--kv f16 q8] [--turns 40] [--seeds 0 1]
                                       [--folder DIR] [--threads N] [--json FILE]

    python -m benchmarks.conversations --depth 8192 [--shapes qwen3-0.6b gemma-3-1b] [--types Q4_0] [--kv f16 q8]
                                       [--rounds 5]    what a request costs at the end of a long chat (deep_turns.py)

A player (chat_player.py) asks, regenerates, edits, branches and switches between two chats. Every id of every answer
must be what an engine without a prefix cache gives; the exit status says so. llama.cpp reads the same prompts and is
fed the same answers, through its library as its simplest programs use it: one sequence, of which it keeps the longest
common beginning. Where a window has moved on it has to begin anew.
"""

import argparse
import json
import statistics
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path

from benchmarks import ROOT
from benchmarks.chat_player import Played, play
from benchmarks.deep_turns import DeepChat
from benchmarks.engine_worker import bindings
from benchmarks.llama_chat import LlamaChat, PeerTurn
from benchmarks.synthetic_models import SHAPES, model_file, write_f16
from benchmarks.tiny_architectures import TINY, tiny_file
from localrun.base.processors import usual_threads
from localrun.base.request import BackendName, KVCodecName, LoadOptions
from localrun.client.local import LocalClient

BUILTIN = ROOT / "localrun/builtin/localrun-tiny.gguf"
MODELS = ("builtin", "tiny-thinker", "tiny-windows", "tiny-states")
CODECS: tuple[KVCodecName, ...] = ("f32", "f16", "q8", "k8v4", "q4")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=(*MODELS, *TINY))
    parser.add_argument("--kv", nargs="+", default=list(CODECS), choices=CODECS)
    parser.add_argument("--turns", type=int, default=40)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1])
    parser.add_argument("--folder", type=Path, default=Path("/tmp/models"), help="where model files are made and kept")
    parser.add_argument("--threads", type=int, default=usual_threads())
    parser.add_argument("--depth", type=int, help="tokens of a long chat, on models of real shapes")
    parser.add_argument("--shapes", nargs="+", default=["qwen3-0.6b", "gemma-3-1b"], choices=SHAPES)
    parser.add_argument("--types", nargs="+", default=["Q4_0"])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path, help="also write every request to this file")
    options = parser.parse_args()
    if options.depth:
        print_depths(options)
        return
    rows = []
    print("| model | cache | requests | tokens of prompts | computed | of these ahead | reused | replayed | TTFT |"
          " cold TTFT | ids |\n|" + "---|" * 11)  # fmt: skip
    everything: dict[str, list[Played]] = {}  # with the first codec
    for model in options.models:
        path = model_path(model, options.folder)
        for kv in options.kv:
            turns = [turn for seed in options.seeds for turn in played(path, kv, seed, options.turns, options.threads)]
            everything.setdefault(model, turns)
            rows += [{"model": model, "kv": kv, **asdict(turn)} for turn in turns]
            print(row(model, kv, turns), flush=True)
    print_moves([turn for turns in everything.values() for turn in turns])
    print_peer(everything, options)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")
    sys.exit(not all(row["equal"] for row in rows))


def print_depths(options: argparse.Namespace) -> None:
    print("| model | type | cache | case | prompt | reused | computed | TTFT | ÷ new tokens alone |\n|" + "---|" * 9)
    for shape in options.shapes:
        for qtype in options.types:
            path = deep_file(options.folder, shape, qtype)
            for kv in options.kv:
                load_options = LoadOptions(path, ctx=options.depth + 512, kv=kv, threads=options.threads)
                with LocalClient(load_options) as client:
                    chat = DeepChat(client.model.engine, options.depth, client.model.plan.config.vocab_size)
                    for deep in chat.measure(options.rounds):
                        ratio = "" if deep.ratio is None else f"{deep.ratio:.2f}"
                        print(
                            f"| {shape} | {qtype} | {kv} | {deep.case} | {deep.prompt:,} | {deep.reused:.1%} |"
                            f" {deep.computed:,.0f} | {deep.ttft_ms:,.1f} ms | {ratio} |",
                            flush=True,
                        )


def deep_file(folder: Path, shape: str, qtype: str) -> Path:
    """The file of a real shape; only f16 can be written without llama.cpp."""
    path = folder / f"{shape}-{qtype}.gguf"
    if path.exists():
        return path
    if qtype != "F16":
        return model_file(folder, shape, qtype, bindings())
    folder.mkdir(parents=True, exist_ok=True)
    write_f16(path, SHAPES[shape])
    return path


def model_path(name: str, folder: Path) -> Path:
    if name == "builtin":
        return BUILTIN
    path = folder / f"{name}-F16.gguf"
    folder.mkdir(parents=True, exist_ok=True)
    if not path.exists() and name in TINY:
        return tiny_file(name, path)
    if not path.exists():
        write_f16(path, SHAPES[name])
    return path


def ctx_of(path: Path) -> int:
    return 1024 if path == BUILTIN else 3072


@contextmanager
def clients(
    path: Path, kv: KVCodecName, threads: int, backend: BackendName = "auto", ctx: int | None = None
) -> Iterator[tuple[LocalClient, LocalClient]]:
    """A warm and a cold engine."""
    options = LoadOptions(path, ctx=ctx or ctx_of(path), kv=kv, threads=threads, backend=backend)
    with LocalClient(options) as first, LocalClient(replace(options, prefix_cache=False)) as second:
        yield first, second


def played(path: Path, kv: KVCodecName, seed: int, turns: int, threads: int = 1) -> list[Played]:
    """A conversation on fresh engines."""
    with clients(path, kv, threads) as (warm, cold):
        return list(play(warm, cold, seed, turns))


def row(model: str, kv: str, turns: Sequence[Played]) -> str:
    prompts = sum(len(turn.prompt_ids) for turn in turns)
    ahead = sum(turn.background for turn in turns)
    wrong = sum(not turn.equal for turn in turns)
    computed = ahead + sum(turn.computed for turn in turns)
    return (
        f"| {model} | {kv} | {len(turns)} | {prompts:,} | {computed:,} | {ahead:,} |"
        f" {sum(turn.cached for turn in turns) / prompts:.1%} | {sum(turn.replayed for turn in turns):,} |"
        f" {statistics.median(turn.ttft_ms for turn in turns):.1f} ms |"
        f" {statistics.median(turn.cold_ttft_ms for turn in turns):.1f} ms |"
        f" {'all equal' if not wrong else f'{wrong} ANSWERS DIFFER'} |"
    )


def print_moves(turns: Sequence[Played]) -> None:
    print("\n| move | requests | reused | recomputed a request |\n|" + "---|" * 4)
    for move in dict.fromkeys(turn.move for turn in turns):
        some = [turn for turn in turns if turn.move == move]
        prompts, cached = sum(len(turn.prompt_ids) for turn in some), sum(turn.cached for turn in some)
        print(f"| {move} | {len(some)} | {cached / prompts:.1%} | {(prompts - cached) / len(some):.0f} |")
    print("\nWhy no more was reused:")
    for reason, n in Counter(plain(turn.note) for turn in turns).most_common():
        print(f"  {n:4} × {reason or 'nothing was in the way: the rest is new'}")


def plain(note: str) -> str:
    """Without numbers, so that reasons can be counted."""
    return " ".join("N" if any(c.isdigit() for c in word) else word for word in note.split())


def print_peer(everything: dict[str, list[Played]], options: argparse.Namespace) -> None:
    """The conversations with an f16 cache, or whatever came first, on llama.cpp."""
    print("\n| model | tokens of prompts | computed: localrun | llama.cpp | TTFT, median, mean: localrun | llama.cpp |")
    print("|" + "---|" * 6)
    for model, turns in everything.items():
        path = model_path(model, options.folder)
        try:
            peer = LlamaChat(path, ctx_of(path), options.threads)
        except (ImportError, OSError) as error:
            print(f"\nllama.cpp is not here to compare with: {str(error).splitlines()[0]}")
            return
        theirs = [turn for i in range(0, len(turns), options.turns) for turn in peer.play(
            (turn.prompt_ids, turn.answer_ids) for turn in turns[i : i + options.turns])]  # fmt: skip
        peer.close()
        ours = sum(turn.computed + turn.background for turn in turns)
        print(
            f"| {model} | {sum(len(turn.prompt_ids) for turn in turns):,} | {ours:,} |"
            f" {sum(turn.computed for turn in theirs):,} | {times(turns)} | {times(theirs)} |"
        )


def times(turns: Sequence[Played] | Sequence[PeerTurn]) -> str:
    waits = [turn.ttft_ms for turn in turns]
    return f"{statistics.median(waits):.1f} ms, {statistics.mean(waits):.1f} ms"


if __name__ == "__main__":
    main()
