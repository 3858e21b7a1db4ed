"""Attention of the native library over every codec, shape and option: right, and the same bits however it is run."""

import math
import random
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
import torch
from localrun_testing.instruction_sets import all_here, native, pairwise, using
from localrun_testing.kv_cases import CASES, NMSE, Blocks, KVCase, nmse, run, sizes, step
from localrun_testing.native import BAD_ARGUMENT, NativeLayer, Rows, Shape, native_library

from localrun.backends.cpu.executor import CpuExecutor
from localrun.backends.cpu.library import NativeLibrary
from localrun.backends.reference.executor import ReferenceExecutor
from localrun.backends.reference.kv_codes import encode
from localrun.base.errors import EngineError
from localrun.ops.interface import PlainKV
from localrun.ops.layouts import F32
from localrun.ops.types import NUMERICS_VERSION

MakeExecutor = Callable[..., CpuExecutor]
CODED = ("q8", "k8v4", "q4")


@pytest.fixture(params=dict.fromkeys((all_here()[-1:] or ("generic",)) + native()[-1:]))
def strong_isa(request: pytest.FixtureRequest) -> Iterator[str]:
    """The strongest of this machine, and AMX by a model: on others a sample runs."""
    with using(request.param):
        yield request.param


@pytest.mark.parametrize("case", CASES, ids=str)
def test_it_is_a_loop_over_queries(case: KVCase, strong_isa: str, executor: MakeExecutor) -> None:
    chunks = [1, 62, 2, case.n_tokens - 66, 1]
    out = run(case, executor(case), chunks, seed=random.Random(str(case)).randrange(99), poison=True)
    assert nmse(out[case.telling_rows], case.expected(case.telling_rows)) < NMSE[case.codec]


@pytest.mark.parametrize("codec", CODED)
def test_every_instruction_set_is(codec: str, isa: str, executor: MakeExecutor) -> None:
    for case in (KVCase(codec, 136, 4, 1, 150), KVCase(codec, 24, 2, 2, 150, sink_window=70, sinks=True)):
        whole, tokens = run(case, executor(case), poison=True), run(case, executor(case), [1] * 150, 1, poison=True)
        assert torch.equal(whole, tokens)
        assert nmse(whole[case.telling_rows], case.expected(case.telling_rows)) < 5e-4


EXACT = [
    *(KVCase(codec, 64, n_tokens=600) for codec in CODED),
    *(KVCase(codec, 40, 6, 2, 600, window=100, softcap=4.0, sinks=True) for codec in CODED),
    *(KVCase(codec, 192, 2, 1, 600, sink_window=130) for codec in CODED),
    *(KVCase(codec, 64, 16, 2, 600, window=window, sinks=True) for codec in CODED for window in (None, 128)),
]


@pytest.mark.parametrize("case", EXACT, ids=str)
def test_chunks_threads_and_tables_do_not_show(case: KVCase, strong_isa: str, executor: MakeExecutor) -> None:
    whole = run(case, executor(case))
    ragged = [1, 13, 64, 100, 57, 16, 15, 3, 1, 1, 200, 121, 8]
    for seed, (chunks, threads) in enumerate((([450] + [1] * 150, 1), (ragged, 3), ([64] * 9 + [24], 2)), 1):
        assert torch.equal(run(case, executor(case, threads), chunks, seed, poison=True), whole)
    again = executor(case)
    assert torch.equal(run(case, again, ragged, seed=5), whole)
    assert torch.equal(run(case, again, seed=6), whole)  # over what another run left in the blocks


@pytest.mark.parametrize("codec", CODED)
def test_a_branch_computes_what_a_fresh_run_does(codec: str, executor: MakeExecutor) -> None:
    """Two sequences share blocks 0 and 1; the second takes copies of block 2, in both forms, and goes on from there."""
    case = KVCase(codec, n_tokens=230)
    model = executor(case)
    whole = run(case, model)
    blocks = Blocks.of(case, model, *sizes(case), seed=3, poison=True)
    step(case, model, blocks.view(0, 170), 0, 170)
    coded, ring = blocks.free.pop(), blocks.free_ring.pop()
    model.copy_block(0, blocks.coded[2], coded)
    model.copy_ring(0, blocks.ring[2], ring)
    step(case, model, blocks.view(170, 200), 170, 30)
    blocks.coded[2], blocks.ring[2] = coded, ring
    for number in (3,):
        blocks.coded.pop(number), blocks.ring.pop(number)
    assert torch.equal(step(case, model, blocks.view(170, 230), 170, 60), whole[170:])


