"""Launches of attention, and of what happens to queries, keys and values before it.

Few rows split the keys of each among blocks of threads, many rows share them; either way gives the same bits. Keys and
values are those of a layer's stores, in any codec.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from localrun.backends.gpu.attention_operands import AttentionOperands
from localrun.backends.gpu.attention_rules import NORMS, angles, places, rules
from localrun.backends.gpu.device import Device, Launch
from localrun.backends.gpu.layer_cache import codec_defines
from localrun.backends.gpu.scratch import SPLIT_ROWS, UNIT_TOKENS

if TYPE_CHECKING:
    from torch import Tensor

    from localrun.backends.gpu.layer_cache import LayerCache
    from localrun.backends.gpu.step_tensors import StepTensors
    from localrun.ops.instructions import Attention, RopeAppend
    from localrun.ops.kv import KVCodec

KEYS, COLUMNS, PART = 64, 8, 128  # of attention.cuh, and UNIT_TOKENS
THREADS = 128  # of a block that has a head of one row
F16, F32 = 16, 32  # bits of plain numbers
MAX_TILE_HEAD_DIM = 256  # beyond these registers do not hold what a tile sums up


def rope_append(
    device: Device,
    step: StepTensors,
    op: RopeAppend,
    cache: LayerCache,
    q: Tensor,
    k: Tensor | None,
    v: Tensor | None,
    q_out: Tensor,
    sink_q_out: Tensor | None,
    rows: int,
) -> Launch:
    """Launch `op`, a RopeAppend, on these operands: q, k and v, f32 [rows, heads · head_dim]."""
    place, n_stored = cache.place, 0 if k is None else 2 * cache.place.n_kv_heads
    cos, sin, sink_cos, sink_sin = angles(op, step)
    half = 0 if cos is None else cos.shape[-1]
    ring_slots = None if cache.ring is None else step.ring_slots[place.group]
    n_heads, n_kv_heads, n_layers, index = cache.sizes
    return device.kernel("rope_append.cu", "rope_append", **defines_of(cache.codec)).bind(
        (place.n_heads + n_stored, rows, 1),
        (THREADS, 1, 1),
        *(q, k, v, op.q_weight, op.k_weight, cos, sin, sink_cos, sink_sin, step.query_scale),
        *(step.slots[place.group], ring_slots, *cache.planes, q_out, sink_q_out, n_heads, n_kv_heads, place.head_dim),
        *(half, NORMS[op.qk_norm], int(op.v_norm), n_layers, index, op.eps),
    )


def attend(
    device: Device,
    step: StepTensors,
    op: Attention,
    cache: LayerCache,
    q: Tensor,
    sink_query: Tensor | None,
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
    of, place = AttentionOperands(step, op, cache, q, sink_query, out), cache.place
    if rows <= SPLIT_ROWS or place.head_dim > MAX_TILE_HEAD_DIM or cache.codec.k_bits == F32:
        for row in range(0, rows, SPLIT_ROWS):
            n = min(SPLIT_ROWS, rows - row)
            yield from units(device, of, n_units, partial, n, first=row)
    else:
        if n_alone:
            yield from units(device, of, n_units, partial, n_alone, which=step.alone)
        yield tiles(device, of, rows, step.is_alone if n_alone else None)
    if cache.codec.rotates:
        kernel = device.kernel("rope_append.cu", "rotate_heads", **defines_of(cache.codec))
        yield kernel.bind((place.n_heads, rows, 1), (THREADS, 1, 1), out, place.head_dim)


def defines_of(codec: KVCodec) -> dict[str, int]:
    """Macros that say how keys and values are stored; none for 16 bits."""
    return {} if codec.k_bits == codec.v_bits == F16 else codec_defines(codec)


def defines(cache: LayerCache) -> dict[str, int]:
    """Macros of the kernels of attention; those of floats know no others than the head's size."""
    return {"DIM": cache.place.head_dim} | ({} if cache.codec.k_bits == F32 else defines_of(cache.codec))


def units(
    device: Device,
    of: AttentionOperands,
    n_units: int,
    partial: Tensor,
    rows: int,
    *,
    first: int = 0,
    which: Tensor | None = None,
) -> Iterator[Launch]:
    """Launch the units of rows, from number `first` on or those that `which` names, each by itself, and the merge."""
    op, place, n_places = of.op, of.cache.place, places(of.op, n_units)
    tiles_of_group = -(-place.n_heads // place.n_kv_heads // COLUMNS)
    file, read, shared = "attention.cu", of.read(first), units_shared_bytes(place.head_dim)
    if of.cache.codec.k_bits == F32:
        keys, _, values, *_ = of.cache.planes
        file, shared = "attention_f32.cu", f32_shared_bytes(place.head_dim)
        read = (*of.queries(first), keys, values, *of.places(first))
    yield device.kernel(file, "attend_units", **defines(of.cache)).bind(
        (n_places, place.n_kv_heads * tiles_of_group, rows),
        (256, 1, 1),
        *(*read, which, partial, *of.cache.sizes, *rules(op)),
        shared=shared,
    )
    yield device.kernel("attention.cu", "attend_merge", **defines(of.cache)).bind(
        (place.n_heads, rows, 1),
        (THREADS, 1, 1),
        *(partial, op.sinks, of.step.positions[first:], which, of.out[first:], n_places, *rules(op)[:2]),
    )


def tiles(device: Device, of: AttentionOperands, rows: int, is_alone: Tensor | None) -> Launch:
    """All rows but those that are alone, in tiles of neighbours that go through the keys together."""
    place = of.cache.place
    n_warps = tile_warps(place.head_dim, device.shared_bytes)
    columns = rows * (place.n_heads // place.n_kv_heads)
    return device.kernel("attention_tiles.cu", "attend_tiles", **defines(of.cache), N_WARPS=n_warps).bind(
        (-(-columns // (COLUMNS * n_warps)), place.n_kv_heads, 1),
        (32 * n_warps, 1, 1),
        *(*of.read(), of.op.sinks, is_alone, of.out, rows, *of.cache.sizes, *rules(of.op)),
        shared=tiles_shared_bytes(place.head_dim, n_warps),
    )


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
