"""Places of a tower's weights in a file, and their loading."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from localrun.base.dataclass import dataclass
from localrun.base.request import ProgressCallback
from localrun.formats.source import TensorSource
from localrun.model.vision.config import TowerConfig
from localrun.model.vision.loader import EncoderLoader, checked_refs
from localrun.model.vision.names import GGUF_NAMES, HF_NAMES, HF_PREFIXES, SECOND_FRAME
from localrun.model.vision.tower import BlockWeights, MergerWeights, NormWeights, Tower, TowerWeights
from localrun.model.weight_ref import WeightRef
from localrun.ops.instructions import LinearWeight
from localrun.ops.layouts import Layout

if TYPE_CHECKING:
    import torch

TensorShape = tuple[int, ...]


def tower_refs(config: TowerConfig, source: TensorSource) -> dict[str, WeightRef]:
    """Every weight of a tower by localrun's name, checked against the file. Raises ModelFileError.

    A tensor of the file that has no place in the tower is refused, but for those of ears.
    """
    gguf = source.format == "gguf"
    prefix = "" if gguf else hf_prefix(source)
    refs = {name: replace(ref, name=prefix + ref.name) for name, ref in named_refs(config, gguf)}
    patch = refs["patch"]
    if gguf and patch.name.removesuffix(".weight") + SECOND_FRAME in source.tensors:
        refs["second_frame"] = replace(patch, name=patch.name.removesuffix(".weight") + SECOND_FRAME)
    return checked_refs(source, refs, [prefix])


def hf_prefix(source: TensorSource) -> str:
    """The beginning of a tower's names in a checkpoint."""
    found = (prefix for prefix in HF_PREFIXES if any(name.startswith(prefix) for name in source.tensors))
    return next(found, HF_PREFIXES[0])


def named_refs(config: TowerConfig, gguf: bool) -> Iterator[tuple[str, WeightRef]]:
    """Weights with the names and shapes they have to have in the file."""
    places = TensorNames(GGUF_NAMES if gguf else HF_NAMES)
    hidden, ffn = config.hidden_size, config.ffn_size
    frames = () if gguf else (2,)
    (_, patch), bias = places.pair("patch", "patch", (hidden, config.patch_values * (1 if gguf else 2)))
    yield "patch", replace(patch, file_shape=(hidden, 3, *frames, config.patch_size, config.patch_size))
    yield bias
    yield "positions", WeightRef(f"{places.names['positions']}.weight", (config.n_positions, hidden))
    shapes = {"o": (hidden, hidden), "up": (ffn, hidden), "down": (hidden, ffn)}
    for layer in range(config.n_layers):
        ours = f"blocks.{layer}."
        for part, shape in {"attn_norm": (hidden,), "ffn_norm": (hidden,), **shapes}.items():
            yield from places.pair(ours + part, part, shape, layer)
        for number, name in enumerate("qkv"):
            for kind, ref in places.pair(ours + name, "qkv", (hidden, hidden), layer):
                yield kind, replace(ref, first_row=number * hidden, file_shape=(3 * hidden, *ref.shape[1:]))
    yield from places.merger("merger", "merger", config, hidden)
    for place, layer in enumerate(config.tapped):
        yield from places.merger(f"taps.{place}", "tap", config, config.merged_size, layer if gguf else place)


@dataclass(frozen=True, slots=True)
class TensorNames:
    """Names of tensors in one format, and the weights they are."""

    names: Mapping[str, str]

    def pair(self, ours: str, part: str, shape: TensorShape, number: int = 0) -> Iterator[tuple[str, WeightRef]]:
        """A weight and its bias."""
        their = self.names[part].format(number)
        yield ours, WeightRef(f"{their}.weight", shape)
        yield f"{ours}_bias", WeightRef(f"{their}.bias", shape[:1])

    def merger(
        self, ours: str, part: str, config: TowerConfig, norm_size: int, number: int = 0
    ) -> Iterator[tuple[str, WeightRef]]:
        """A norm and two linears."""
        merged = config.merged_size
        yield from self.pair(f"{ours}.norm", f"{part}.norm", (norm_size,), number)
        yield from self.pair(f"{ours}.up", f"{part}.up", (merged, merged), number)
        yield from self.pair(f"{ours}.down", f"{part}.down", (config.out_size, merged), number)


def load_tower(
    source: TensorSource,
    config: TowerConfig,
    layout: Layout,
    device: torch.device | None = None,
    progress: ProgressCallback = lambda done, total: None,
) -> Tower:
    """Load all weights of a tower, with matrices in `layout`. Raises ModelFileError or DoesNotFitError."""
    loader = TowerLoader(source, tower_refs(config, source), layout, device, progress)
    with layout.packing():
        return Tower(config, loader.tower(config))


class TowerLoader(EncoderLoader):
    """Reads and packs one weight of a tower at a time."""

    def tower(self, config: TowerConfig) -> TowerWeights:
        return TowerWeights(
            self.patch(config),
            self.whole("positions"),
            tuple(self.block(f"blocks.{layer}.") for layer in range(config.n_layers)),
            self.merger("merger."),
            tuple(self.merger(f"taps.{place}.") for place in range(len(config.tapped))),
        )

    def block(self, prefix: str) -> BlockWeights:
        q, k, v, o, up, down = (self.linear(prefix + name) for name in ("q", "k", "v", "o", "up", "down"))
        attn_norm, ffn_norm = (self.norm(prefix + name) for name in ("attn_norm", "ffn_norm"))
        return BlockWeights(attn_norm, q, k, v, o, ffn_norm, up, down)

    def merger(self, prefix: str) -> MergerWeights:
        return MergerWeights(self.norm(f"{prefix}norm"), self.linear(f"{prefix}up"), self.linear(f"{prefix}down"))

    def norm(self, name: str) -> NormWeights:
        return NormWeights(self.required_vector(name), self.required_vector(f"{name}_bias"))

    def patch(self, config: TowerConfig) -> LinearWeight:
        """The linear on patches: of the two frames of a film the sum, since those of a still image are one."""
        shape = config.hidden_size, config.patch_values
        rows = np.sum(self.frames(), axis=0).reshape(shape)
        return LinearWeight(self.packed(rows), self.required_vector("patch_bias"))

    def frames(self) -> list[np.ndarray]:
        """The matrix of each frame, f32 [hidden, 3, patch, patch]."""
        whole = [self.whole(name) for name in ("patch", "second_frame") if name in self.refs]
        return [whole[0][:, :, frame] for frame in range(2)] if whole[0].ndim == 5 else whole
