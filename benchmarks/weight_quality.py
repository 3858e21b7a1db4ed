"""What precisions cost in quality: a model whose weights are rounded to each, against the same model unrounded.

    PYTHONPATH=… LOCALRUN_LLAMA_LIB=… python -m benchmarks.weight_quality MODEL.gguf [--ctx N] [--chunks N] [--types …]

Needs llama-cpp-python, whose encoders round and whose mixes of types are taken. Prints the mean KL divergence over the
whole vocabulary (nats), the share of equal first choices and the change of perplexity, on text of Python's manual.

MODEL is a small one that anybody has, and its own weights lie on the grid of its type, where rounding costs nothing. So
each is moved by up to half a step, at random, and what comes of that is the unrounded model.
"""

import argparse
import ctypes
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import exp, fsum
from pathlib import Path
from pydoc_data.topics import topics
from typing import Any

import numpy as np
import torch

from benchmarks.engine_worker import bindings
from benchmarks.kv_quality import machine
from benchmarks.synthetic_models import Shape, quantise, write_f16
from localrun.backends.registry import backends_for
from localrun.base.request import LoadOptions
from localrun.diagnose.perplexity import chunks_of, divergence, scored_rows
from localrun.engine.load import load_on
from localrun.engine.opened_model import OpenedModel, open_model
from localrun.formats.detect import open_model_file
from localrun.formats.quant import QUANT_TYPES
from localrun.formats.requantize import ENCODERS, PRECISIONS, VOCABULARY_NAMES, VOCABULARY_TYPE
from localrun.formats.source import TensorInfo, TensorSource
from localrun.model.headers import read_weight_refs
from localrun.model.recording import record_shapes

MIXES = (
    "Q8_0", "Q6_K", "Q5_K_M", "Q5_K_S", "Q5_1", "Q5_0", "Q4_K_M", "Q4_K_S", "Q4_1", "Q4_0", "IQ4_NL", "IQ4_XS",
    "Q3_K_L", "Q3_K_M", "Q3_K_S", "IQ3_S", "Q2_K",
)  # fmt: skip
GROUP = 32  # numbers that share a step in the model that is moved off its grid
BLOCK = 256  # numbers that are rounded together: matrices are rounded as one row of such blocks


@dataclass(frozen=True)
class Rounded:
    """`source` with its matrices as they are in `weights`, by name, f32."""

    source: TensorSource
    weights: Mapping[str, np.ndarray]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.source, name)

    @property
    def tensors(self) -> Mapping[str, TensorInfo]:
        return {name: self._as_read(info) for name, info in self.source.tensors.items()}

    def read(self, name: str, first_row: int = 0, n_rows: int | None = None) -> bytearray:
        if name not in self.weights:
            return self.source.read(name, first_row, n_rows)
        stop = None if n_rows is None else first_row + n_rows
        return bytearray(np.ascontiguousarray(self.weights[name][first_row:stop]).tobytes())

    def _as_read(self, info: TensorInfo) -> TensorInfo:
        if info.name not in self.weights:
            return info
        return replace(info, qtype="F32", nbytes=4 * self.weights[info.name].size)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("--ctx", type=int, default=512)
    parser.add_argument("--chunks", type=int, default=4)
    parser.add_argument("--types", nargs="+", default=[*MIXES, *PRECISIONS])
    asked = parser.parse_args()
    options = LoadOptions(asked.model, ctx=asked.ctx, disk_cache=0)
    opened = open_model(options)
    exact = unrounded(opened.source)
    text = "\n\n".join(topics[name] for name in sorted(topics))
    chunks = chunks_of(opened.text.tokenizer, text, asked.ctx)[: asked.chunks]
    truth = logits_of(options, opened, exact, chunks)
    n = sum(len(targets) for targets, _ in truth)
    print(f"{asked.model.name}, {n:,} tokens scored in {len(chunks)} chunks of {asked.ctx}; {machine()}")
    print(f"Perplexity of the model unrounded: {exp(nll(truth)):.2f}\n", flush=True)
    print(
        "| precision | bits a weight | mean KLD | same first choice | perplexity |\n|---|---|---|---|---|", flush=True
    )
    n_layers = opened.config.n_layers
    for name in asked.types:
        weights, bits = rounded(exact, own_types(name, exact) if name in PRECISIONS else mix(name, n_layers), name)
        print(f"| {name} | {bits:.2f} | {compared(truth, logits_of(options, opened, weights, chunks))} |", flush=True)


# ---- weights


def unrounded(source: TensorSource) -> dict[str, np.ndarray]:
    """The matrices of a model, moved off the grid they lie on."""
    rng = np.random.default_rng(0)
    weights = {}
    for name, info in source.tensors.items():
        if len(info.shape) == 2:
            raw = torch.frombuffer(source.read(name), dtype=torch.uint8)
            weights[name] = moved(QUANT_TYPES[info.qtype].decode(raw, info.shape).numpy(), rng)
    return weights


