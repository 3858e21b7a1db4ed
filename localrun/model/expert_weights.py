"""Places of expert weights in a file: a tensor for each expert or one for all, gate and up separate or fused."""

from collections.abc import Iterator, Sequence

from localrun.formats.source import TensorSource
from localrun.model.archs.base import Arch
from localrun.model.archs.names import GGUF_EXPERTS, name_in_file
from localrun.model.config import Mixture
from localrun.model.shapes import NORMS_APART, Shapes
from localrun.model.weight_ref import FLOAT_TYPES, WeightRef


class ExpertNamer:
    """Names the tensors of one layer's mixture in a file; `prefix` is that of a checkpoint."""

    def __init__(self, arch: Arch, source: TensorSource, prefix: str, index: int) -> None:
        assert arch.experts is not None
        self.arch, self.rules, self.source = arch, arch.experts, source
        self.gguf, self.prefix, self.index = source.format == "gguf", prefix, index
        self.transposed = not self.gguf and self.rules.are_transposed(source.tensors)

    def refs(self, mixture: Mixture, shapes: Shapes) -> Iterator[tuple[str, WeightRef]]:
        """All weights but the block's norms, by localrun's names, with the layer's `shapes`."""
        widening = [name for name in ("gate", "up") if name in shapes]
        for weight in (*widening, "down"):
            yield weight, self.of_all(weight, shapes[weight], mixture)
            if mixture.biases:
                yield f"{weight}_bias", self.biases_of_all(weight, shapes[f"{weight}_bias"][0], mixture.n_experts)
        for weight in ("router", "router_bias", "choice_bias", "shared_down", *NORMS_APART, "expert_scale"):
            if weight in shapes:
                yield weight, WeightRef(self.name(weight), shapes[weight])
        if mixture.apart:  # in the file without what makes products small
            factor = shapes["router_norm"][0] ** -0.5
            yield "router_norm", WeightRef(self.name("router_norm"), shapes["router_norm"], factor=factor)
        if mixture.shared_size:
            yield from self.shared_refs(widening, shapes)

    def shared_refs(self, widening: Sequence[str], shapes: Shapes) -> Iterator[tuple[str, WeightRef]]:
        """The shared expert's first matrices, in one tensor or two, and its own router."""
        fused = self.name("shared_gate_up")
        for place, weight in enumerate(f"shared_{name}" for name in widening):
            size, hidden = shapes[weight]
            if fused:
                yield weight, WeightRef(fused, shapes[weight], place * size, file_shape=(2 * size, hidden))
            else:
                yield weight, WeightRef(self.name(weight), shapes[weight])
        if "shared_router" in shapes:
            in_file = shapes["shared_router"][1:] if self.gguf else shapes["shared_router"]
            yield "shared_router", WeightRef(self.name("shared_router"), shapes["shared_router"], file_shape=in_file)

    def of_all(self, weight: str, shape: tuple[int, ...], mixture: Mixture) -> WeightRef:
        """The matrices of all experts, one after the other."""
        n, counts = mixture.n_experts, (mixture.n_experts, mixture.routing.n_used)
        rows, columns = shape[0] // n, shape[1]
        if names := self.names_of_each(weight, n):
            return WeightRef(names[0], shape, 0, None, 0.0, names, *counts, file_shape=(rows, columns))
        name, first, every, in_file = self.in_one(weight, rows)
        qtype = self.source.tensors[name].qtype if name in self.source.tensors else ""
        turned = self.transposed and qtype != "MXFP4" and not name.endswith(".weight")  # of MLX
        file_shape = (n, columns, in_file) if turned and qtype in FLOAT_TYPES else (n, in_file, columns)
        return WeightRef(name, shape, first, None, 0.0, (), *counts, file_shape, every, turned)

    def biases_of_all(self, weight: str, size: int, n: int) -> WeightRef:
        name, first, every, in_file = self.in_one(weight, size // n, "_bias")
        return WeightRef(name, (size,), first, n_experts=n, file_shape=(n, in_file), every=every)

    def in_one(self, weight: str, rows: int, kind: str = "") -> tuple[str, int, int, int]:
        """The tensor with a weight of all experts, its first row there, the distance of rows, and all rows."""
        fused = self.name(f"experts_gate_up{kind}") if weight in ("gate", "up") else ""
        apart = self.name(f"experts_{weight}{kind}")
        if not fused or (apart in self.source.tensors and fused not in self.source.tensors):
            return apart, 0, 1, rows
        place = ("gate", "up").index(weight)
        turns = not self.gguf and self.rules.in_turns
        return fused, place if turns else place * rows, 2 if turns else 1, 2 * rows

    def names_of_each(self, weight: str, n_experts: int) -> tuple[str, ...]:
        """Tensors of the experts one by one, as most checkpoints and early Mixtral files have them."""
        own = "blk.{}.ffn_" + weight + ".{}.weight" if self.gguf else self.arch.hf_names.get(f"expert_{weight}", "")
        templates = [self.prefix + spelling for spelling in own.split()]
        used = next((one for one in templates if one.format(self.index, 0) in self.source.tensors), None)
        fused = self.gguf or "experts_gate_up" in self.arch.hf_names
        in_one = fused or self.name(f"experts_{weight}") in self.source.tensors
        if not templates or (in_one and used is None):
            return ()
        return tuple((used or templates[0]).format(self.index, expert) for expert in range(n_experts))

    def name(self, weight: str) -> str:
        """Name of a weight; empty for a fused gate_up where the file has them separately, and for none."""
        if not self.gguf:
            spellings = self.arch.hf_names.get(weight, "")
            return spellings and name_in_file(spellings, self.source.tensors, self.index, self.prefix)
        name = name_in_file(self.arch.gguf_names.get(weight) or GGUF_EXPERTS[weight], self.source.tensors, self.index)
        return "" if "gate_up" in weight and name not in self.source.tensors else name
