"""Places of the weights of latent attention in a file."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Protocol

from localrun.formats.source import TensorInfo, factor_name
from localrun.model.latent_sizes import LatentSizes
from localrun.model.shapes import Shapes
from localrun.model.weight_ref import WeightRef


class RefOf(Protocol):
    """Place of a weight of a layer by name and shape."""

    def __call__(self, weight: str, shape: tuple[int, ...]) -> WeightRef: ...


def latent_refs(
    ref: RefOf, tensors: Mapping[str, TensorInfo], n_heads: int, sizes: LatentSizes, shapes: Shapes
) -> Iterator[tuple[str, WeightRef]]:
    """Weights that share a tensor with others, and those of each head.

    Rows that turn are in one tensor with rows that do not: of queries in each head, of keys after those of the latent.
    """
    q = ref("q_b" if sizes.q_rank else "q", shapes["q_nope"])
    q = replace(q, file_shape=(n_heads * sizes.key_dim, q.shape[1]))
    kv_a = ref("kv_a", shapes["kv_a"])
    kv_a = replace(kv_a, file_shape=(sizes.rank + sizes.rope_dims, kv_a.shape[1]))
    of_heads, of_key = (((n, sizes.rope_dims) if sizes.interleaved else None) for n in (n_heads, 1))
    for name, first, interleaved in (("q_nope", 0, None), ("q_rope", sizes.nope_dims, of_heads)):
        starts = tuple(range(first, q.file_shape[0], sizes.key_dim))
        yield name, replace(q, shape=shapes[name], starts=starts, interleaved=interleaved)
    yield "kv_a", kv_a
    yield "k_rope", replace(kv_a, shape=shapes["k_rope"], first_row=sizes.rank, interleaved=of_key)
    for name in ("k_b", "v_b"):
        yield name, of_each_head(ref(name, shapes[name]), tensors, n_heads)


def of_each_head(ref: WeightRef, tensors: Mapping[str, TensorInfo], n_heads: int) -> WeightRef:
    """A matrix of each head, in a tensor [heads, rows, columns] or one after the other; each may have a scale."""
    info, scale = tensors.get(ref.name), tensors.get(factor_name(ref.name))
    n = n_heads if scale is not None and scale.shape == (n_heads,) else 1
    n_rows, n_cols = ref.shape
    one_by_one = info is not None and len(info.shape) == 2
    return replace(ref, n_experts=n, n_used=n, file_shape=() if one_by_one else (n_heads, n_rows // n_heads, n_cols))
