"""Places of the weights of Gemma 4's tower in a file, and their loading."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import isnan
from typing import TYPE_CHECKING

import numpy as np

from localrun.base.request import ProgressCallback
from localrun.formats.floats import read_floats
from localrun.formats.source import TensorSource
from localrun.model.vision.gemma_config import GemmaTowerConfig
from localrun.model.vision.gemma_tower import (
    EVERYTHING,
    Bounds,
    ClampedLinear,
    GemmaBlockWeights,
    GemmaTower,
    GemmaTowerWeights,
    paired_dims,
)
from localrun.model.vision.loader import EncoderLoader, checked_refs
from localrun.model.vision.read_config import wrong
from localrun.model.weight_ref import WeightRef
from localrun.ops.instructions import LinearWeight
from localrun.ops.layouts import Layout, Vector

if TYPE_CHECKING:
    import torch

LINEARS = ("q", "k", "v", "o", "gate", "up", "down")
NORMS = ("attn_norm", "q_norm", "k_norm", "attn_post_norm", "ffn_norm", "ffn_post_norm")
BOUNDS = ("input_min", "input_max", "output_min", "output_max")
HF_PREFIXES = ("model.", "")
HF_PARTS = ("vision_tower.", "embed_vision.")
# By ours; `{}` is the number of a layer.
HF_NAMES: Mapping[str, str] = {
    "patch": "vision_tower.patch_embedder.input_proj.weight",
    "positions": "vision_tower.patch_embedder.position_embedding_table",
    "std_bias": "vision_tower.std_bias",
    "std_scale": "vision_tower.std_scale",
    "projection": "embed_vision.embedding_projection.weight",
    "attn_norm": "vision_tower.encoder.layers.{}.input_layernorm",
    "q": "vision_tower.encoder.layers.{}.self_attn.q_proj",
    "k": "vision_tower.encoder.layers.{}.self_attn.k_proj",
    "v": "vision_tower.encoder.layers.{}.self_attn.v_proj",
    "q_norm": "vision_tower.encoder.layers.{}.self_attn.q_norm",
    "k_norm": "vision_tower.encoder.layers.{}.self_attn.k_norm",
    "o": "vision_tower.encoder.layers.{}.self_attn.o_proj",
    "attn_post_norm": "vision_tower.encoder.layers.{}.post_attention_layernorm",
    "ffn_norm": "vision_tower.encoder.layers.{}.pre_feedforward_layernorm",
    "gate": "vision_tower.encoder.layers.{}.mlp.gate_proj",
    "up": "vision_tower.encoder.layers.{}.mlp.up_proj",
    "down": "vision_tower.encoder.layers.{}.mlp.down_proj",
    "ffn_post_norm": "vision_tower.encoder.layers.{}.post_feedforward_layernorm",
}
GGUF_NAMES: Mapping[str, str] = {
    "patch": "v.patch_embd.weight",
    "positions": "v.position_embd.weight",
    "std_bias": "v.std_bias",
    "std_scale": "v.std_scale",
    "projection": "mm.input_projection.weight",
    "attn_norm": "v.blk.{}.ln1",
    "q": "v.blk.{}.attn_q",
    "k": "v.blk.{}.attn_k",
    "v": "v.blk.{}.attn_v",
    "q_norm": "v.blk.{}.attn_q_norm",
    "k_norm": "v.blk.{}.attn_k_norm",
    "o": "v.blk.{}.attn_out",
    "attn_post_norm": "v.blk.{}.attn_post_norm",
    "ffn_norm": "v.blk.{}.ln2",
    "gate": "v.blk.{}.ffn_gate",
    "up": "v.blk.{}.ffn_up",
    "down": "v.blk.{}.ffn_down",
    "ffn_post_norm": "v.blk.{}.ffn_post_norm",
}


def gemma_refs(config: GemmaTowerConfig, source: TensorSource) -> dict[str, WeightRef]:
    """Every weight of a tower by localrun's name, checked against the file. Raises ModelFileError."""
    if source.format == "gguf":
        refs = dict(named_refs(config, GGUF_NAMES, ""))
        return checked_refs(source, refs, [""])
    names = source.tensors
    prefix = next((one for one in HF_PREFIXES if any(name.startswith(one + HF_PARTS[0]) for name in names)), "model.")
    refs = dict(named_refs(config, {ours: prefix + name for ours, name in HF_NAMES.items()}, ".linear"))
    return checked_refs(source, refs, [prefix + part for part in HF_PARTS])


