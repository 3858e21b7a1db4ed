"""Gemma 4's embedder of images (12B): its programs, the places of its weights, their loading and their bytes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from localrun.base.dataclass import dataclass
from localrun.formats.source import TensorSource
from localrun.model.vision.embedder_config import LAYER_EPS, EmbedderConfig
from localrun.model.vision.loader import EncoderLoader, checked_refs
from localrun.model.vision.shapes import BytesOf, EncoderBytes, EncoderShapes, TypeOf
from localrun.model.vision.tower import NormWeights
from localrun.model.weight_ref import WeightRef
from localrun.ops.encoder import LayerNorm
from localrun.ops.encoder_program import EncoderRecording, record_encoder
from localrun.ops.instructions import Linear, LinearWeight, Norm
from localrun.ops.layouts import Layout, Vector
from localrun.ops.recording import Ops
from localrun.ops.types import Value

if TYPE_CHECKING:
    import torch

HF_PARTS = ("model.vision_embedder.", "model.embed_vision.")
HF_NAMES: Mapping[str, str] = {
    "patch_norm": "model.vision_embedder.patch_ln1",
    "patch": "model.vision_embedder.patch_dense",
    "norm": "model.vision_embedder.patch_ln2",
    "positions": "model.vision_embedder.pos_embedding",
    "positions_norm": "model.vision_embedder.pos_norm",
    "projection": "model.embed_vision.embedding_projection.weight",
}
GGUF_NAMES: Mapping[str, str] = {
    "patch_norm": "v.patch_norm.1",
    "patch": "v.patch_embd",
    "norm": "v.patch_norm.2",
    "positions": "v.position_embd.weight",
    "positions_norm": "v.patch_norm.3",
    "projection": "mm.input_projection.weight",
}


@dataclass(frozen=True, slots=True)
class EmbedderWeights:
    """All weights, on one device but for those of positions. The numbers of a patch lie as in the file."""

    patch_norm: NormWeights
    patch: LinearWeight
    norm: NormWeights
    positions: np.ndarray  # f32 [2, n_positions, hidden] of columns and of lines, in main memory
    positions_norm: NormWeights
    ones: Vector  # of the norm without a weight: [hidden]
    projection: LinearWeight


@dataclass(frozen=True, slots=True)
class Embedder:
    """A config and its weights on one device."""

    config: EmbedderConfig
    weights: EmbedderWeights
    by_colour: bool  # the numbers of a patch are ordered by their colour, else by their pixel

    def patches(self) -> EncoderRecording:
        """Rows of patches, without their positions."""
        weights = self.weights

        def forward(ops: Ops, given: Sequence[Value]) -> Value:
            (x,) = ops(Linear(layer_norm(ops, given[0], weights.patch_norm), (weights.patch,)))
            return layer_norm(ops, x, weights.norm)

        return record_encoder(forward, [self.config.patch_values])

    def projection(self) -> EncoderRecording:
        """Rows of the image, from those of patches with their positions added."""
        weights = self.weights

        def forward(ops: Ops, given: Sequence[Value]) -> Value:
            placed = layer_norm(ops, given[0], weights.positions_norm)
            (normed,) = ops(Norm(placed, weights.ones, self.config.eps))
            return ops(Linear(normed, (weights.projection,)))[0]

        return record_encoder(forward, [self.config.hidden_size])


def layer_norm(ops: Ops, x: Value, norm: NormWeights) -> Value:
    return ops(LayerNorm(x, norm.weight, norm.bias, LAYER_EPS))[0]


def embedder_refs(config: EmbedderConfig, source: TensorSource) -> dict[str, WeightRef]:
    """Every weight by localrun's name, checked against the file. Raises ModelFileError."""
    is_gguf = source.format == "gguf"
    refs = dict(named_refs(config, is_gguf))
    return checked_refs(source, refs, [""] if is_gguf else HF_PARTS)


def named_refs(config: EmbedderConfig, is_gguf: bool) -> Iterator[tuple[str, WeightRef]]:
    """Weights with the names and shapes they have to have in the file."""
    names, hidden = GGUF_NAMES if is_gguf else HF_NAMES, config.hidden_size
    sizes = {"patch_norm": config.patch_values, "norm": hidden, "positions_norm": hidden, "patch": hidden}
    for part, size in sizes.items():
        shape = (hidden, config.patch_values) if part == "patch" else (size,)
        yield part, WeightRef(f"{names[part]}.weight", shape)
        yield f"{part}_bias", WeightRef(f"{names[part]}.bias", (size,))
    n = config.n_positions
    tables = (2, n, hidden) if is_gguf else (n, 2, hidden)
    yield "positions", WeightRef(names["positions"], (2 * n, hidden), file_shape=tables)
    yield "projection", WeightRef(names["projection"], (config.out_size, hidden))


def load_embedder(
    source: TensorSource, config: EmbedderConfig, layout: Layout, device: torch.device | None = None
) -> Embedder:
    """Load all weights, with matrices in `layout`. Raises ModelFileError or DoesNotFitError."""
    loader = EmbedderLoader(source, embedder_refs(config, source), layout, device, lambda done, total: None)
    with layout.packing():
        return Embedder(config, loader.embedder(config), by_colour=source.format == "gguf")


class EmbedderLoader(EncoderLoader):
    """Reads and packs one weight at a time."""

    def embedder(self, config: EmbedderConfig) -> EmbedderWeights:
        return EmbedderWeights(
            self.norm("patch_norm"),
            self.linear("patch"),
            self.norm("norm"),
            self.tables(),
            self.norm("positions_norm"),
            self.ones(config.hidden_size),
            self.linear("projection"),
        )

    def norm(self, name: str) -> NormWeights:
        return NormWeights(self.required_vector(name), self.required_vector(f"{name}_bias"))

    def tables(self) -> np.ndarray:
        """Positions by column and by line, which a checkpoint has beside each other."""
        whole = self.whole("positions")
        return whole if self.source.format == "gguf" else np.ascontiguousarray(whole.transpose(1, 0, 2))


def embedder_bytes(
    config: EmbedderConfig, refs: Mapping[str, WeightRef], type_of: TypeOf, matrix_bytes: BytesOf
) -> int:
    """Exact bytes of all weights once they are loaded."""
    matrices = ("patch", "projection")
    held = [matrix_bytes(type_of(refs[name]), *refs[name].shape) for name in matrices]
    vectors = [prod(ref.shape) for name, ref in refs.items() if name not in matrices and not ref.is_number]
    return sum(held) + 4 * (config.hidden_size + sum(vectors))


def embedder_working_bytes(
    config: EmbedderConfig, refs: Mapping[str, WeightRef], n_rows: int, encoder_bytes: EncoderBytes
) -> int:
    """Bytes that an image of at most `n_rows` rows takes: the working memory of the larger program, its patches, and
    what the first leaves for the second."""
    shapes = Embedder(config, EmbedderShapes(dict(refs)).embedder(config), by_colour=False)
    n_rows = min(n_rows, config.sizes.budget)
    needs = [encoder_bytes(program, n_rows) for program in (shapes.patches(), shapes.projection())]
    return max(needs) + 4 * n_rows * (2 * config.patch_values + 3 * config.hidden_size)


class EmbedderShapes(EncoderShapes, EmbedderLoader):
    """Weights with shapes and no numbers."""

    def tables(self) -> np.ndarray:
        return np.zeros(0, np.float32)  # in main memory: no program reads it
