"""Reading mixtures of experts: how many there are, and what a layer of them is. Torch-free."""

from dataclasses import replace

from localrun.base.errors import ModelFileError
from localrun.model.config import LayerSpec, Mixture
from localrun.model.fields import Fields
from localrun.ops.terms import Routing

EXPERT_ROWS = 16  # experts lie one after the other in layouts that interleave so many rows


def n_experts(fields: Fields) -> int:
    """Of a layer that is a mixture; 0 in a model that has none."""
    return int(fields["n_experts"] or fields["n_experts_hf"] or 0)


def with_experts(spec: LayerSpec, fields: Fields, normalize: bool) -> LayerSpec:
    """A layer as a mixture of the experts that the file speaks of, if it does."""
    n = n_experts(fields)
    if not n:
        return spec
    n_used, ffn_size = fields["n_experts_used"], fields["expert_ffn_size"] or spec.ffn_size
    if not n_used or n_used > n:
        raise fields.error(f"{n_used} of {n} experts cannot be used")
    if ffn_size % EXPERT_ROWS or fields["hidden_size"] % EXPERT_ROWS:
        raise ModelFileError("UNSUPPORTED", f"experts of {ffn_size} rows are not supported", path=fields.path)
    return replace(spec, ffn_size=ffn_size, mixture=Mixture(n, Routing(n_used, normalize=normalize)))
