"""Where a file keeps the weights of mixtures: a tensor for each expert or one of all, gate and up apart or in one."""

from collections.abc import Iterator, Sequence

from localrun.formats.source import TensorSource
from localrun.model.archs.base import Arch
from localrun.model.archs.names import GGUF_EXPERTS, gguf_name
from localrun.model.config import Mixture
from localrun.model.weight_ref import FLOAT_TYPES, WeightRef


class ExpertNamer:
    """Names the tensors of one layer's mixture in one particular file; `prefix` goes before those of a checkpoint."""

    def __init__(self, arch: Arch, source: TensorSource, prefix: str, index: int) -> None:
        assert arch.experts is not None
        self.arch, self.rules, self.source = arch, arch.experts, source
        self.gguf, self.prefix, self.index = source.format == "gguf", prefix, index

    def refs(self, mixture: Mixture, hidden: int, ffn: int, has_gate: bool) -> Iterator[tuple[str, WeightRef]]:
        """Everything but the norms, by our names. gate and up are [n · ffn, hidden], down is [n · hidden, ffn]."""
        n = mixture.n_experts
        yield "router", WeightRef(self.name("router"), (n, hidden))
        if mixture.biases:
            yield "router_bias", WeightRef(self.name("router_bias"), (n,))
        if mixture.choice_bias:
            yield "choice_bias", WeightRef(self.name("choice_bias"), (n,))
        widening = ("gate", "up") if has_gate else ("up",)
        for weight, rows, columns in (*((name, ffn, hidden) for name in widening), ("down", hidden, ffn)):
            yield weight, self.of_all(weight, rows, columns, mixture)
            if mixture.biases:
                yield f"{weight}_bias", self.biases_of_all(weight, rows, mixture)
        if mixture.shared_size:
            yield from self.shared_refs(mixture, hidden, widening)
        if mixture.apart:
            yield from self.apart_refs(n, hidden)

    def apart_refs(self, n_experts: int, hidden: int) -> Iterator[tuple[str, WeightRef]]:
        """Norms of the branches of a layer; that of the router leaves out what makes its products small."""
        for name in ("shared_post_norm", "experts_norm", "experts_post_norm"):
            yield name, WeightRef(self.name(name), (hidden,))
        yield "router_norm", WeightRef(self.name("router_norm"), (hidden,), factor=hidden**-0.5)
        yield "expert_scale", WeightRef(self.name("expert_scale"), (n_experts,))

    def shared_refs(self, mixture: Mixture, hidden: int, widening: Sequence[str]) -> Iterator[tuple[str, WeightRef]]:
        size, fused = mixture.shared_size, self.name("shared_gate_up")
        for place, weight in enumerate(widening):
            if fused:
                yield f"shared_{weight}", WeightRef(fused, (size, hidden), place * size, file_shape=(2 * size, hidden))
            else:
                yield f"shared_{weight}", WeightRef(self.name(f"shared_{weight}"), (size, hidden))
        yield "shared_down", WeightRef(self.name("shared_down"), (hidden, size))
        if mixture.shared_gate:
            in_file = (hidden,) if self.gguf else (1, hidden)
            yield "shared_router", WeightRef(self.name("shared_router"), (1, hidden), file_shape=in_file)

    def of_all(self, weight: str, rows: int, columns: int, mixture: Mixture) -> WeightRef:
        """The matrices of all experts, one after the other."""
        n, counts = mixture.n_experts, (mixture.n_experts, mixture.routing.n_used)
        shape = (n * rows, columns)
        if names := self.names_of_each(weight, n):
            return WeightRef(names[0], shape, 0, None, 0.0, names, *counts, file_shape=(rows, columns))
        name, first, every, in_file = self.in_one(weight, rows)
        qtype = self.source.tensors[name].qtype if name in self.source.tensors else ""
        turned = not self.gguf and self.rules.transposed and qtype != "MXFP4"
        file_shape = (n, columns, in_file) if turned and qtype in FLOAT_TYPES else (n, in_file, columns)
        return WeightRef(name, shape, first, None, 0.0, (), *counts, file_shape, every, turned)

    def biases_of_all(self, weight: str, rows: int, mixture: Mixture) -> WeightRef:
        n = mixture.n_experts
        name, first, every, in_file = self.in_one(weight, rows, "_bias")
        return WeightRef(name, (n * rows,), first, n_experts=n, file_shape=(n, in_file), every=every)

    def in_one(self, weight: str, rows: int, kind: str = "") -> tuple[str, int, int, int]:
        """The tensor with a weight of all experts, where its rows begin, how far they are apart, and all rows there."""
        fused = self.name(f"experts_gate_up{kind}") if weight in ("gate", "up") else ""
        if not fused:
            return self.name(f"experts_{weight}{kind}"), 0, 1, rows
        place = ("gate", "up").index(weight)
        turns = not self.gguf and self.rules.in_turns
        return fused, place if turns else place * rows, 2 if turns else 1, 2 * rows

    def names_of_each(self, weight: str, n_experts: int) -> tuple[str, ...]:
        """The tensors of the experts one by one, as most checkpoints and the first files of Mixtral have them."""
        if self.gguf:
            template, in_one = "blk.{}.ffn_" + weight + ".{}.weight", True
        elif f"expert_{weight}" in self.arch.hf_names:
            template, in_one = (
                self.prefix + self.arch.hf_names[f"expert_{weight}"],
                "experts_down" in self.arch.hf_names,
            )
        else:
            return ()
        if in_one and template.format(self.index, 0) not in self.source.tensors:
            return ()
        return tuple(template.format(self.index, expert) for expert in range(n_experts))

    def name(self, weight: str) -> str:
        """Empty for gate and up in one tensor, where the file has them apart."""
        if not self.gguf:
            template = self.arch.hf_names.get(weight, "")
            return template and self.prefix + template.format(self.index)
        name = gguf_name(self.arch.gguf_names.get(weight) or GGUF_EXPERTS[weight], self.source.tensors, self.index)
        return "" if "gate_up" in weight and name not in self.source.tensors else name
