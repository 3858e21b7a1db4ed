"""What the native library's arithmetic costs in quality: every quant type, against the reference on the same file.

    python benchmarks/quant_types.py --folder /tmp/models [--model FILE.gguf] [--ctx 512] [--chunks 4]

The built-in model is quantised anew to each type by llama.cpp (needs llama-cpp-python), all its columns counted equally
important. Prints both perplexities and by how much they differ.
"""

import argparse
import ctypes
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from engine_worker import bindings  # noqa: E402

from benchmarks.kv_quality import chats, machine  # noqa: E402
from localrun.base.request import Backend, LoadOptions  # noqa: E402
from localrun.base.resources import resource  # noqa: E402
from localrun.diagnose.perplexity import perplexity  # noqa: E402
from localrun.engine.load import load  # noqa: E402
from localrun.formats.detect import open_model_file  # noqa: E402

FILE_TYPES = {
    "F32": 0, "F16": 1, "BF16": 32,
    "Q4_0": 2, "Q4_1": 3, "Q5_0": 8, "Q5_1": 9, "Q8_0": 7,
    "Q2_K": 10, "Q3_K_M": 12, "Q4_K_M": 15, "Q5_K_M": 17, "Q6_K": 18,
    "IQ1_S": 24, "IQ1_M": 31, "IQ2_XXS": 19, "IQ2_XS": 20, "IQ2_S": 28, "IQ3_XXS": 23, "IQ3_S": 26,
    "IQ4_NL": 25, "IQ4_XS": 30, "TQ1_0": 36, "TQ2_0": 37,
}  # fmt: skip


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
        quantise(asked.model, path, FILE_TYPES[name], bindings())
        infos = open_model_file(path).tensors.values()
        held = ", ".join(sorted({info.qtype for info in infos if len(info.shape) == 2}))
        native, reference = (measure(path, backend, text, asked.ctx, asked.chunks) for backend in ("cpu", "reference"))
        print(f"| {name} | {held} | {native:.4f} | {reference:.4f} | {native / reference - 1:+.3%} |", flush=True)


def measure(path: Path, backend: Backend, text: str, ctx: int, chunks: int) -> float:
    model = load(LoadOptions(path, backend=backend, ctx=ctx))
    try:
        return perplexity(model, text, ctx, chunks).ppl
    finally:
        model.engine.close()


def quantise(source: Path, target: Path, file_type: int, llama: Any) -> None:
    parameters = llama.llama_model_quantize_default_params()
    parameters.ftype, parameters.allow_requantize = file_type, True
    tensors = open_model_file(source).tensors.values()
    importance = equal_importance([(info.name, info.shape[-1]) for info in tensors if len(info.shape) == 2], llama)
    parameters.imatrix = ctypes.cast(importance, type(parameters.imatrix))
    if llama.llama_model_quantize(str(source).encode(), str(target).encode(), ctypes.byref(parameters)):
        raise SystemExit(f"llama.cpp could not quantise {source} to {target.name}")


def equal_importance(matrices: Sequence[tuple[str, int]], llama: Any) -> Any:
    """A list of (name, data, size) that ends with a nameless one; the smallest types refuse to be made without it."""
    entries = (llama.llama_model_imatrix_data * (len(matrices) + 1))()
    for entry, (name, n_columns) in zip(entries, matrices, strict=False):
        entry.name, entry.size = name.encode(), n_columns
        entry.data = (ctypes.c_float * n_columns)(*[1.0] * n_columns)
    return entries


if __name__ == "__main__":
    main()
