"""Launches of attention, and of what happens to queries, keys and values before it.

Few rows split the keys of each among blocks of threads, many rows share them; either way gives the same bits. Keys and
values are those of a BlockStore: f16 or f32 [blocks, layers of the group, 64, n_kv_heads, head_dim].
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from localrun.backends.gpu.attention_rules import NORMS, angles, places, rules
from localrun.backends.gpu.device import Device, Launch
from localrun.backends.gpu.scratch import SPLIT_ROWS, UNIT_TOKENS

if TYPE_CHECKING:
    from torch import Tensor

    from localrun.backends.gpu.step_tensors import StepTensors
    from localrun.ops.cache_layer import CacheLayer
    from localrun.ops.instructions import Attention, RopeAppend

KEYS, COLUMNS, PART = 64, 8, 128  # of attention.cuh, and UNIT_TOKENS
MAX_TILE_HEAD_DIM = 256  # beyond these registers do not hold what a tile sums up


def rope_append(
    device: Device,
    step: StepTensors,
    op: RopeAppend,
    place: CacheLayer,
    q: Tensor,
    k: Tensor | None,
    v: Tensor | None,
    keys: Tensor,
    values: Tensor,
    q_out: Tensor,
    sink_q_out: Tensor | None,
    rows: int,
) -> Launch:
    """Launch `op`, a RopeAppend, on these operands: q, k and v, f32 [rows, heads · head_dim]."""
    n_stored = 0 if k is None else 2 * place.n_kv_heads
    cos, sin, sink_cos, sink_sin = angles(op, step)
    half = 0 if cos is None else cos.shape[-1]
    defines = {"F32_CACHE": 1} if keys.dtype is torch.float32 else {}
    return device.kernel("rope_append.cu", "rope_append", **defines).bind(
        (place.n_heads + n_stored, rows, 1),
        (128, 1, 1),
        *(q, k, v, op.q_weight, op.k_weight, cos, sin, sink_cos, sink_sin, step.query_scale, step.slots[place.group]),
        *(keys, values, q_out, sink_q_out, place.n_heads, place.n_kv_heads, place.head_dim, half),
        *(NORMS[op.qk_norm], int(op.v_norm), keys.shape[1], place.index, op.eps),
    )


def attend(
    device: Device,
    step: StepTensors,
    op: Attention,
    place: CacheLayer,
    q: Tensor,
    sink_query: Tensor | None,
    keys: Tensor,
    values: Tensor,
    out: Tensor,
    rows: int,
    n_units: int,
    partial: Tensor,
    n_alone: int = 0,
) -> Iterator[Launch]:
    """Launch `op`, an Attention, on these operands: q -> out, f32 [rows, n_heads · head_dim].

    No sequence of the step has more than n_units · 512 tokens. `partial`: f32 [partial_numbers(…)], overwritten.
    n_alone: upper bound of the rows that share their keys with few others.
    """
    operands = AttentionBuffers(q, sink_query, keys, values, out)
    if rows <= SPLIT_ROWS or place.head_dim > MAX_TILE_HEAD_DIM or keys.dtype is torch.float32:
        for row in range(0, rows, SPLIT_ROWS):
            n = min(SPLIT_ROWS, rows - row)
            yield from units(device, step, op, place, operands, n_units, partial, n, first=row)
        return
    if n_alone:
        yield from units(device, step, op, place, operands, n_units, partial, n_alone, which=step.alone)
    yield tiles(device, step, op, place, operands, rows, step.is_alone if n_alone else None)


@dataclass(frozen=True, slots=True)
class AttentionBuffers:
    """Buffers that attention reads and writes."""

    q: Tensor
    sink_query: Tensor | None
    keys: Tensor
    values: Tensor
    out: Tensor


def units(
    device: Device,
    step: StepTensors,
    op: Attention,
    place: CacheLayer,
    of: AttentionBuffers,
    n_units: int,
    partial: Tensor,
    rows: int,
    *,
    first: int = 0,
    which: Tensor | None = None,
) -> Iterator[Launch]:
    """Launch the units of rows, from number `first` on or those that `which` names, each by itself, and the merge."""
    f32, n_places = of.keys.dtype is torch.float32, places(op, n_units)
    tiles_of_group = -(-place.n_heads // place.n_kv_heads // COLUMNS)
    sink_query = None if of.sink_query is None else of.sink_query[first:]
    positions = step.positions[first:]
    yield device.kernel("attention_f32.cu" if f32 else "attention.cu", "attend_units", DIM=place.head_dim).bind(
        (n_places, place.n_kv_heads * tiles_of_group, rows),
        (256, 1, 1),
        *(of.q[first:], sink_query, of.keys, of.values, positions, step.row_sequence[first:], *tables(step, place)),
        *(which, partial, place.n_heads, place.n_kv_heads, of.keys.shape[1], place.index, *rules(op)),
        shared=f32_shared_bytes(place.head_dim) if f32 else units_shared_bytes(place.head_dim),
    )
    yield device.kernel("attention.cu", "attend_merge", DIM=place.head_dim).bind(
        (place.n_heads, rows, 1),
        (128, 1, 1),
        *(partial, op.sinks, positions, which, of.out[first:], n_places, *rules(op)[:2]),
    )


def tiles(
    device: Device,
    step: StepTensors,
    op: Attention,
    place: CacheLayer,
    of: AttentionBuffers,
    rows: int,
    is_alone: Tensor | None,
) -> Launch:
    """All rows but those that are alone, in tiles of neighbours that go through the keys together."""
    n_warps = tile_warps(place.head_dim, device.shared_bytes)
    columns = rows * (place.n_heads // place.n_kv_heads)
    return device.kernel("attention_tiles.cu", "attend_tiles", DIM=place.head_dim, N_WARPS=n_warps).bind(
        (-(-columns // (COLUMNS * n_warps)), place.n_kv_heads, 1),
        (32 * n_warps, 1, 1),
        *(of.q, of.sink_query, of.keys, of.values, step.positions, step.row_sequence, *tables(step, place)),
        *(op.sinks, is_alone, of.out, rows, place.n_heads, place.n_kv_heads, of.keys.shape[1], place.index),
        *rules(op),
        shared=tiles_shared_bytes(place.head_dim, n_warps),
    )


def tables(step: StepTensors, place: CacheLayer) -> tuple[Tensor, Tensor, Tensor]:
    """Where kernels find the blocks of a sequence."""
    return step.table, step.table_at[place.group], step.sink[place.group]


def tile_warps(head_dim: int, shared_bytes: int) -> int:
    """Warps that share the keys of a tile: as many as shared memory has room for."""
    return next(n for n in (8, 4, 2, 1) if tiles_shared_bytes(head_dim, n) <= shared_bytes)


def query_bytes(head_dim: int) -> int:
    """Bytes of Query in attention.cuh."""
    return head_dim // 16 * 32 * 16 + COLUMNS * 4


def units_shared_bytes(head_dim: int) -> int:
    """Bytes of Shared in attention.cu."""
    of_warp = max(2 * COLUMNS * (KEYS + 8) * 2, COLUMNS * (min(head_dim, PART) + 4) * 4)
    return 2 * query_bytes(head_dim) + UNIT_TOKENS // KEYS * (of_warp + 2 * COLUMNS * 4)


def f32_shared_bytes(head_dim: int) -> int:
    """Bytes of Shared in attention_f32.cu."""
    return 4 * COLUMNS * (2 * head_dim + UNIT_TOKENS // KEYS * (KEYS + 32 + 2))


def tiles_shared_bytes(head_dim: int, n_warps: int) -> int:
    """Bytes of Shared in attention_tiles.cu."""
    part = min(head_dim, PART)
    key_stride, value_stride = part + (48 - part // 2 % 32) % 32 * 2, part + 8
    weights = 2 * COLUMNS * (KEYS + 8) * 2
    return n_warps * (query_bytes(head_dim) + weights) + 2 * KEYS * max(key_stride, value_stride) * 2
