"""rope_append and attention of the native library: right, and the same bits however a step is cut."""

import ctypes
import itertools
import math
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from localrun_testing.instruction_sets import codes_16_bits, pairwise
from localrun_testing.native import BAD_ARGUMENT, BLOCK, OK, NativeLayer, Rows, Shape, native_library
from torch import Tensor

from localrun.backends.reference.attention import attend, visible

NMSE = {"f32": 1e-11, "f16": 5e-5, "codes": 1e-6}  # against float attention on unrounded keys and values

MAPS = Path("/proc/self/maps")


@pytest.fixture
def library(isa: str) -> ctypes.CDLL:
    return native_library()


def limit(codec: str, isa: str) -> float:
    return NMSE["codes" if codec == "f16" and codes_16_bits(isa) else codec]


def make_rows(shape: Shape, n: int, seed: int, table: list[int], first: int = 0) -> Rows:
    g = torch.Generator().manual_seed(seed)
    widths = (shape.n_heads, shape.n_kv_heads, 0 if shape.value_dim else shape.n_kv_heads)
    q, k, v = (torch.randn(n, width * shape.head_dim, generator=g) for width in widths)
    return Rows(first, q, k, v, table)


def part(rows: Rows, start: int, n: int) -> Rows:
    cut = slice(start, start + n)
    return replace(rows, first=rows.first + start, q=rows.q[cut], k=rows.k[cut], v=rows.v[cut])


def expected(shape: Shape, rows: Rows) -> Tensor:
    """What the reference computes on keys and values as they are."""
    q, k = (x.view(rows.n, -1, shape.head_dim) for x in (rows.q, rows.k))
    v = k[..., : shape.value_dim] if shape.value_dim else rows.v.view(rows.n, -1, shape.head_dim)
    mask = visible(torch.arange(rows.n), torch.arange(rows.n), shape.window)
    return attend(q, k, v, mask, shape.scale, shape.softcap, shape.sinks).flatten(1)


def nmse(got: Tensor, wanted: Tensor) -> float:
    return float((got - wanted).square().sum() / wanted.square().sum())


def shuffled(n: int, seed: int) -> list[int]:
    return torch.randperm(n, generator=torch.Generator().manual_seed(seed)).tolist()


SINKS = torch.tensor([0.5, -1.0, 2.0, 0.0])
OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "all": {"softcap": 5.0, "window": 70, "sinks": SINKS},
    "window": {"window": 64},
    "sinks": {"sinks": SINKS},
}
CODECS = ("f16", "f32")
LATENTS: dict[str, Any] = {"n_kv_heads": 1, "value_dim": 16}  # beside heads of 16 or 24


def of_kind(shape: Shape, kind: str) -> Shape:
    """A shape, or one of latents."""
    return replace(shape, **LATENTS) if kind == "latents" else shape


BOTH = pytest.mark.parametrize("kind", ["heads", "latents"])


@cache
def long_case(head_dim: int, options: str) -> tuple[Shape, Rows, Tensor]:
    """A shape with one of the options, rows, and what the reference computes: the same for every instruction set."""
    shape = replace(Shape(head_dim=head_dim, scale=head_dim**-0.5), **OPTIONS[options])
    rows = make_rows(shape, 597, head_dim, shuffled(12, 1))
    return shape, rows, expected(shape, rows)


@pairwise(codec=CODECS, head_dim=(8, 24, 40, 64, 80, 96, 128, 256, 512), options=tuple(OPTIONS))
def test_attention_matches_the_reference(
    library: ctypes.CDLL, isa: str, codec: str, head_dim: int, options: str
) -> None:
    shape, rows, wanted = long_case(head_dim, options)
    layer = NativeLayer(library, replace(shape, codec=codec), 12, n_threads=2)
    assert nmse(layer.run(rows), wanted) < limit(codec, isa)
    layer.close()


@cache
def latent_case(head_dim: int, value_dim: int, n_heads: int, options: str) -> tuple[Shape, Rows, Tensor]:
    """As above, of latents; what is turned is much larger than the rest of keys, which counts as much all the same."""
    options_of = OPTIONS[options] | ({"sinks": torch.linspace(-1, 2, n_heads)} if options in ("all", "sinks") else {})
    shape = replace(Shape(n_heads, 1, head_dim, scale=head_dim**-0.5, value_dim=value_dim), **options_of)
    rows = make_rows(shape, 330, head_dim, shuffled(8, 1))
    rows.k[:, value_dim:] *= 100
    rows.q.unflatten(1, (n_heads, -1))[..., value_dim:] /= 100
    return shape, rows, expected(shape, rows)


