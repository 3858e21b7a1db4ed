"""Is the predicted memory what a process really takes? Configurations at random, each in a process of its own.

    python -m benchmarks.fit_peak [--folder FOLDER] [--model GGUF] [--cut NAME] [--cases N] [--seed S]

Models of random weights are written to FOLDER (0.7 GB), unless a file is given, or models of the catalogue to be cut to
a few layers (cut_shapes.py; `--cut all` for each kind; 8 GB, and it wants transformers). Each configuration loads one,
fills its context with one chat after another, and answers a block of tokens in each; its peak is compared with the plan
made before the weights were read: what is said of so many chats, and, where they use up all that is set aside for
them, the most that is ever taken. Exit code 1 when one is off by more than 3 %.
"""

import argparse
import itertools
import json
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tools.gguf_write import Encoded, write_gguf

TOLERANCE = 0.03
CODECS = ("f16", "q8", "k8v4", "q4")
MOST_TOKENS = 20_000  # that a configuration computes


@dataclass(frozen=True)
class Shape:
    """A small model of some architecture."""

    arch: str
    hidden: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    ffn: int
    vocab: int
    qtype: str
    window: int = 0


SHAPES = {
    "llama-40m": Shape("llama", 512, 8, 8, 2, 64, 1536, 32_000, "Q8_0"),
    "llama-mha": Shape("llama", 768, 12, 12, 12, 64, 2048, 32_000, "Q4_0"),
    "qwen3-150m": Shape("qwen3", 768, 12, 12, 4, 128, 2304, 151_936, "Q8_0"),
    "qwen3-mqa": Shape("qwen3", 640, 10, 10, 1, 128, 2048, 64_000, "F16"),
    "gemma3-200m": Shape("gemma3", 640, 12, 4, 1, 256, 2048, 262_144, "Q8_0", window=512),
}


@dataclass(frozen=True)
class Case:
    """One process."""

    shape: str  # of SHAPES, or the path of a file
    ctx: int
    kv: str
    chats: int = 1
    window: int | None = None
    threads: int = 2
    backend: str = "cpu"

    def __str__(self) -> str:
        name, window = Path(self.shape).stem, f" window {self.window}" if self.window else ""
        return f"{name} {self.ctx}{window} {self.kv} x {self.chats}, {self.threads} threads, {self.backend}"


