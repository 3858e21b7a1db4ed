"""What the native library's arithmetic costs in quality: every quant type, against the reference on the same file.

    python benchmarks/quant_types.py --folder /tmp/models [--model FILE.gguf] [--ctx 512] [--chunks 4]

The built-in model is quantised anew to each type by llama.cpp (needs llama-cpp-python), all its columns counted equally
important. Prints both perplexities and by how much they differ.
"""

import argparse
import ctypes
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from engine_worker import bindings  # noqa: E402
from synthetic_models import FILE_TYPES, quantise  # noqa: E402

from benchmarks.kv_quality import chats, machine  # noqa: E402
from localrun.base.request import BackendName, LoadOptions  # noqa: E402
from localrun.base.resources import resource  # noqa: E402
from localrun.diagnose.perplexity import perplexity  # noqa: E402
from localrun.engine.load import load  # noqa: E402
from localrun.formats.detect import open_model_file  # noqa: E402


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, required=True, help="where the quantised files are made")
    parser.add_argument("--model", type=Path, default=resource("builtin/localrun-tiny.gguf"))
    parser.add_argument("--types", nargs="+", default=list(FILE_TYPES), choices=FILE_TYPES)
    parser.add_argument("--ctx", type=int, default=512)
    parser.add_argument("--chunks", type=int, default=4)
    asked = parser.parse_args()
    text = chats(100)
    print(f"{asked.model.name}, {asked.chunks} chunks of {asked.ctx}; {machine()}\n")
    print("| file type | matrices of | native | reference | difference |\n|---|---|---|---|---|")
    for name in asked.types:
        path = asked.folder / f"{asked.model.stem}-{name}.gguf"
        quantise(asked.model, path, name, bindings(), equal_importance(asked.model, bindings()))
        infos = open_model_file(path).tensors.values()
        held = ", ".join(sorted({info.qtype for info in infos if len(info.shape) == 2}))
        native, reference = (measure(path, backend, text, asked.ctx, asked.chunks) for backend in ("cpu", "reference"))
        print(f"| {name} | {held} | {native:.4f} | {reference:.4f} | {native / reference - 1:+.3%} |", flush=True)


def measure(path: Path, backend: BackendName, text: str, ctx: int, chunks: int) -> float:
    model = load(LoadOptions(path, backend=backend, ctx=ctx))
    try:
        return perplexity(model, text, ctx, chunks).ppl
    finally:
        model.engine.close()


def equal_importance(model: Path, llama: Any) -> Any:
    """For the smallest types, which refuse to be made without a word on the importance of columns."""
    matrices = [info for info in open_model_file(model).tensors.values() if len(info.shape) == 2]
    entries = (llama.llama_model_imatrix_data * (len(matrices) + 1))()
    for entry, info in zip(entries, matrices, strict=False):
        entry.name, entry.size = info.name.encode(), info.shape[-1]
        entry.data = (ctypes.c_float * entry.size)(*[1.0] * entry.size)
    return entries


if __name__ == "__main__":
    main()
