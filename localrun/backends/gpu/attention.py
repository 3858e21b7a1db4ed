"""Launches of attention, and of what happens to queries, keys and values before it.

Few rows split the keys of each among blocks of threads, many rows share them; either way gives the same bits. Keys and
values are those of a layer's stores, in any codec. `attention_blocks.py` says where the kernels of platforms differ.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from localrun.backends.gpu.attention_blocks import BLOCKS
from localrun.backends.gpu.attention_operands import AttentionOperands
from localrun.backends.gpu.attention_rules import NORMS, angles, places, rules
from localrun.backends.gpu.device import Device, Kernel, Launch
from localrun.backends.gpu.layer_cache import codec_defines
from localrun.backends.gpu.q8 import GROUP, RUN, q8_arguments
from localrun.backends.gpu.scratch import SPLIT_ROWS

if TYPE_CHECKING:
    from torch import Tensor

    from localrun.backends.gpu.layer_cache import LayerCache
    from localrun.backends.gpu.q8 import Q8
    from localrun.backends.gpu.step_tensors import StepTensors
    from localrun.ops.cache_layer import CacheLayer
    from localrun.ops.instructions import Attention, RopeAppend

HEAD_THREADS = 128  # of a block that has a head of one row
UNIT_THREADS = 256  # of a block that has a unit


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
    kernel, dim = of_heads(device, "rope_append", cache)
    return kernel.bind(
        (place.n_heads + n_stored, rows, 1),
        (HEAD_THREADS, 1, 1),
        *(q, k, v, op.q_weight, op.k_weight, cos, sin, sink_cos, sink_sin, step.query_scale),
        *(step.slots[place.group], ring_slots, *cache.planes, q_out, sink_q_out, n_heads, n_kv_heads, *dim),
        *(pairs, NORMS[op.qk_norm], int(op.v_norm), n_layers, index, op.eps),
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
    q8: Q8 | None = None,
) -> Iterator[Launch]:
    """Launch `op`, an Attention, on these operands: q -> out, f32 [rows, n_heads · head_dim].

    No sequence of the step has more than n_units · 512 tokens. `partial`: f32 [partial_numbers(…)], overwritten.
    n_alone: upper bound of the rows that share their keys with few others. q8: takes `out`, too (can_quantize).
    """
    of, place, blocks = AttentionOperands(step, op, cache, q, sink_query, out), cache.place, BLOCKS[device.ending]
    split = rows <= SPLIT_ROWS or not blocks.has_tiles(place.head_dim, cache.codec)
    if split:
        for row in range(0, rows, SPLIT_ROWS):
            n = min(SPLIT_ROWS, rows - row)
            yield from units(device, of, n_units, partial, n, first=row, ends=blocks.merge_ends, q8=q8)
    else:
        if n_alone:
            yield from units(device, of, n_units, partial, n_alone, which=step.alone)
        yield tiles(device, of, rows, step.is_alone if n_alone else None)
    if cache.codec.rotates and not (split and blocks.merge_ends):
        kernel, dim = of_heads(device, "rotate_heads", cache)
        yield kernel.bind((place.n_heads, rows, 1), (HEAD_THREADS, 1, 1), out, *dim)


def can_quantize(device: Device, place: CacheLayer, rows: int) -> bool:
    """Whether `attend` quantises what it gives, on the way: groups of 32 columns, in runs of 64, are of one head."""
    width = place.n_heads * place.head_dim
    return BLOCKS[device.ending].merge_ends and rows <= SPLIT_ROWS and place.head_dim % GROUP == width % RUN == 0


def of_heads(device: Device, name: str, cache: LayerCache) -> tuple[Kernel, tuple[int, ...]]:
    """A kernel of rope_append, and the size of heads where it takes that as an argument."""
    dim, defines = cache.place.head_dim, codec_defines(cache.codec)
    file = f"rope_append{device.ending}"
    if BLOCKS[device.ending].rope_knows_dim:
        return device.kernel(file, name, DIM=dim, **defines), ()
    return device.kernel(file, name, **defines), (dim,)


def units(
    device: Device,
    of: AttentionOperands,
    n_units: int,
    partial: Tensor,
    rows: int,
    *,
    first: int = 0,
    which: Tensor | None = None,
    ends: bool = False,
    q8: Q8 | None = None,
) -> Iterator[Launch]:
    """Launch the units of rows, from number `first` on or those that `which` names, each by itself, and the merge.

    With `ends` the merge turns heads back where they are turned, and quantises them.
    """
    op, place, n_places = of.op, of.cache.place, places(of.op, n_units)
    blocks, codec, dim = BLOCKS[device.ending], of.cache.codec, of.cache.place.head_dim
    tiles_of_group = -(-place.n_heads // place.n_kv_heads // blocks.columns(dim))
    defines, out = blocks.defines(dim, codec), of.out[first:]
    results = (op.sinks, partial, out) if blocks.finishes else (partial,)
    yield device.kernel(blocks.units_file(codec) + device.ending, "attend_units", **defines).bind(
        (n_places, place.n_kv_heads * tiles_of_group, rows),
        (UNIT_THREADS, 1, 1),
        *(*of.read(first), which, *results, *of.cache.sizes, *rules(op)),
        shared=blocks.units_bytes(dim, codec),
    )
    if n_places == 1 and blocks.finishes:
        return
    yield device.kernel(f"attention{device.ending}", "attend_merge", **defines).bind(
        (place.n_heads, rows, 1),
        (HEAD_THREADS, 1, 1),
        *(partial, op.sinks, of.step.positions[first:], which, out, n_places, *rules(op)[:2]),
        *((int(ends and codec.rotates), *q8_arguments(q8)) if blocks.merge_ends else ()),
    )


def tiles(device: Device, of: AttentionOperands, rows: int, is_alone: Tensor | None) -> Launch:
    """All rows but those that are alone, in tiles of neighbours that go through the keys together."""
    place, blocks = of.cache.place, BLOCKS[device.ending]
    macro, n_warps = blocks.tile_warps(place.head_dim, device.shared_bytes)
    defines = blocks.defines(place.head_dim, of.cache.codec) | {macro: n_warps}
    n_columns = rows * (place.n_heads // place.n_kv_heads)
    return device.kernel(f"attention_tiles{device.ending}", "attend_tiles", **defines).bind(
        (-(-n_columns // (blocks.columns(place.head_dim) * n_warps)), place.n_kv_heads, 1),
        (32 * n_warps, 1, 1),
        *(*of.read(), is_alone, of.op.sinks, of.out, rows, *of.cache.sizes, *rules(of.op)),
        shared=blocks.tiles_bytes(place.head_dim, n_warps),
    )
