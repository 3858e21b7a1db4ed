"""Adapters of a model: the weights they change, checked against the model, and their matrices in memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, cast

import numpy as np

from localrun.base.dataclass import dataclass
from localrun.base.sanitize import clean
from localrun.formats.adapters.adapter_file import AdapterFile, LowRankPair, unsupported
from localrun.formats.adapters.matrices import read_a, read_b
from localrun.formats.files import bad_file, shown
from localrun.formats.metadata import Metadata
from localrun.formats.source import TensorInfo, TensorSource
from localrun.model.archs.base import Arch
from localrun.model.config import LayerSpec, ModelConfig
from localrun.model.row_order import rows_in_file
from localrun.model.shapes import Ranks
from localrun.model.weight_ref import WeightRef
from localrun.model.weights import PREFIXES, Namer
from localrun.ops.instructions import LowRank
from localrun.ops.layouts import Layout

if TYPE_CHECKING:
    import torch

KEYS_AND_VALUES = "how keys and values are made of latents"
OF_LATENTS = ("k_b", "v_b")  # a matrix of each head, which an adapter has in one
NOT_ADAPTED = ("router", "shared_gate", "shared_up", "shared_down", "shared_router")  # of a mixture


@dataclass(frozen=True, slots=True)
class OpenedAdapter:
    """An opened adapter, its scale, and the weights of the model that it changes, by localrun's names."""

    file: AdapterFile
    scale: float
    refs: Mapping[str, WeightRef]

    @property
    def identity(self) -> tuple[str, str]:
        """Digest of its files, and the bits of its scale as f32: everything that results depend on."""
        return self.file.sha256, np.float32(self.scale).tobytes().hex()

    @property
    def ranks(self) -> Ranks:
        return tuple((name, self.file.pairs[ref.name].rank) for name, ref in self.refs.items())

    def nbytes(self, layout: Layout) -> int:
        """Bytes of its matrices in memory."""
        held = ((*ref.shape, self.file.pairs[ref.name].rank) for ref in self.refs.values())
        return sum(layout.low_rank_bytes(*sizes) for sizes in held)

    @property
    def macs(self) -> int:
        """Multiplications that it adds to a token."""
        return sum(self.file.pairs[ref.name].rank * sum(ref.shape) for ref in self.refs.values())

    def low_rank(self, name: str, layout: Layout, device: torch.device | None) -> LowRank | None:
        """The matrices added to a weight; None where the adapter does not change it. Raises ModelFileError."""
        ref = self.refs.get(name)
        if ref is None:
            return None
        a, b = read_a(self.file, ref.name), read_b(self.file, ref.name)[rows_in_file(ref)]
        packed_a, packed_b, factor = layout.low_rank(a, b, device)
        scale = self.scale * self.file.pairs[ref.name].scale * factor
        if abs(scale) > float(np.finfo(np.float32).max):
            raise bad_file("BAD_TENSOR", f"the numbers for {shown(ref.name)} are too large", self.file.path)
        return LowRank(packed_a, packed_b, float(np.float32(scale)))


def match(file: AdapterFile, scale: float, arch: Arch, config: ModelConfig) -> OpenedAdapter:
    """Match an adapter with a model of `arch`.

    Raises ModelFileError where it was made for another model, or changes unsupported parts.
    """
    if file.arch and file.arch not in arch.gguf:
        told = f"it is an adapter for {clean(file.arch)}, and the model is {arch.name}"
        raise bad_file("WRONG_BASE", told, file.path, hint="name an adapter of this model")
    namer = AdapterNamer(arch, config, file)
    refs: dict[str, WeightRef] = {}
    for index, spec in enumerate(config.layers):
        for name, ref in namer.layer_refs(index, spec):
            if namer.changes(ref):
                check(file, ref, name, spec)
                refs[f"layers.{index}.{name}"] = replace(ref, name=ref.name.removeprefix(namer.prefix))
    known = {ref.name for ref in refs.values()}
    for weight in file.pairs:
        if weight not in known:
            of_experts, of_latents = ("expert" in weight or "_exps" in weight), "kv_b" in weight and config.latents
            what = "experts" if of_experts else KEYS_AND_VALUES if of_latents else "what this model does not have"
            raise unsupported(file.path, f"it changes {what}: {shown(weight)}")
    return OpenedAdapter(file, scale, refs)


def check(file: AdapterFile, ref: WeightRef, name: str, spec: LayerSpec) -> None:
    """Raise ModelFileError for a weight that cannot be adapted, or for matrices of another shape."""
    if name in OF_LATENTS:
        raise unsupported(file.path, f"it changes {KEYS_AND_VALUES}: {shown(ref.name)}")
    if ref.n_experts > 1 or name in NOT_ADAPTED or (spec.mixture is not None and name in ("gate", "up", "down")):
        raise unsupported(file.path, f"it changes experts, or how they are chosen: {shown(ref.name)}")
    weight = ref.name.removeprefix(PREFIXES[0])
    pair = file.pairs[weight]
    n_out, n_in = ref.file_shape or ref.shape
    if (pair.n_out, pair.n_in) != (n_out, n_in):
        told = f"it changes {shown(weight)} of {pair.n_out:,} × {pair.n_in:,}, and the model has {n_out:,} × {n_in:,}"
        raise bad_file("WRONG_BASE", told, file.path, pair.b.offset, hint="name an adapter of this model")


class AdapterNamer(Namer):
    """Names the weights of a model as the adapter does, in any format of the model."""

    possible: frozenset[str] = frozenset()  # no biases
    norm_offset = 0.0

    def __init__(self, arch: Arch, config: ModelConfig, file: AdapterFile) -> None:
        super().__init__(arch, config, cast(TensorSource, AdapterTensors(file)))  # it only names

    def changes(self, ref: WeightRef) -> bool:
        return len(ref.shape) == 2 and any(name in self.source.tensors for name in ref.tensors)


class AdapterTensors:
    """The weights that an adapter changes, in the form of a model's source."""

    def __init__(self, file: AdapterFile) -> None:
        self.path, self.warnings = file.path, ()
        self.format = "gguf" if file.format == "gguf" else "safetensors"
        self.metadata = Metadata({}, file.path)
        prefix = "" if self.format == "gguf" else PREFIXES[0]
        self.tensors = {prefix + weight: as_weight(prefix + weight, pair) for weight, pair in file.pairs.items()}


def as_weight(name: str, pair: LowRankPair) -> TensorInfo:
    """The weight that a pair of matrices changes."""
    return replace(pair.b, name=name, shape=(pair.n_out, pair.n_in))