def named_refs(config: GemmaTowerConfig, names: Mapping[str, str], inner: str) -> Iterator[tuple[str, WeightRef]]:
    """Weights with the names and shapes they have to have in the file; `inner`: name of a matrix within its linear."""
    hidden, ffn, attn, side = config.hidden_size, config.ffn_size, config.attn_size, config.patch_size
    is_image = () if inner else (hidden, 3, side, side)  # a projector has the numbers of a patch by their colour
    yield "patch", WeightRef(names["patch"], (hidden, config.patch_values), file_shape=is_image)
    kept = (2 * config.n_kept_positions, hidden)
    yield "positions", WeightRef(names["positions"], kept, file_shape=(2, config.n_positions, hidden))
    for part in ("std_bias", "std_scale") if config.is_standardised else ():
        yield part, WeightRef(names[part], (hidden,))
    yield "projection", WeightRef(names["projection"], (config.out_size, hidden))
    shapes = dict.fromkeys("qkv", (attn, hidden)) | {"o": (hidden, attn), "down": (hidden, ffn)}
    shapes |= dict.fromkeys(("gate", "up"), (ffn, hidden))
    for layer in range(config.n_layers):
        ours = f"blocks.{layer}."
        for part in NORMS:
            size = config.head_dim if part in ("q_norm", "k_norm") else hidden
            yield ours + part, WeightRef(f"{names[part].format(layer)}.weight", (size,))
        for part in LINEARS:
            theirs = names[part].format(layer)
            yield ours + part, WeightRef(f"{theirs}{inner}.weight", shapes[part])
            for bound in BOUNDS if config.is_clamped else ():
                yield f"{ours}{part}.{bound}", WeightRef(f"{theirs}.{bound}", (1,))


def load_gemma_tower(
    source: TensorSource,
    config: GemmaTowerConfig,
    layout: Layout,
    device: torch.device | None = None,
    progress: ProgressCallback = lambda done, total: None,
) -> GemmaTower:
    """Load all weights of a tower, with matrices in `layout`. Raises ModelFileError or DoesNotFitError."""
    loader = GemmaLoader(source, gemma_refs(config, source), layout, device, progress)
    loader.head_dim = config.head_dim
    with layout.packing():
        return GemmaTower(config, loader.tower(config))


class GemmaLoader(EncoderLoader):
    """Reads and packs one weight of a tower at a time."""

    head_dim: int

    def tower(self, config: GemmaTowerConfig) -> GemmaTowerWeights:
        standard = (self.floats("std_bias"), self.floats("std_scale")) if config.is_standardised else None
        return GemmaTowerWeights(
            self.patch(),
            self.positions(config),
            tuple(self.block(f"blocks.{layer}.") for layer in range(config.n_layers)),
            standard,
            self.linear("projection"),
            self.ones(config.head_dim),
            self.ones(config.hidden_size),
        )

    def block(self, prefix: str) -> GemmaBlockWeights:
        linears = {part: self.clamped(prefix + part) for part in LINEARS}
        return GemmaBlockWeights(**linears, **{part: self.norm(prefix + part) for part in NORMS})

    def norm(self, name: str) -> Vector:
        if not name.endswith((".q_norm", ".k_norm")):
            return self.required_vector(name)
        return self.layout.vector(self.floats(name)[paired_dims(self.head_dim)], self.device)

    def order(self, name: str) -> np.ndarray | None:
        if not name.endswith((".q", ".k")):
            return None
        first = np.arange(0, self.refs[name].shape[0], self.head_dim)  # of each head
        rows: np.ndarray = (first[:, None] + paired_dims(self.head_dim)).ravel()
        return rows

    def clamped(self, name: str) -> ClampedLinear:
        weight = self.linear(name)
        if f"{name}.input_min" not in self.refs:
            return ClampedLinear(weight)
        low, high, least, most = (self.bound(f"{name}.{bound}") for bound in BOUNDS)
        return ClampedLinear(weight, self.bounds(name, low, high), self.bounds(name, least, most))

    def bound(self, name: str) -> float:
        """One bound, which may be infinite."""
        info = self.source.tensors[self.refs[name].name]
        raw = np.frombuffer(self.source.read(info.name), np.uint8)
        return float(read_floats(info.qtype, self.counted(raw), (1,))[0])

    def bounds(self, name: str, low: float, high: float) -> Bounds:
        if isnan(low) or isnan(high) or low > high:
            raise wrong(self.source.path, f"bounds of {name} in its tower are impossible")
        return EVERYTHING if (low, high) == EVERYTHING else (low, high)

    def patch(self) -> LinearWeight:
        """The linear on patches, the colours of a pixel together."""
        rows = self.whole("patch")
        if rows.ndim == 4:  # by colour
            rows = rows.transpose(0, 2, 3, 1).reshape(len(rows), -1)
        return LinearWeight(self.packed(rows))

    def positions(self, config: GemmaTowerConfig) -> np.ndarray:
        """The beginnings of both tables."""
        ref, kept = self.refs["positions"], config.n_kept_positions
        qtype = self.source.tensors[ref.name].qtype
        read = [self.read(ref.name, axis * config.n_positions, kept) for axis in range(2)]
        return np.stack([read_floats(qtype, raw, (kept, config.hidden_size)) for raw in read])
