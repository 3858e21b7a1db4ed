"""Matrices of latent attention that make keys and values of latents, where a file has both of a head in one (`kv_b`).

Here they are two tensors, as in GGUFs of llama.cpp: `v_b` [heads, dims, rank] has its rows as they are, `k_b` [heads,
rank, dims] those of keys transposed. Of types with more than a number in a block that one is in f32: no packed type
holds the transposed numbers exactly.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from localrun.base.dataclass import dataclass
from localrun.formats.checkpoints.joined import (
    Joined,
    JoinedTensor,
    OneTensor,
    ReadRows,
    Tensors,
    appears_as,
    misfit,
)
from localrun.formats.quant import QUANT_TYPES
from localrun.formats.source import TensorInfo, factor_name

BOTH = (".attn_kv_b.weight", ".kv_b_proj.weight")
_MOST_HEADS, _MOST_DIMS = 1 << 16, 1 << 20


@dataclass(frozen=True)
class ValueHalf(JoinedTensor):
    """Rows of each head from `first` on, of the `of_head` rows that it has in `both`."""

    both: JoinedTensor
    first: int
    of_head: int

    def read(self, read_rows: ReadRows, first_row: int, n_rows: int) -> bytearray:
        found = bytearray()
        for head, row, count in runs_in_heads(first_row, n_rows, self.info.shape[1]):
            found += self.both.read(read_rows, head * self.of_head + self.first + row, count)
        return found


@dataclass(frozen=True)
class KeyHalf(JoinedTensor):
    """The first rows of each head transposed, of the `of_head` rows that it has in `both`."""

    both: JoinedTensor
    of_head: int

    def read(self, read_rows: ReadRows, first_row: int, n_rows: int) -> bytearray:
        found = bytearray()
        for head, row, count in runs_in_heads(first_row, n_rows, self.info.shape[1]):
            found += self.turned_head(read_rows, head)[row : row + count].tobytes()
        return found

    def turned_head(self, read_rows: ReadRows, head: int) -> Any:
        """Numbers of a head [rank, dims]: of f32, or as bytes [rank, dims, bytes] of the file's own type."""
        import numpy as np

        from localrun.formats.floats import read_floats

        _, rank, dims = self.info.shape
        raw = np.frombuffer(self.both.read(read_rows, head * self.of_head, dims), np.uint8)
        stored = self.both.info.qtype
        numbers = raw.reshape(dims, rank, -1) if stored == self.info.qtype else read_floats(stored, raw, (dims, rank))
        return numbers.swapaxes(0, 1)


def with_halves(tensors: Tensors, joined: Joined, values: Mapping[str, Any]) -> tuple[Tensors, Joined]:
    """All tensors and the joined ones, halves in the place of what is both; `values` are those of the model.

    Raises ModelFileError for matrices that are not of its heads. What `values` do not say is left as it is.
    """
    names = [name for name in tensors if name.endswith(BOTH) and half_name(name, "k") not in tensors]
    sizes = head_sizes(values) if names else None
    if sizes is None:
        return tensors, joined
    kept, found = dict(tensors), dict(joined)
    for name in names:
        info = kept.pop(name)
        halves = halves_of(found.pop(name, OneTensor(info, (info,))), *sizes)
        if (whole := factor_name(name)) in found:
            factor = found.pop(whole)
            del kept[whole]
            for half in halves:
                own = factor_name(half.info.name)
                found[own] = replace(factor, info=replace(factor.info, name=own))
                kept[own] = found[own].info
        found |= {half.info.name: half for half in halves}
        kept |= {half.info.name: half.info for half in halves}
    return kept, found


def halves_of(both: JoinedTensor, n_heads: int, dims: int) -> tuple[KeyHalf, ValueHalf]:
    """The matrices for keys, of which a head has `dims` numbers, and for values. Raises ModelFileError."""
    info = both.info
    of_head = info.shape[0] // n_heads if len(info.shape) == 2 and info.shape[0] % n_heads == 0 else 0
    if of_head <= dims:
        told = (
            f"of shape {list(info.shape)} is not of {n_heads:,} heads with {dims:,} rows for keys and some for values"
        )
        raise misfit(info, told)
    rank = info.shape[1]
    of_keys, of_values = (n_heads, rank, dims), (n_heads, of_head - dims, rank)
    qtype = info.qtype if QUANT_TYPES[info.qtype].block_size == 1 else "F32"
    key_info = appears_as(half_name(info.name, "k"), of_keys, qtype, info)
    value_info = appears_as(half_name(info.name, "v"), of_values, info.qtype, info)
    return KeyHalf(key_info, both.parts, both, of_head), ValueHalf(value_info, both.parts, both, dims, of_head)


def runs_in_heads(first_row: int, n_rows: int, of_head: int) -> Iterator[tuple[int, int, int]]:
    """Split rows at the borders of heads -> head, first row within it, rows."""
    while n_rows:
        head, row = divmod(first_row, of_head)
        count = min(n_rows, of_head - row)
        yield head, row, count
        first_row, n_rows = first_row + count, n_rows - count


def half_name(both: str, half: str) -> str:
    """The name of the matrix of keys (`k`) or values (`v`) by that of both."""
    stem, _, ending = both.rpartition("kv_b")
    return f"{stem}{half}_b{ending}"


def head_sizes(values: Mapping[str, Any]) -> tuple[int, int] | None:
    """Heads, and numbers of a key that latents make, by the key-values of a GGUF or a config.json; None where they do
    not say so."""
    if (arch := values.get("general.architecture")) is not None:
        keys = ("attention.key_length_mla", "attention.key_length", "rope.dimension_count", "attention.head_count")
        of_both, of_cache, turned, n_heads = (values.get(f"{arch}.{key}") for key in keys)
        of_key = of_cache if of_both is None else of_both
        dims = of_key - turned if type(of_key) is type(turned) is int else None
    else:
        text = values.get("text_config")
        own = text if isinstance(text, dict) and text else values
        n_heads, dims = own.get("num_attention_heads"), own.get("qk_nope_head_dim")
    if type(n_heads) is not int or type(dims) is not int:
        return None
    return (n_heads, dims) if 0 < n_heads < _MOST_HEADS and 0 < dims < _MOST_DIMS else None


def is_half(info: TensorInfo) -> bool:
    """Whether a tensor is such a half."""
    return info.is_joined and info.name.endswith(tuple(half_name(both, half) for both in BOTH for half in "kv"))