@pytest.mark.parametrize("codec", CODED)
def test_replayed_rows_leave_codes_alone(codec: str, executor: MakeExecutor) -> None:
    """Rows below write_from read stored codes, put their 16-bit values back, and give what they gave."""
    case = KVCase(codec, n_tokens=200)
    model = executor(case)
    blocks = Blocks.of(case, model, *sizes(case), seed=1, poison=True)
    whole = step(case, model, blocks.view(0, 200), 0, 200)
    stored = [model.read_block(0, block) for block in blocks.coded.values()]
    for number in (2, 3):
        model.write_ring(0, blocks.ring[number], b"\xff" * model.ring_bytes(0))
    view = replace(blocks.view(128, 200), write_from=(200,))
    model.write_block(0, blocks.coded[2], b"\xee" * model.block_bytes(0))  # what no row of its own reads
    stored[2] = b"\xee" * model.block_bytes(0)
    last = 192 - 128
    assert torch.equal(step(case, model, view, 128, 72)[:last], whole[128:192])
    assert [model.read_block(0, block) for block in blocks.coded.values()] == stored


@pytest.mark.parametrize("codec", ["f16", *CODED])
def test_what_left_the_window_may_be_lost(codec: str, executor: MakeExecutor) -> None:
    """Begun in the middle, with nothing but poison before: from one window later on, rows are what they were."""
    case = KVCase(codec, n_tokens=450, window=70)
    late = run(case, executor(case), [60, 5, 100, 1, 24], poison=True, start=260)
    assert torch.equal(late[69:], run(case, executor(case))[329:])


@pytest.mark.parametrize("codec", CODED)
@pytest.mark.parametrize("head_dim", [8, 40, 64, 128, 136, 256, 512])
def test_codes_are_those_of_the_codec(codec: str, head_dim: int, executor: MakeExecutor) -> None:
    """A block filled with plain numbers, exported as codes; and imported codes come back as they were."""
    case = KVCase(codec, head_dim, n_tokens=64)
    model = executor(case)
    pool, g = model.blocks[0], torch.Generator().manual_seed(1)
    pool.use([0, 1])
    x = torch.randn(2, 64, 2, head_dim, generator=g) * torch.logspace(-9, 6, 128).view(1, 64, 2, 1)
    x[0, 0], x[1, 1] = 0.0, 5.0
    model.calls.kv_import(pool.shape(case.layer), pool.at(0), *(part.data_ptr() for part in x))
    for got, part, bits in zip(model.kv_export(0, 0), x, (case.kv_codec.k_bits, case.kv_codec.v_bits), strict=True):
        assert same(got, encode(part, bits))
    keys, values = model.kv_export(0, 0)
    model.kv_import(0, 1, keys, values)
    assert all(same(*pair) for pair in zip(model.kv_export(0, 1), (keys, values), strict=True))
    model.write_block(0, 0, model.read_block(0, 1))
    assert all(same(*pair) for pair in zip(model.kv_export(0, 0), (keys, values), strict=True))


def same(a: PlainKV, b: PlainKV) -> bool:
    pairs = ((a.codes, b.codes), (a.scale, b.scale), (a.offset, b.offset))
    return all(y is None if x is None else y is not None and torch.equal(x, y) for x, y in pairs)


@pytest.mark.parametrize("codec", ["f16", "f32", *CODED])
def test_another_backend_takes_over(codec: str, executor: MakeExecutor) -> None:
    """Blocks computed by the reference and moved here go on as they would have there."""
    case = KVCase(codec, n_tokens=150, sink_window=100)
    n_blocks, n_ring = sizes(case)
    reference = ReferenceExecutor(case.request(case.forward(F32), n_blocks, n_ring), torch.device("cpu"))
    native = executor(case)
    there, here = (Blocks.of(case, one, *sizes(case), seed=7, poison=False) for one in (reference, native))
    step(case, reference, there.view(0, 130), 0, 130)
    view = here.view(0, 130)
    for block in view.table[0]:
        native.kv_import(0, block, *reference.kv_export(0, block))
    for block in view.ring[0] if view.ring else ():
        native.kv_import(0, block, *reference.kv_export(0, block, ring=True), ring=True)
    wanted = step(case, reference, there.view(130, 150), 130, 20)
    assert nmse(step(case, native, here.view(130, 150), 130, 20), wanted) < NMSE[codec]