@pairwise(
    codec=CODECS,
    dims=((576, 512), (320, 256), (48, 32), (40, 32), (24, 16)),  # of keys, of values
    n_heads=(4, 20, 1),
    options=tuple(OPTIONS),
)
def test_attention_over_latents_matches_the_reference(
    library: ctypes.CDLL, isa: str, codec: str, dims: tuple[int, int], n_heads: int, options: str
) -> None:
    shape, rows, wanted = latent_case(*dims, n_heads, options)
    layer = NativeLayer(library, replace(shape, codec=codec), 8, n_threads=2)
    whole = layer.run(rows)
    assert nmse(whole, wanted) < limit(codec, isa)
    assert torch.equal(layer.run(part(rows, 329, 1)), whole[329:])
    layer.close()


@pytest.mark.parametrize("values", ["alike", "one larger"])
@pytest.mark.parametrize("keys", ["one dim", "all dims"])
@pytest.mark.parametrize("head_dim", [8, 64, 512])
def test_sums_of_the_largest_codes_have_room(
    library: ctypes.CDLL, isa: str, head_dim: int, keys: str, values: str
) -> None:
    """Every key lies along every query, and values have one sign: no sums of codes of 16 bits are larger than these."""
    n, sign = 130, torch.where(torch.arange(130) % 3 > 0, 1.0, -1.0).unsqueeze(-1)
    along = torch.eye(head_dim)[3] if keys == "one dim" else torch.arange(head_dim).mul(5).cos().sign()
    v = torch.full((n, head_dim), 60000.0) - torch.arange(head_dim)
    if values == "one larger":
        v = torch.where(torch.arange(n).unsqueeze(-1) == 60, v, v / 1e6)
    shape = Shape(1, 1, head_dim, "f16", scale=1 / float(along.square().sum()) / 900)
    rows = Rows(0, 30 * along.expand(n, -1).contiguous(), 30 * sign * along, v, [2, 0, 1])
    layer = NativeLayer(library, shape, 3, n_threads=2)
    assert nmse(layer.run(rows), expected(shape, rows)) < limit("f16", isa)
    layer.close()


@pytest.mark.parametrize(("n_heads", "n_kv_heads"), [(1, 1), (7, 1), (6, 6), (15, 5), (128, 1)])
def test_any_number_of_heads_share_a_key(library: ctypes.CDLL, n_heads: int, n_kv_heads: int) -> None:
    shape = Shape(n_heads, n_kv_heads, head_dim=16, codec="f32", scale=0.25)
    layer = NativeLayer(library, shape, 4, n_threads=2)
    rows = make_rows(shape, 130, n_heads, [3, 0, 2])
    assert nmse(layer.run(rows), expected(shape, rows)) < NMSE["f32"]
    layer.close()


CHUNKS = {
    "one": [1090],
    "tokens": [1] * 1090,
    "ragged": [1, 13, 64, 100, 257, 16, 15, 3, 500, 121],
    "multiples": [64] * 17 + [2],
}


@pairwise(codec=CODECS, options=tuple(OPTIONS), kind=("heads", "latents"))
def test_chunks_threads_and_tables_do_not_show(library: ctypes.CDLL, codec: str, options: str, kind: str) -> None:
    shape = of_kind(replace(Shape(head_dim=40, codec=codec, scale=0.2), **OPTIONS[options]), kind)
    rows = make_rows(shape, 1090, 5, list(range(18)))
    results = []
    for seed, (chunks, n_threads) in enumerate(zip(CHUNKS.values(), (1, 2, 3, 8), strict=True)):
        layer = NativeLayer(library, shape, 24, n_threads)
        moved = replace(rows, table=shuffled(24, seed)[:18])
        starts = itertools.accumulate([0, *chunks[:-1]])
        results.append(torch.cat([layer.run(part(moved, at, n)) for at, n in zip(starts, chunks, strict=True)]))
        layer.close()
    assert all(torch.equal(result, results[0]) for result in results[1:])


