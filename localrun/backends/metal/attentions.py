"""Launches of attention, and of what happens to queries, keys and values before it.

Few rows split the keys of each among threadgroups, many rows share them; either way gives the same bits. Keys and
values are those of a layer's stores, in any codec.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from localrun.backends.gpu.attention_operands import AttentionOperands
from localrun.backends.gpu.attention_rules import NORMS, angles, places, rules
from localrun.backends.gpu.device import Device, Launch
from localrun.backends.gpu.layer_cache import codec_defines
from localrun.backends.gpu.scratch import SPLIT_ROWS

if TYPE_CHECKING:
    from torch import Tensor

    from localrun.backends.gpu.layer_cache import LayerCache
    from localrun.backends.gpu.step_tensors import StepTensors
    from localrun.ops.instructions import Attention, RopeAppend

THREADS = 128  # of a threadgroup that has a head of one row


def columns(head_dim: int) -> int:
    """Queries that a simdgroup takes through the keys together: COLUMNS of attention_block.metal."""
    return 4 if head_dim > 128 else 8


def defines(cache: LayerCache) -> dict[str, int]:
    """Macros of the kernels that read or write a layer's cache."""
    return {"DIM": cache.place.head_dim, **codec_defines(cache.codec)}


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
    pairs = 0 if cos is None else cos.shape[-1]
    ring_slots = None if cache.ring is None else step.ring_slots[place.group]
    n_heads, n_kv_heads, n_layers, index = cache.sizes
    return device.kernel("rope_append.metal", "rope_append", **defines(cache)).bind(
        (place.n_heads + n_stored, rows, 1),
        (THREADS, 1, 1),
        *(q, k, v, op.q_weight, op.k_weight, cos, sin, sink_cos, sink_sin, step.query_scale),
        *(step.slots[place.group], ring_slots, *cache.planes, q_out, sink_q_out, n_heads, n_kv_heads, pairs),
        *(NORMS[op.qk_norm], int(op.v_norm), n_layers, index, op.eps),
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
    of = AttentionOperands(step, op, cache, q, sink_query, out)
    if rows <= SPLIT_ROWS:
        yield from units(device, of, n_units, partial, rows)
    else:
        if n_alone:
            yield from units(device, of, n_units, partial, n_alone, which=step.alone)
        yield tiles(device, of, rows, step.is_alone if n_alone else None)
    if cache.codec.rotates:
        dim, n_heads = cache.place.head_dim, cache.place.n_heads
        kernel = device.kernel("rope_append.metal", "rotate_heads", **defines(cache))
        yield kernel.bind((n_heads, rows, 1), (THREADS, 1, 1), out.view(rows, n_heads, dim))


def units(
    device: Device, of: AttentionOperands, n_units: int, partial: Tensor, rows: int, which: Tensor | None = None
) -> Iterator[Launch]:
    """Launch the units of rows, the first or those that `which` names, each by itself, and the merge."""
    cache, op, n_places = of.cache, of.op, places(of.op, n_units)
    place = cache.place
    tiles_of_head = -(-place.n_heads // place.n_kv_heads // columns(place.head_dim))
    yield device.kernel("attention.metal", "attend_units", **defines(cache)).bind(
        (n_places, place.n_kv_heads * tiles_of_head, rows),
        (256, 1, 1),
        *(*of.read(), which, op.sinks, partial, of.out, *cache.sizes, *rules(of.op)),
    )
    if n_places > 1:
        yield device.kernel("attention.metal", "attend_merge", **defines(cache)).bind(
            (place.n_heads, rows, 1),
            (THREADS, 1, 1),
            *(partial, op.sinks, of.step.positions, which, of.out, n_places, *rules(op)[:2]),
        )


def tiles(device: Device, of: AttentionOperands, rows: int, is_alone: Tensor | None) -> Launch:
    """All rows but those that are alone, in tiles of neighbours that go through the keys together."""
    place = of.cache.place
    n = simdgroups(place.head_dim)
    n_columns = rows * (place.n_heads // place.n_kv_heads)
    kernel = device.kernel("attention_tiles.metal", "attend_tiles", **defines(of.cache), N_SIMDGROUPS=n)
    return kernel.bind(
        (-(-n_columns // (columns(place.head_dim) * n)), place.n_kv_heads, 1),
        (32 * n, 1, 1),
        *(*of.read(), is_alone, of.op.sinks, of.out, rows, *of.cache.sizes, *rules(of.op)),
    )


def simdgroups(head_dim: int) -> int:
    """Simdgroups of a threadgroup of tiles: as many as threadgroup memory holds."""
    return 2 if head_dim > 256 else 4