@pytest.mark.parametrize("codec", CODED)
def test_nothing_past_a_buffer_is_touched(codec: str) -> None:
    """Both pools end where memory ends."""
    for head_dim in (8, 24, 136):
        shape = Shape(head_dim=head_dim, codec=codec, window=90)
        layer = NativeLayer(native_library(), shape, 3, n_threads=2, max_rows=137, guarded=True, n_ring=3)
        q, k, v = (torch.randn(137, heads * head_dim) for heads in (4, 2, 2))
        assert torch.isfinite(layer.run(Rows(0, q, k, v, [2, 0, 1], ring=[1, 0, 2]))).all()
        layer.close()


@pairwise(broken=("q", "k", "v"), codec=CODED)
def test_nan_is_not_hidden_and_infinity_is_clamped(codec: str, broken: str, isa: str) -> None:
    for value, sinks in ((math.nan, None), (math.nan, torch.zeros(4)), (math.inf, None), (-1e30, None)):
        shape = Shape(head_dim=16, codec=codec, sinks=sinks)
        layer = NativeLayer(native_library(), shape, 4, n_threads=1, n_ring=4)
        q, k, v = (torch.randn(200, heads * 16) for heads in (4, 2, 2))
        {"q": q, "k": k, "v": v}[broken][70] = value
        out = layer.run(Rows(0, q, k, v, [2, 0, 3, 1], ring=[0, 1, 2, 3]))
        assert torch.isfinite(out[:70]).all()
        if math.isnan(value):
            rows = slice(70, 71) if broken == "q" else slice(70, 200)  # as codes too, from row 128 on
            assert torch.isnan(out[rows]).all()
        elif broken != "q":
            assert torch.isfinite(out).all()
        layer.close()


def test_steps_without_their_blocks_are_refused() -> None:
    shape = Shape(codec="q8", sink_window=64, rope=True)
    layer = NativeLayer(native_library(), shape, 3, n_threads=1, n_ring=3)
    q, k, v = (torch.randn(2, heads * 64) for heads in (4, 2, 2))
    rows = Rows(70, q, k, v, [0, 1], ring=[1], ring_first=1, ring_sink=0)
    angles = torch.ones(2, 32), torch.zeros(2, 32)
    refused = [
        (replace(rows, ring_first=2), angles),  # its own block is not in the ring
        (replace(rows, ring_first=-1), angles),
        (replace(rows, first_block=2), angles),
        (rows, None),  # nothing to turn the query of the first block by
    ]
    assert layer.status_of(rows, cos_sin=angles, sink_cos_sin=angles) == 0
    for changed, sink_angles in refused:
        assert layer.status_of(changed, cos_sin=angles, sink_cos_sin=sink_angles) == BAD_ARGUMENT
    layer.close()


def test_blocks_take_memory_as_they_are_used(executor: MakeExecutor) -> None:
    case = KVCase("q8", n_tokens=64)
    model = executor(case)
    pool = model.blocks[0]
    assert pool.n_committed == 0
    with pytest.raises(AssertionError):
        pool.use([pool.n_blocks])
    assert not any(model.read_block(0, 2))
    assert pool.n_committed == pool.n_blocks  # a slab holds all of so few
    assert model.kv_nbytes == pool.n_blocks * model.block_bytes(0) + model.ring_of(0).n_blocks * model.ring_bytes(0)
    assert model.block_bytes(0) == 64 * 2 * case.kv_codec.bytes_per_token(64)


def test_versions_agree(library: NativeLibrary) -> None:
    assert library.cdll.lr_numerics_version() == NUMERICS_VERSION


def test_plain_numbers_have_no_codes(executor: MakeExecutor) -> None:
    model = executor(KVCase("f16", n_tokens=64))
    pool = model.blocks[0]
    pool.use([0])
    with pytest.raises(EngineError):
        model.calls.kv_export_codes(pool.shape(model.cache_layers[0]), pool.at(0), pool.at(0), pool.at(0))