def cases(seed: int, shapes: list[str]) -> Iterator[Case]:
    """Without an end; every fifth on the reference, which takes all of its cache at once."""
    chance = random.Random(seed)
    while True:
        ctx = chance.choice((512, 1000, 2048, 4096, 8192))
        yield Case(
            shape=chance.choice(shapes),
            ctx=ctx,
            kv=chance.choice(CODECS),
            chats=chance.randint(1, max(1, min(5, MOST_TOKENS // ctx))),
            window=chance.choice((None, None, 256, 1024)),
            threads=chance.choice((1, 2)),
        )
        if chance.random() < 0.2 and shapes[0] in SHAPES:
            yield Case("llama-40m", 512, chance.choice(CODECS), chance.randint(1, 3), backend="reference")


def main() -> None:
    """Run all cases and print predicted and measured side by side."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "localrun-fit-peak")
    parser.add_argument("--model", type=Path, action="append", metavar="GGUF", help="may be given several times")
    parser.add_argument("--cut", nargs="+", default=[], metavar="NAME", help="of the catalogue; or all")
    parser.add_argument("--cases", type=int, default=24, metavar="N")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.one:
        print(json.dumps(measure(asked.folder, Case(**json.loads(asked.one)))))
        return
    worst, failed = 0.0, 0
    files = [*(asked.model or ()), *cut_files(asked.folder, asked.cut)]
    shapes = [str(path.absolute()) for path in files] or list(SHAPES)
    chosen = list(itertools.islice(cases(asked.seed, shapes), asked.cases))
    for case in chosen:
        if case.shape in SHAPES:
            write_model(asked.folder, case.shape)
        found = in_a_process(asked.folder, case)
        if "error" in found:
            print(f"{case!s:52} {found['error']}", flush=True)
            failed += 1
            continue
        error = found["predicted"] / found["measured"] - 1
        worst = max(worst, abs(error))
        parts = "  ".join(f"{name} {found[name] / 2**20:6.1f}" for name in ("overhead", "weights", "kv", "scratch"))
        print(
            f"{case!s:52} predicted {found['predicted'] / 2**20:7.1f} MiB  measured {found['measured'] / 2**20:7.1f}"
            f"  {error:+6.1%}   ({parts})",
            flush=True,
        )
        failed += abs(error) > TOLERANCE
    print(f"{len(chosen) - failed} of {len(chosen)} within {TOLERANCE:.0%}; the worst is off by {worst:.1%}")
    sys.exit(failed > 0)


def cut_files(folder: Path, names: list[str]) -> list[Path]:
    """Written where they are not there yet."""
    if not names:
        return []
    from benchmarks.cut_shapes import CUT, write_cut

    folder.mkdir(parents=True, exist_ok=True)
    files = {name: folder / f"{name}-cut-F16.gguf" for name in (CUT if names == ["all"] else names)}
    for name, path in files.items():
        if not path.exists():
            write_cut(path, name)
    return list(files.values())


def in_a_process(folder: Path, case: Case) -> dict[str, Any]:
    """What `measure` says when it runs alone."""
    command = [sys.executable, "-m", "benchmarks.fit_peak", "--folder", str(folder), "--one", json.dumps(vars(case))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return {"error": done.stderr.strip().splitlines()[-1]}
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def measure(folder: Path, case: Case) -> dict[str, int]:
    """Load, fill the context, answer; bytes predicted and measured."""
    from localrun.base.machine import peak_rss
    from localrun.base.request import LoadOptions
    from localrun.engine.generation import GenerationRequest
    from localrun.engine.load import load
    from localrun.engine.sampler import SamplerSettings

    path = model_path(folder, case.shape) if case.shape in SHAPES else Path(case.shape)
    options: Any = {"backend": case.backend, "kv": case.kv}
    loaded = load(LoadOptions(path=path, ctx=case.ctx, threads=case.threads, window=case.window, **options))
    chance = random.Random(0)
    for _ in range(case.chats):
        prompt = tuple(chance.randrange(300) for _ in range(case.ctx - 72))
        loaded.engine.scheduler.cost.rows_per_second = 1e12  # whole chunks, as on a faster machine
        request = GenerationRequest(prompt, 70, frozenset(), SamplerSettings(temperature=0.0), seed=0)
        for _ in loaded.engine.submit(request):
            pass
    measured, plan = peak_rss(), loaded.plan
    predicted = plan.peak_after(case.chats)
    assert predicted <= plan.peak_bytes
    loaded.engine.close()
    return {
        "predicted": predicted,
        "measured": measured,
        "overhead": plan.overhead_bytes,
        "weights": plan.weights_bytes,
        "kv": plan.kv_after(case.chats),
        "scratch": plan.scratch_bytes,
    }


def model_path(folder: Path, name: str) -> Path:
    return folder / f"{name}.gguf"


def write_model(folder: Path, name: str) -> None:
    """The file of a shape, unless it is there."""
    path, shape = model_path(folder, name), SHAPES[name]
    if path.exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    chance = np.random.default_rng(0)
    tensors: dict[str, Any] = {"token_embd.weight": matrix(chance, shape.qtype, shape.vocab, shape.hidden)}
    queries, keys = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
    sizes = {
        "attn_q": (queries, shape.hidden),
        "attn_k": (keys, shape.hidden),
        "attn_v": (keys, shape.hidden),
        "attn_output": (shape.hidden, queries),
        "ffn_gate": (shape.ffn, shape.hidden),
        "ffn_up": (shape.ffn, shape.hidden),
        "ffn_down": (shape.hidden, shape.ffn),
    }
    norms = {"attn_norm": shape.hidden, "ffn_norm": shape.hidden}
    if shape.arch in ("qwen3", "gemma3"):
        norms |= {"attn_q_norm": shape.head_dim, "attn_k_norm": shape.head_dim}
    if shape.arch == "gemma3":
        norms |= {"post_attention_norm": shape.hidden, "post_ffw_norm": shape.hidden}
    for layer in range(shape.layers):
        for norm, size in norms.items():
            tensors[f"blk.{layer}.{norm}.weight"] = ones(size)
        for part, (rows, columns) in sizes.items():
            tensors[f"blk.{layer}.{part}.weight"] = matrix(chance, shape.qtype, rows, columns)
    tensors["output_norm.weight"] = ones(shape.hidden)
    write_gguf(path.with_suffix(".part"), metadata(shape), tensors)
    path.with_suffix(".part").rename(path)


def metadata(shape: Shape) -> dict[str, Any]:
    """Key-values with a byte-level vocabulary of the right size."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    letters = [*map(chr, printable), *(chr(256 + i) for i in range(256 - len(printable)))]
    tokens = [*letters, "ab", *(f"w{i}" for i in range(shape.vocab - len(letters) - 2)), "<|end|>"]
    key = shape.arch
    values: dict[str, Any] = {
        "general.architecture": key,
        f"{key}.context_length": 32_768,
        f"{key}.embedding_length": shape.hidden,
        f"{key}.block_count": shape.layers,
        f"{key}.feed_forward_length": shape.ffn,
        f"{key}.attention.head_count": shape.heads,
        f"{key}.attention.head_count_kv": shape.kv_heads,
        f"{key}.attention.key_length": shape.head_dim,
        f"{key}.attention.value_length": shape.head_dim,
        f"{key}.attention.layer_norm_rms_epsilon": 1e-6,
        f"{key}.rope.dimension_count": shape.head_dim,
        f"{key}.rope.freq_base": 1e6,
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "qwen2",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": [1] * (shape.vocab - 1) + [3],
        "tokenizer.ggml.merges": ["a b"],
        "tokenizer.ggml.eos_token_id": shape.vocab - 1,
    }
    if shape.window:
        values[f"{key}.attention.sliding_window"] = shape.window
    return values


def matrix(chance: np.random.Generator, qtype: str, rows: int, columns: int) -> Encoded:
    """Random weights of about 0.02."""
    if qtype == "F16":
        values = (chance.standard_normal((rows, columns), dtype=np.float32) * 0.02).astype(np.float16)
        return Encoded(qtype, (rows, columns), values.tobytes())
    n_codes = {"Q8_0": 32, "Q4_0": 16}[qtype]
    blocks = chance.integers(0, 256, (rows * columns // 32, 2 + n_codes), dtype=np.uint8)
    blocks[:, :2] = np.array([3e-4 if qtype == "Q8_0" else 4e-3], np.float16).view(np.uint8)
    return Encoded(qtype, (rows, columns), blocks.tobytes())


def ones(size: int) -> Encoded:
    return Encoded("F32", (size,), np.ones(size, np.float32).tobytes())


if __name__ == "__main__":
    main()