def moved(weights: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Each by up to half the step of its group, which is the least by which two numbers of the group differ."""
    groups = np.sort(weights.reshape(-1, GROUP), axis=1)
    gaps = np.diff(groups, axis=1)
    least = np.abs(groups).max(1, keepdims=True) * 1e-4  # below that they differ by rounding
    steps = np.where(gaps > least, gaps, np.inf).min(1)
    steps[~np.isfinite(steps)] = 0
    noise = rng.uniform(-0.5, 0.5, groups.shape).astype(np.float32) * steps[:, None].astype(np.float32)
    return (weights.reshape(-1, GROUP) + noise).reshape(weights.shape)


def rounded(
    exact: Mapping[str, np.ndarray], types: Mapping[str, str], name: str
) -> tuple[dict[str, np.ndarray], float]:
    """The matrices rounded to these types, by the encoders of localrun for its own precisions; and bits a weight."""
    weights, n_bits, n_weights = {}, 0.0, 0
    for tensor, matrix in exact.items():
        kind = QUANT_TYPES[types[tensor]]
        encoded = by_us(matrix, kind.name) if name in PRECISIONS else by_llama(matrix, kind.name)
        weights[tensor] = kind.decode(encoded, matrix.shape if kind.block_size < BLOCK else (matrix.size,)).numpy()
        weights[tensor] = weights[tensor].reshape(matrix.shape)
        n_bits, n_weights = n_bits + kind.bits * matrix.size, n_weights + matrix.size
    return weights, n_bits / n_weights


def by_us(matrix: np.ndarray, qtype: str) -> torch.Tensor:
    return ENCODERS[qtype](torch.from_numpy(matrix.reshape(-1, BLOCK))).flatten()


def by_llama(matrix: np.ndarray, qtype: str) -> torch.Tensor:
    kind = QUANT_TYPES[qtype]
    library = ctypes.CDLL(str(Path(os.environ["LOCALRUN_LLAMA_LIB"]) / "libggml-base.so"))
    chunk = library.ggml_quantize_chunk
    chunk.restype, chunk.argtypes = (
        ctypes.c_size_t,
        [ctypes.c_int, *[ctypes.c_void_p] * 2, *[ctypes.c_int64] * 3, ctypes.c_void_p],
    )
    numbers = np.ascontiguousarray(matrix, np.float32)
    encoded = np.empty(kind.nbytes((matrix.size,)), np.uint8)
    chunk(kind.gguf_id, numbers.ctypes.data, encoded.ctypes.data, 0, matrix.size // BLOCK, BLOCK, None)
    return torch.from_numpy(encoded)


def mix(name: str, n_layers: int) -> dict[str, str]:
    """Which type llama.cpp gives each matrix of a model of so many layers, whose rows have whole blocks."""
    shape = Shape("llama", BLOCK, n_layers, 8, 2, 32, BLOCK, 512, 1e4)
    with tempfile.TemporaryDirectory() as folder:
        made, target = Path(folder) / "f16.gguf", Path(folder) / "quantised.gguf"
        write_f16(made, shape)
        quantise(made, target, name, bindings())
        return {info.name: info.qtype for info in open_model_file(target).tensors.values() if len(info.shape) == 2}


def own_types(name: str, exact: Mapping[str, np.ndarray]) -> dict[str, str]:
    """Which type localrun gives each matrix where it quantises while it loads."""
    return {one: VOCABULARY_TYPE if one.endswith(VOCABULARY_NAMES) else PRECISIONS[name] for one in exact}


# ---- what they say

Scored = list[tuple[list[int], np.ndarray]]  # ids that came next, and the logits, [ids, vocabulary]


def logits_of(options: LoadOptions, opened: OpenedModel, weights: Mapping[str, np.ndarray], chunks: Any) -> Scored:
    """Of every token in the second half of each chunk, computed in f32."""
    source: Any = Rounded(opened.source, weights)
    changed = replace(opened, source=source, refs=read_weight_refs(source, opened.config))
    backend, notes = next(iter(backends_for("cpu", record_shapes(opened.config), changed.matrix_types)))
    model = load_on(backend, notes, options, changed, lambda done, total: None, 0.0)
    try:
        engines = [(model.engine.runner, model.engine.store)]
        return [
            (targets, np.stack([logits.row(n).copy() for n in range(len(targets))]))
            for ids in chunks
            for targets, (logits,) in scored_rows(engines, ids, first=options.ctx // 2)
        ]
    finally:
        model.engine.close()


def compared(truth: Scored, found: Scored) -> str:
    """Mean KL divergence, share of equal first choices, and change of perplexity, for the table."""
    pairs = [(a, b) for (_, one), (_, other) in zip(truth, found, strict=True) for a, b in zip(one, other, strict=True)]
    kld = fsum(divergence(a, b) for a, b in pairs) / len(pairs)
    same = sum(int(a.argmax() == b.argmax()) for a, b in pairs) / len(pairs)
    change = exp(nll(found) - nll(truth)) - 1
    return f"{kld:.4f} | {same:.1%} | {change:+.1%}"


def nll(scored: Scored) -> float:
    rows = [
        (row.astype(np.float64), target)
        for targets, logits in scored
        for row, target in zip(logits, targets, strict=True)
    ]
    return fsum(float(np.logaddexp.reduce(row) - row[target]) for row, target in rows) / len(rows)


if __name__ == "__main__":
    main()
