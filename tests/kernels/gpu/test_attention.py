"""The kernels of attention beside the reference in double precision, and beside each other."""

from dataclasses import dataclass, replace
from itertools import product

import pytest
import torch
from localrun_testing.emulator.cuda import EmulatedDevice
from localrun_testing.gpu_platforms import CUDA, EVERY_ROUNDING, METAL, PLATFORMS, TURING, Platform, lost_at_most
from localrun_testing.gpu_steps import Heads, Text, on_device, reference, step_of

from localrun.backends.gpu.device import Device
from localrun.backends.gpu.scratch import partial_numbers
from localrun.backends.gpu.step_tensors import rows_alone
from localrun.backends.reference.attention import attend as plain_attend
from localrun.backends.reference.attention import visible
from localrun.backends.reference.pool import KVPool
from localrun.ops.instructions import Attention
from localrun.ops.interface import StepInput
from localrun.ops.rope import RopeKind

NAN = float("nan")
KIND = RopeKind.of(1e4, 16, None, 1.0)  # of no account here


@dataclass
class Case:
    """A step over a pool of made-up keys and values."""

    heads: Heads
    texts: tuple[Text, ...]
    softcap: float | None = None
    window: int | None = None
    sink_window: int | None = None
    sinks: bool = False
    spread: float = 1.0  # of the queries
    platform: Platform = CUDA

    def __post_init__(self) -> None:
        h, d = self.heads.n_heads, self.heads.head_dim
        generator = torch.Generator().manual_seed(3)
        self.step, n_blocks = step_of(self.texts, KIND, sink_window=self.sink_window)
        self.pool = self.heads.pool(n_blocks, poison=NAN)
        fill(self.pool, self.step, generator)
        n = self.step.n_rows
        self.q = self.spread * torch.randn(n, h, d, generator=generator)
        sink_query = torch.randn(n, h, d, generator=generator) if self.sink_window else None
        sinks = torch.randn(h, generator=generator) if self.sinks else None
        self.op = Attention(self.q, 1, d**-0.5, self.softcap, self.window, sinks, sink_query, self.sink_window)

    def exact(self) -> torch.Tensor:
        """[rows, n_heads · head_dim], in double precision."""
        ops, op = reference(self.pool, self.step), self.op
        out = torch.empty_like(self.q, dtype=torch.float64)
        for index, by_block in enumerate(ops.rows_of):
            rows = torch.tensor([row for some in by_block.values() for row in some])
            slots, keys, values = self.pool.blocks(1, index).seen_from(max(by_block))
            mask = visible(ops.positions[rows], slots, op.window, op.sink_window)
            wide = (None if x is None else x.double() for x in (op.sinks, op.sink_query))
            sinks, sink_query = wide
            rules = (op.scale, op.softcap, sinks, None if sink_query is None else sink_query[rows])
            out[rows] = plain_attend(self.q[rows].double(), keys.double(), values.double(), mask, *rules)
        return out.flatten(1)

    def run(
        self,
        rows: int,
        *,
        split: bool,
        device: Device | None = None,
        step: StepInput | None = None,
        at: int = 0,
        n_alone: int = 0,
    ) -> torch.Tensor:
        """What kernels make of rows from number `at` on: of all, or of those of `step`."""
        step = step or self.step
        n, here = step.n_rows, slice(at, at + step.n_rows)
        q = padded(self.q[here].flatten(1), rows)
        sink_query = None if self.op.sink_query is None else padded(self.op.sink_query[here].flatten(1), rows)
        n_units = 1 << (max(-(-s.length // 512) for s in step.sequences) - 1).bit_length()
        shape = (self.heads.n_heads, self.heads.head_dim)
        partial = torch.full((64 * partial_numbers(1, n_units, *shape),), NAN)
        out = torch.full_like(q, NAN)
        rest = ((q, sink_query, out), rows, n_units, partial, n_alone)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(self.platform.attentions, "SPLIT_ROWS", rows if split else 1)
            on = device or self.platform.usual
            self.platform.attend(on, on_device(step, rows), self.op, self.pool, *rest)
        assert bool((out[n:] == 0).all())
        return out[:n]


def padded(x: torch.Tensor, rows: int) -> torch.Tensor:
    return torch.cat((x, torch.full((rows - len(x), x.shape[1]), NAN)))


def fill(pool: KVPool, step: StepInput, generator: torch.Generator) -> None:
    """Keys and values of all tokens there are; all else stays as it is."""
    store = pool.store(0, ring=False)
    for sequence in step.sequences:
        held = [*enumerate(sequence.table[0], sequence.first[0]), *((0, block) for block in sequence.sink)]
        for number, block in held:
            n = min(sequence.length - 64 * number, 64)
            for codes in (store.keys.codes, store.values.codes):
                codes[block, 1, :n] = torch.randn(n, *codes.shape[3:], generator=generator)


def bucket(n: int) -> int:
    return max(2, 1 << (n - 1).bit_length())


def agree(case: Case) -> torch.Tensor:
    """Both ways give the same bits, and those are right."""
    rows = bucket(case.step.n_rows)
    split, together, exact = case.run(rows, split=True), case.run(rows, split=False), case.exact()
    assert torch.equal(split, together)
    assert float((split - exact).abs().max() / exact.abs().max()) < case.platform.close
    return split


SHAPES = (
    *((1, 1, 16), (4, 2, 32), (4, 2, 64), (5, 1, 80), (12, 1, 96)),
    *((3, 1, 112), (8, 2, 128), (16, 1, 128), (2, 1, 256)),
)  # heads, KV heads, head_dim
LENGTHS = (63, 64, 65, 511, 512, 513, 1100)


EVERY_SHAPE = [
    pytest.param(
        *(platform, shape),
        id=f"{platform} {shape}",
        marks=() if platform is CUDA or shape[2] in (64, 80, 256) else pytest.mark.slow,
    )
    for platform in (CUDA, TURING, METAL)
    for shape in SHAPES
]


@pytest.mark.parametrize(("platform", "shape"), EVERY_SHAPE)
def test_heads_of_every_shape(platform: Platform, shape: tuple[int, int, int]) -> None:
    agree(Case(Heads(*shape), (Text(70, 3), Text(600, 1), Text(1, 1)), platform=platform))


@pytest.mark.parametrize("platform", EVERY_ROUNDING, ids=str)
def test_large_heads_split_their_keys(platform: Platform) -> None:
    case = Case(Heads(2, 1, 512), (Text(70, 3), Text(520, 1)), platform=platform)
    assert float((case.run(4, split=True) - case.exact()).abs().max()) < platform.close


@pytest.mark.parametrize("platform", PLATFORMS, ids=str)
@pytest.mark.parametrize(
    ("shape", "window"), [*product(((1, 1, 16), (5, 1, 80), (16, 1, 128), (2, 1, 512)), (None, 100))]
)
def test_f32_keys(platform: Platform, shape: tuple[int, int, int], window: int | None) -> None:
    case = Case(
        Heads(*shape, "f32"),
        (Text(70, 3), Text(600, 2), Text(1, 1)),
        window=window,
        sinks=True,
        softcap=9.0,
        platform=platform,
    )
    whole, exact = case.run(8, split=True), case.exact()
    assert float((whole - exact).abs().max() / exact.abs().max()) < 1.5e-6
    assert torch.equal(case.run(64, split=False), whole)


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("platform", EVERY_ROUNDING, ids=str)
def test_texts_of_every_length(platform: Platform, length: int) -> None:
    agree(Case(Heads(6, 2, 64), (Text(length, min(length, 9)), Text(length - 1, 2), Text(2, 2)), platform=platform))


@pytest.mark.parametrize("window", [1, 2, 64, 65, 100, 513])
@pytest.mark.parametrize("platform", EVERY_ROUNDING, ids=str)
def test_windows_whose_first_blocks_are_gone(platform: Platform, window: int) -> None:
    gone = max(0, 1100 - 5 - window + 1) // 64
    agree(Case(Heads(2, 1, 32), (Text(1100, 5, first=gone), Text(66, 3)), window=window, sinks=True, platform=platform))


@pytest.mark.parametrize(("sink_window", "codec"), [*product((1, 64, 200), ("f16", "f32"))])
@pytest.mark.parametrize("platform", EVERY_ROUNDING, ids=str)
def test_sink_windows_keep_block_0(platform: Platform, sink_window: int, codec: str) -> None:
    gone = (1100 - 5 - sink_window + 1) // 64
    texts = (Text(1100, 5, first=gone, sink=True), Text(64, 2), Text(300, 9))
    agree(Case(Heads(4, 2, 64, codec), texts, sink_window=sink_window, platform=platform))


@pytest.mark.parametrize("softcap", [None, 5.0, 50.0])
@pytest.mark.parametrize("platform", EVERY_ROUNDING, ids=str)
def test_softcap_and_learned_sinks(platform: Platform, softcap: float | None) -> None:
    agree(Case(Heads(4, 2, 64), (Text(130, 4),), softcap=softcap, sinks=True, spread=20.0, platform=platform))


@pytest.mark.parametrize("spread", [1e-30, 1e-4, 30.0, 3000.0])
@pytest.mark.parametrize("platform", EVERY_ROUNDING, ids=str)
def test_queries_of_every_size(platform: Platform, spread: float) -> None:
    agree(Case(Heads(2, 1, 64), (Text(200, 2),), spread=spread, platform=platform))


@pytest.mark.parametrize("platform", EVERY_ROUNDING, ids=str)
def test_a_prompt_in_any_chunks_is_the_same(platform: Platform) -> None:
    """Rows 600 … 639 of a text, beside another, in chunks and one by one."""
    case = Case(Heads(6, 2, 64), (Text(640, 40), Text(90, 1)), platform=platform)
    whole = case.run(64, split=False)
    begin = 0
    for n in (1, 7, 20, 12):
        end = 600 + begin + n
        alone = replace(case.step.sequences[0], length=end)
        positions = list(range(600 + begin, end))
        step = replace(case.step, token_ids=[0] * n, positions=positions, row_sequence=[0] * n, sequences=[alone])
        step.cos_sin = [KIND.compute(positions)]
        for split in (True, False):
            assert torch.equal(case.run(bucket(n), split=split, step=step, at=begin), whole[begin : begin + n])
        begin += n


@pytest.mark.parametrize("platform", EVERY_ROUNDING, ids=str)
def test_rows_that_are_alone_split_their_keys_in_large_steps(platform: Platform) -> None:
    texts = (Text(530, 1), Text(90, 31), Text(600, 7), Text(64, 8), Text(1, 1))
    case = Case(Heads(6, 2, 64), texts, sinks=True, platform=platform)
    assert rows_alone(case.step).tolist() == [0, *range(32, 39), 47]
    want = case.run(64, split=True)
    for n_alone in (0, 16):
        assert torch.equal(case.run(64, split=False, n_alone=n_alone), want)


@pytest.mark.parametrize("codec", ["f16", "f32"])
@pytest.mark.parametrize("platform", PLATFORMS, ids=str)
def test_a_broken_token_breaks_those_who_see_it(platform: Platform, codec: str) -> None:
    for part, kind in ((0, NAN), (2, NAN), (2, float("inf"))):
        case = Case(Heads(4, 2, 64, codec), (Text(75, 12), Text(70, 4)), platform=platform)
        block = case.step.sequences[0].table[0][1]
        clean = case.run(16, split=True)
        case.pool.store(0, ring=False).planes[part][block, 1, 4, 0, 7] = kind  # position 68, KV head 0
        for split in (True, False):
            out = case.run(16, split=split)
            broken = ~out.view(-1, 4, 64).isfinite().all(-1)  # [rows, heads]
            assert broken[:, :2].any(-1).tolist() == [p >= 68 for p in case.step.positions[:12]] + [False] * 4
            fine = ~broken.repeat_interleave(64, 1)
            assert not bool(broken[:, 2:].any())
            assert torch.equal(out[fine], clean[fine])


@pytest.mark.parametrize("split", [True, False])
@pytest.mark.parametrize("platform", EVERY_ROUNDING, ids=str)
def test_the_order_of_threads_does_not_matter(platform: Platform, split: bool) -> None:
    case = Case(Heads(4, 1, 80), (Text(530, 9), Text(65, 1)), window=300, sinks=True, platform=platform)
    want = case.run(16, split=split)
    for seed, poison in ((1, 0x00), (2, 0x3C), (5, 0x7F)):
        assert torch.equal(case.run(16, split=split, device=platform.device(seed=seed, poison=poison)), want)


@pytest.mark.parametrize("split", [True, False])
@pytest.mark.parametrize(("extra_bits", "close"), [(None, 2e-6), (0, lost_at_most(0))])
def test_turing(split: bool, extra_bits: int | None, close: float) -> None:
    case = Case(Heads(4, 2, 64), (Text(130, 9),), platform=CUDA)
    device = EmulatedDevice(75, extra_bits=extra_bits)
    assert float((case.run(16, split=split, device=device) - case.exact()).abs().max()) < close
