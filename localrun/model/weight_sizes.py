"""Sizes of a model's weights: in memory, in its files, and what decoding a token reads of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from localrun.formats.quant import QUANT_TYPES
from localrun.formats.source import TensorSource
from localrun.model.weight_ref import WeightRef
from localrun.ops.layouts import Packed

if TYPE_CHECKING:
    from localrun.model.layer_weights import ModelWeights

COPIED_BYTES = 16 << 20  # of a table in the file's own form


def held_bytes(source: TensorSource, refs: dict[str, WeightRef], matrix_bytes: Callable[[str, int, int], int]) -> int:
    """Exact bytes of all weights once loaded; a matrix of a type, n_rows and n_cols takes `matrix_bytes` of them."""
    total = 0
    for ref in refs.values():
        if len(ref.shape) == 1:
            total += 4 * ref.shape[0] if ref.shape != (1,) else 0  # a single number becomes an operand
        elif not ref.mapped:
            total += matrix_bytes(source.tensors[ref.name].qtype, *ref.shape)
        elif not stays_in_file(source, ref):
            total += source.tensors[ref.name].nbytes
    return total


def stays_in_file(source: TensorSource, ref: WeightRef) -> bool:
    """Whether a weight is mapped from the model's file.

    A small one is copied, so that writing to the file does no harm. One that is joined from several tensors cannot be
    mapped.
    """
    info = source.tensors[ref.name]
    return ref.mapped and not info.is_joined and info.nbytes > COPIED_BYTES


def files_in_use(source: TensorSource, refs: Mapping[str, WeightRef]) -> set[Path]:
    """Files of the model that are read while it computes."""
    return {source.tensors[ref.name].file for ref in refs.values() if stays_in_file(source, ref)}


def work_per_token(source: TensorSource, refs: dict[str, WeightRef]) -> tuple[int, int]:
    """Bytes of the file's own encoding that decoding one token reads, and multiplications it takes (weights only)."""
    n_bytes = macs = 0
    for ref in matrices_of_a_token(refs):
        n_bytes += QUANT_TYPES[source.tensors[ref.name].qtype].nbytes(ref.shape)
        macs += ref.shape[0] * ref.shape[1]
    return n_bytes, macs


def matrices_of_a_token(refs: dict[str, WeightRef]) -> list[WeightRef]:
    """The matrices that decoding a token reads: one row of the embedding, and the experts in use."""
    read = (ref for name, ref in refs.items() if name != "embed" or "output" not in refs)
    return [
        replace(ref, shape=(ref.shape[0] // ref.n_experts * ref.n_used, ref.shape[1]))
        for ref in read
        if len(ref.shape) == 2 and not ref.mapped
    ]


def allocated_bytes(weights: ModelWeights) -> int:
    """Bytes that weights take in memory; tied ones once."""
    found: dict[int, int] = {}

    def visit(part: Any) -> None:
        if isinstance(part, tuple):
            for item in part:
                visit(item)
        elif isinstance(part, Mapping):
            visit(tuple(part.values()))
        elif is_dataclass(part) and not isinstance(part, Packed):
            visit(tuple(getattr(part, field.name) for field in fields(part)))
        elif part is not None and not isinstance(part, (str, float)):
            found[id(part)] = part.nbytes

    visit(weights)
    return sum(found.values())
