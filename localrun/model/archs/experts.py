"""Mixtures of experts: rules of an architecture, and the layers they make. Torch-free."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

from localrun.base.dataclass import dataclass
from localrun.base.errors import ModelFileError
from localrun.formats.source import TensorInfo
from localrun.model.config import LayerSpec, Mixture
from localrun.model.fields import Fields
from localrun.ops.types import Routing

EXPERT_ROWS = 16  # rows that layouts interleave; experts lie one after the other in them
GATING: dict[int, Literal["softmax", "sigmoid"]] = {1: "softmax", 2: "sigmoid"}  # `expert_gating_func` of a GGUF


@dataclass(frozen=True, slots=True)
class ExpertRules:
    """Facts about experts that the files of an architecture leave out."""

    score: Literal["softmax", "sigmoid"] = "softmax"  # where a GGUF does not say
    normalize: bool = True  # weights of the chosen ones sum to one, where a GGUF does not say
    hf_normalize: bool = True  # likewise where a checkpoint does not
    group_rank: Literal[1, 2] = 2
    choice_bias: bool = False
    biases: bool = False  # of the router and of every expert
    shared_gate: bool = False  # the shared expert counts as much as a gate of its own says
    transposed: bool | None = False  # checkpoints have all experts as [n_experts, columns, rows]; None: some of them
    beside_dense: bool = False  # the dense network stays, as an expert that all tokens use; each has norms of its own
    in_turns: bool = False  # there gate and up, where they are one tensor, take turns row by row

    def layer(self, dense: LayerSpec, fields: Fields) -> LayerSpec:
        """A layer whose feed-forward part is the mixture that the file describes."""
        n, n_used = fields.required("n_experts"), fields["n_experts_used"]
        ffn_size = fields["expert_ffn_size"] or dense.ffn_size
        if not n_used or n_used > n:
            raise fields.error(f"{n_used} of {n} experts cannot be used")
        if ffn_size % EXPERT_ROWS or fields["hidden_size"] % EXPERT_ROWS:
            raise ModelFileError("UNSUPPORTED", f"experts of {ffn_size} rows are not supported", path=fields.path)
        mixture = Mixture(
            n_experts=n,
            routing=self.routing(fields),
            shared_size=dense.ffn_size if self.beside_dense else self.shared_size(fields, ffn_size),
            shared_gate=self.shared_gate,
            choice_bias=self.choice_bias,
            biases=self.biases,
            apart=self.beside_dense,
        )
        return replace(dense, ffn_size=ffn_size, mixture=mixture)

    def are_transposed(self, tensors: Mapping[str, TensorInfo]) -> bool:
        """Whether the tensors of a checkpoint are [n_experts, columns, rows], by their shapes where only they tell."""
        if self.transposed is not None:
            return self.transposed
        gate_up, down = (
            next((info for name, info in tensors.items() if name.endswith(f".experts.{part}")), None)
            for part in ("gate_up_proj", "down_proj")
        )
        if gate_up is None or down is None or not len(gate_up.shape) == len(down.shape) == 3:
            return False
        return gate_up.is_turned or gate_up.shape[2] == 2 * down.shape[1]

    def shared_size(self, fields: Fields, ffn_size: int) -> int:
        """Width of all shared experts together; `ffn_size` is that of a routed one."""
        return int(fields["shared_ffn_size"] or fields["n_shared_experts"] * ffn_size)

    def routing(self, fields: Fields) -> Routing:
        n, n_used, n_groups = fields["n_experts"], fields["n_experts_used"], fields["n_expert_groups"] or 1
        n_groups_used = fields["n_expert_groups_used"] or n_groups
        if n % n_groups or n_groups_used > n_groups or n_used > n // n_groups * n_groups_used:
            raise fields.error(f"{n_used} of {n} experts cannot be chosen from {n_groups_used} of {n_groups} groups")
        if n_groups > 1 and n // n_groups < self.group_rank:
            raise fields.error(f"groups of {n // n_groups} experts cannot be ranked by {self.group_rank}")
        usual = self.normalize if fields.format == "gguf" else self.hf_normalize
        said = fields["normalize_experts"]
        return Routing(
            n_used,
            score=self.read_score(fields),
            normalize=usual if said is None else said,
            scale=fields["expert_scale"] or 1.0,  # a GGUF of some writers has 0 where there is none
            n_groups=n_groups,
            n_groups_used=n_groups_used,
            group_rank=self.group_rank,
        )

    def read_score(self, fields: Fields) -> Literal["softmax", "sigmoid"]:
        number = fields["expert_gating"]
        if number and number not in GATING:
            raise ModelFileError("UNSUPPORTED", f"expert_gating_func {number} is not supported", path=fields.path)
        return GATING[number] if number else self.score