@BOTH
@pytest.mark.parametrize("codec", ["f16", "f32"])
def test_what_else_is_in_the_step_does_not_show(library: ctypes.CDLL, codec: str, kind: str) -> None:
    """Three sequences: alone, and together in ragged steps of decode rows and prefill chunks."""
    shape = of_kind(Shape(head_dim=24, codec=codec, window=200, sinks=SINKS), kind)
    tables = torch.tensor(shuffled(40, 9)).split(13)
    sequences = [make_rows(shape, n, n, table.tolist()) for n, table in zip((800, 530, 140), tables, strict=False)]
    layer = NativeLayer(library, shape, 40, n_threads=3)
    alone = [layer.run(rows) for rows in sequences]
    layer.pool.zero_()
    done = [0, 0, 0]
    pieces: list[list[Tensor]] = [[], [], []]
    for sizes in itertools.cycle([(1, 100, 0), (500, 1, 20), (1, 1, 1), (3, 200, 64), (0, 17, 2), (150, 31, 1)]):
        cut = [min(size, rows.n - at) for size, rows, at in zip(sizes, sequences, done, strict=True)]
        present = [i for i in range(3) if cut[i]]
        if present:
            out = layer.run(*(part(sequences[i], done[i], cut[i]) for i in present))
            for i, piece in zip(present, out.split([cut[i] for i in present]), strict=True):
                pieces[i].append(piece)
                done[i] += cut[i]
        if done == [800, 530, 140]:
            break
    layer.close()
    for got, wanted in zip(pieces, alone, strict=True):
        assert torch.equal(torch.cat(got), wanted)


@BOTH
@pytest.mark.parametrize("codec", ["f16", "f32"])
def test_free_blocks_and_slots_not_written_yet_may_hold_anything(library: ctypes.CDLL, codec: str, kind: str) -> None:
    shape = of_kind(Shape(head_dim=40, codec=codec), kind)
    rows = make_rows(shape, 300, 2, [4, 0, 3, 6, 1])
    results = []
    for poison in (0x00, 0xFF):
        layer = NativeLayer(library, shape, 8, n_threads=2)
        layer.pool.fill_(poison)  # NaN in every codec
        pieces = [part(rows, 0, 137), *(part(rows, i, 1) for i in range(137, 146)), part(rows, 146, 154)]
        results.append(torch.cat([layer.run(piece) for piece in pieces]))
        layer.close()
    assert torch.isfinite(results[1]).all()
    assert torch.equal(*results)


@BOTH
@pytest.mark.parametrize("codec", ["f16", "f32"])
def test_what_left_the_window_may_be_anything(library: ctypes.CDLL, codec: str, kind: str) -> None:
    """Nothing before position 140 was ever stored, and blocks that left the window are not in the table."""
    window = 100
    shape = of_kind(Shape(head_dim=40, codec=codec, window=window), kind)
    whole = make_rows(shape, 1300, 2, shuffled(21, 4))
    layer = NativeLayer(library, shape, 21, n_threads=2)
    wanted = layer.run(whole)
    layer.pool.fill_(0xFF)
    out = [layer.run(part(whole, at, n)) for at, n in ((140, 1), (141, 120), (261, 1))]
    at = 262
    for n in (1, 1, 30, 1, 5, 400, 1, 1, 200, 64, 300, 33):
        first = (at - window + 1) // BLOCK
        rows = replace(part(whole, at, n), table=whole.table[first:], first_block=first)
        out.append(layer.run(rows))
        at += n
    layer.close()
    begin = 140 + window
    assert torch.equal(torch.cat(out)[begin - 140 :], wanted[begin:at])


def test_many_sequences_in_a_step(library: ctypes.CDLL) -> None:
    """As many as the states of their units have room for are cut into units, the rest are not; no row shows it."""
    shape = Shape(n_heads=128, n_kv_heads=1, head_dim=64, codec="f16")
    rows = make_rows(shape, 1100, 3, shuffled(18, 3))
    layer = NativeLayer(library, shape, 18, n_threads=2)
    wanted = layer.run(rows)
    sizes = [15, 1, 15, 16, 2] + [15] * 20
    ends = [1100, 40, 600, 1100, 512] + [1100 - i for i in range(20)]
    together = layer.run(*(part(rows, end - n, n) for end, n in zip(ends, sizes, strict=True)))
    assert torch.equal(together, torch.cat([wanted[end - n : end] for end, n in zip(ends, sizes, strict=True)]))
    layer.close()


@pytest.mark.skipif(sys.platform != "linux", reason="only linux says what is mapped: not windows, not macos")
@BOTH
@pytest.mark.parametrize("n_sequences", [1, 4, 40])
def test_what_attention_keeps_is_known_before(n_sequences: int, kind: str) -> None:
    native = native_library()
    shape = of_kind(Shape(n_heads=128, n_kv_heads=1, head_dim=64, codec="f16"), kind)
    layer = NativeLayer(native, shape, 18, n_threads=2)
    rows = make_rows(shape, 1100, 3, list(range(18)))
    sizes = [15] + [1] * (n_sequences - 1)
    step, _keep = layer.step(*(part(rows, 1100 - n, n) for n in sizes))
    before = MAPS.read_text()  # parsed later: that makes objects, for which Python maps memory of its own
    assert native.lr_program_run(layer.executor, ctypes.byref(step)) == OK
    after = MAPS.read_text()
    native.lr_attention_bytes.restype = ctypes.c_int64
    known = native.lr_attention_bytes(shape.n_heads, shape.value_dim or shape.head_dim, n_sequences, 1100)
    assert 0 <= new_bytes(writable_spans(before), writable_spans(after)) - known < 128 << 10
    layer.close()


