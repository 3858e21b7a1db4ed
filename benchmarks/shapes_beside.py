"""Memory of whole models beside what was predicted, and their perplexity beside llama.cpp's on the same text.

    python -m benchmarks.shapes_beside MODEL.gguf … [--ctx 256] [--chunks 3]

A model fills a context of 1,024 tokens, in a process of its own, and answers. Perplexity is that of llama.cpp with an
f32 cache on one thread; with random weights it only says whether both compute the same. Needs llama-cpp-python.
"""

import argparse
from pathlib import Path

from localrun_testing.llama_peer import llama_peer

from benchmarks.fit_peak import Case, in_a_process
from benchmarks.kv_quality import chats, machine
from localrun.base.request import LoadOptions
from localrun.diagnose.perplexity import perplexity
from localrun.engine.load import load

FILLED = 1024  # tokens


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--ctx", type=int, default=256)
    parser.add_argument("--chunks", type=int, default=3)
    asked = parser.parse_args()
    print(f"{machine()}\n\n| model | predicted MiB | measured MiB | off by | perplexity | llama.cpp's | off by |")
    print("|---|---|---|---|---|---|---|")
    text = chats(100)
    for path in asked.models:
        found = in_a_process(path.parent, Case(str(path.absolute()), FILLED, "f16"))
        if "error" in found:
            raise SystemExit(f"{path.name}: {found['error']}")
        predicted, measured = found["predicted"], found["measured"]
        ours, theirs = perplexities(path, text, asked.ctx, asked.chunks)
        print(
            f"| {path.stem} | {predicted / 2**20:,.1f} | {measured / 2**20:,.1f} | {predicted / measured - 1:+.1%}"
            f" | {ours:,.1f} | {theirs:,.1f} | {ours / theirs - 1:+.3%} |",
            flush=True,
        )


def perplexities(path: Path, text: str, ctx: int, chunks: int) -> tuple[float, float]:
    """Ours and llama.cpp's."""
    with llama_peer(path, ctx) as peer:
        theirs = peer.perplexity(text, chunks)
    model = load(LoadOptions(path, ctx=ctx, backend="cpu", kv="f16"))
    try:
        return perplexity(model, text, ctx, chunks).ppl, theirs
    finally:
        model.engine.close()


if __name__ == "__main__":
    main()
