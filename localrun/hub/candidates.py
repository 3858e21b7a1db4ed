"""Candidates for `fit`: the precisions of a model, each with sizes as exact as what is known of it."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from localrun.fit.draft_memory import draft_memory
from localrun.fit.estimate import Candidate
from localrun.fit.mapped import mappable_parts
from localrun.fit.precisions import bits_of
from localrun.fit.shape import ModelShape
from localrun.fit.weights import held, held_share
from localrun.formats.quant import QUANT_TYPES
from localrun.formats.requantize import ODD_ROWS_TYPE, PRECISIONS, VOCABULARY_TYPE
from localrun.hub.downloads.disk_space import packing_room
from localrun.hub.remote.variants import Variant
from localrun.model.precision import in_precision
from localrun.model.shapes import Ranks

if TYPE_CHECKING:
    from localrun.formats.gguf import GgufFile
    from localrun.formats.safetensors import SafetensorsFolder
    from localrun.formats.source import TensorSource

FLOATS = ("fp32", "bf16", "fp16")
_FLOAT_BITS = 15  # a weight, on average, from which on most of a quantised checkpoint is held as floats


def in_memory(
    source: GgufFile | SafetensorsFolder,
    precision: str,
    shape: ModelShape,
    adapters: tuple[Ranks, ...] = (),
    draft: str = "auto",
) -> Candidate:
    """Candidate for a model on disk, with the bytes that loading it with these adapters and `draft` takes."""
    held_as = in_precision(source, precision)
    found = by_tensors(held_as, precision, shape, source.nbytes, adapters=adapters)
    found = replace(found, weights_bytes=found.weights_bytes + draft_memory(draft, held_as)[1])
    if precision in PRECISIONS:  # a large vocabulary, which stays in 8 bits, does not make the rest better
        return replace(found, bits=bits_of(precision))
    return found


def by_tensors(
    source: TensorSource,
    precision: str,
    shape: ModelShape,
    file_bytes: int,
    missing: int = 0,
    adapters: tuple[Ranks, ...] = (),
) -> Candidate:
    """Candidate from known tensors, with the bytes that loading takes. `missing`: bytes still to download."""
    weights = held(source, adapters)
    n_params = sum(prod(tensor.shape) for tensor in source.tensors.values())
    return Candidate(
        precision,
        weights.nbytes,
        int(weights.nbytes * shape.active_params / shape.held_params),
        8 * sum(tensor.nbytes for tensor in source.tensors.values()) / max(n_params, 1),
        file_bytes=file_bytes,
        mappable=weights.mappable,
        disk_room=packing_room(missing),
    )


def offered(variant: Variant, shape: ModelShape | None, missing: int) -> Candidate:
    """Candidate for a download whose tensors are unknown. `missing`: bytes still to download."""
    precision = variant.precision or PurePosixPath(variant.files[0].path).stem
    weights = active = int(variant.weights_bytes * held_share(precision))
    if shape is not None:
        weights = weights * shape.held_params // shape.n_params
        active = weights * shape.active_params // shape.held_params
    parts = mappable_parts(shape, weights) if shape is not None else ()
    return Candidate(
        precision,
        weights,
        active,
        bits_of(precision),
        file_bytes=variant.bytes,
        mappable=parts,
        disk_room=packing_room(missing),
    )


def quantised(precision: str, shape: ModelShape) -> Candidate:
    """Candidate for floats that are quantised to `precision` while loading, from their shape alone."""
    qtype = PRECISIONS[precision]
    if shape.config.hidden_size % QUANT_TYPES[qtype].block_size:  # most matrices have rows of that many
        qtype = ODD_ROWS_TYPE
    vocabulary = shape.vocabulary_params * QUANT_TYPES[VOCABULARY_TYPE].bits
    weights = int((vocabulary + (shape.held_params - shape.vocabulary_params) * QUANT_TYPES[qtype].bits) / 8)
    return _approximate(precision, shape, weights, weights)


def estimated(precision: str, shape: ModelShape) -> Candidate:
    """Candidate from the bits per weight alone."""
    file_bytes = int(shape.n_params * bits_of(precision) / 8)
    weights = int(file_bytes * held_share(precision)) * shape.held_params // shape.n_params
    return _approximate(precision, shape, weights, file_bytes)


def _approximate(precision: str, shape: ModelShape, weights: int, file_bytes: int) -> Candidate:
    active = weights * shape.active_params // shape.held_params
    parts = mappable_parts(shape, weights)
    return Candidate(
        precision,
        weights,
        active,
        bits_of(precision),
        approximate=True,
        file_bytes=file_bytes,
        mappable=parts,
        disk_room=packing_room(file_bytes),
    )


def is_wide(candidate: Candidate) -> bool:
    """Whether the weights are floats once loaded, so that they can be quantised."""
    return candidate.precision in FLOATS or candidate.bits >= _FLOAT_BITS