def writable_spans(maps: str) -> list[tuple[int, int]]:
    """Memory of this process that it may write to, in ascending order."""
    lines = [line.split() for line in maps.splitlines()]
    edges = [line[0].split("-") for line in lines if line[1].startswith("rw")]
    return [(int(start, 16), int(end, 16)) for start, end in edges]


def new_bytes(before: list[tuple[int, int]], after: list[tuple[int, int]]) -> int:
    """What has come; what other tests left behind may go meanwhile."""
    both = sum(max(0, min(a_end, b_end) - max(a, b)) for a, a_end in after for b, b_end in before)
    return sum(end - start for start, end in after) - both


def test_one_key_is_its_value(library: ctypes.CDLL) -> None:
    """exp(0) is exactly 1, and a hidden key adds exactly nothing."""
    shape = Shape(head_dim=16, codec="f32", scale=3.0)
    layer = NativeLayer(library, shape, 1, n_threads=1)
    rows = make_rows(shape, 1, 1, [0])
    wanted = rows.v.view(1, 2, 1, 16).expand(1, 2, 2, 16).reshape(1, 64)
    assert torch.equal(layer.run(rows), wanted)
    layer.close()


@pairwise(broken=("q", "k", "v", "latent", "k_rope"), codec=CODECS, has_sinks=(False, True))
def test_nan_is_not_hidden(library: ctypes.CDLL, codec: str, broken: str, has_sinks: bool) -> None:
    """A query of which nothing is a number sees no greatest score, as one that has seen nothing yet."""
    shape = Shape(head_dim=24, codec=codec, softcap=4.0, sinks=SINKS if has_sinks else None)
    shape = of_kind(shape, "latents" if broken in ("latent", "k_rope") else "heads")
    layer = NativeLayer(library, shape, 3, n_threads=2)
    rows = make_rows(shape, 150, 1, [2, 0, 1])
    if broken in ("latent", "k_rope"):
        rows.k[100, 3 if broken == "latent" else -3] = math.nan
    else:
        getattr(rows, broken)[100].fill_(math.nan)
    out = layer.run(rows)
    assert torch.isnan(out[100]).all()
    assert torch.isfinite(out[:100]).all()
    layer.close()


def test_extreme_scores_stay_finite(library: ctypes.CDLL) -> None:
    for softcap in (None, 30.0):
        shape = Shape(head_dim=16, codec="f16", scale=1.0, softcap=softcap)
        layer = NativeLayer(library, shape, 10, n_threads=2)
        rows = make_rows(shape, 600, 3, list(range(10)))
        rows = replace(rows, q=rows.q * 1e4, k=rows.k * 1e6)  # keys beyond ±65504 are clamped
        out = layer.run(rows)
        assert torch.isfinite(out).all()
        assert float(out.abs().max()) <= float(rows.v.abs().max()) * 1.01
        layer.close()


@pairwise(codec=CODECS, dims=((8, 0), (24, 0), (72, 0), (24, 16), (576, 512)))
def test_nothing_past_a_buffer_is_touched(library: ctypes.CDLL, codec: str, dims: tuple[int, int]) -> None:
    """Every buffer ends where memory ends: q, k, v and the outputs at their last row, the pool at its last block."""
    shape = Shape(n_kv_heads=1 if dims[1] else 2, head_dim=dims[0], codec=codec, window=90, value_dim=dims[1])
    layer = NativeLayer(library, shape, 3, n_threads=2, max_rows=137, guarded=True)
    rows = make_rows(shape, 137, 1, [2, 0, 1])
    assert nmse(layer.run(rows), expected(shape, rows)) < NMSE[codec]
    layer.close()


@BOTH
def test_too_small_buffers_are_refused(library: ctypes.CDLL, kind: str) -> None:
    layer = NativeLayer(library, of_kind(Shape(), kind), 1, n_threads=1)
    for name in layer.shape.widths.keys() - {"sink_turned"}:
        layer.values[name].width -= 8
        executor = ctypes.c_void_p()
        arguments = (ctypes.byref(layer.program), layer.threads, 4, ctypes.byref(executor))
        assert library.lr_program_create(*arguments) == BAD_ARGUMENT
        layer.values[name].width += 8
    layer.close()
