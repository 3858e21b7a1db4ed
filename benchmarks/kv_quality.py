"""What each KV codec costs in quality: a model with the codec against the same model with a baseline.

    python -m benchmarks.kv_quality [MODEL.gguf] [--ctx N] [--chunks N] [--baseline f16] [--text FILE]

Without MODEL the built-in one, without a text chats of the kind it was made for. Prints a table with the machine and
the date: mean KL divergence over the whole vocabulary (nats), share of equal first choices, and bytes a token.
"""

import argparse
import platform
from datetime import date
from pathlib import Path

from localrun.base.request import KVCodecName, LoadOptions
from localrun.base.resources import resource
from localrun.diagnose.perplexity import perplexity
from localrun.engine.load import load
from localrun.fit.bytes import kv_bytes_per_token
from localrun.ops.kv import KV_CODECS
from tools.builtin_data.compose import one_chat

CODECS: tuple[KVCodecName, ...] = ("f32", "f16", "q8", "k8v4", "q4")


def main() -> None:
    """Measure every codec and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("model", nargs="?", type=Path, default=resource("builtin/localrun-tiny.gguf"))
    parser.add_argument("--ctx", type=int, default=1024)
    parser.add_argument("--chunks", type=int, default=8)
    parser.add_argument("--baseline", default="f16")
    parser.add_argument("--backend", default="auto")
    parser.add_argument("--text", type=Path)
    asked = parser.parse_args()
    text = asked.text.read_text("utf-8") if asked.text else chats(200)
    rows = [measure(asked, codec, text) for codec in CODECS if codec != asked.baseline]
    print(f"{asked.model.name}, ctx {asked.ctx}, {asked.chunks} chunks, against {asked.baseline}; {machine()}")
    print(f"{'codec':6} {'perplexity':>10} {'mean KLD':>10} {'same top':>9} {'bytes a token':>14}")
    print("\n".join(rows))


def measure(asked: argparse.Namespace, codec: KVCodecName, text: str) -> str:
    """One line of the table."""
    model = load(LoadOptions(asked.model, backend=asked.backend, ctx=asked.ctx, kv=codec))
    try:
        found = perplexity(model, text, asked.ctx, asked.chunks, asked.baseline)
    finally:
        model.engine.close()
    assert found.comparison is not None
    kld, same = found.comparison.kld_mean, found.comparison.same_top1
    per_token = kv_bytes_per_token(model.plan.config, KV_CODECS[codec])
    return f"{codec:6} {found.ppl:10.4f} {kld:10.6f} {same:9.2%} {per_token:14,}"


def chats(count: int) -> str:
    """Chats of the kind the built-in model was made for, others than it was trained on."""
    talks = (one_chat(seed=1977, index=index) for index in range(count))
    return "\n\n".join("\n".join(message.content for message in talk) for talk in talks)


def machine() -> str:
    """Where and when."""
    names = [line.partition(": ")[2] for line in _cpu_info() if line.startswith("model name")]
    return f"{names[0] if names else platform.processor() or platform.machine()}, {date.today().isoformat()}"


def _cpu_info() -> list[str]:
    try:
        return Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return []


if __name__ == "__main__":
    main()
