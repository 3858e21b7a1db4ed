"""Single kernels on a GPU: how long they take, what share of the device's limits that is, and how exact they are."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from benchmarks.gpu_models import random_matrix
from benchmarks.gpu_platforms import AttentionCase, Platform
from localrun.backends.cuda.bulk import SPAN
from localrun.backends.gpu.device import Launch
from localrun.backends.gpu.layer_cache import LayerCache
from localrun.backends.gpu.logits import AdjustTensors, FoundCandidates, finish
from localrun.backends.gpu.passes import bucket_rows
from localrun.backends.gpu.scratch import bucket_units, partial_numbers
from localrun.backends.gpu.step_tensors import StepBuffer, StepShape
from localrun.backends.reference.attention import attend
from localrun.backends.reference.kv_codes import rotate_hadamard
from localrun.backends.reference.pool import KVPool
from localrun.ops.cache_layer import CacheLayer
from localrun.ops.instructions import Attention
from localrun.ops.interface import SequenceInput, StepInput
from localrun.ops.kv import BLOCK_TOKENS
from localrun.ops.largest_step import BULK_SPANS
from localrun.ops.layouts import Packed

L2_BYTES = 256 << 20  # more than any GPU's cache holds: copies of a matrix take turns
LINEAR_TYPES = ("Q4_K", "Q6_K", "Q4_0", "Q8_0", "MXFP4", "Q5_K", "IQ4_XS", "Q2_K", "F16")  # the commonest first
# Rows and columns of an 8B: down, gate and up, queries; and for one row keys or values, and the head.
LINEAR_SHAPES = ((4096, 14_336), (14_336, 4096), (4096, 4096))
ONE_ROW_SHAPES = (*LINEAR_SHAPES, (1024, 4096), (128_256, 4096))
ROWS = (1, 8, 64, 512)
BULK_TYPES = ("Q4_0", "Q4_K", "Q6_K", "Q8_0")
IN_BULK = "linear in bulk"


@dataclass(frozen=True, slots=True)
class Measured:
    """One kernel on one shape. `error`: the largest against float64, in parts of the largest result."""

    kernel: str
    layout: str
    shape: str
    rows: int
    microseconds: float
    gbps: float
    tflops: float
    error: float


class Timer:
    """Seconds of launches: on an NVIDIA GPU in one graph, by its own clock, for asking for short kernels takes longer
    than they do."""

    def __init__(self, platform: Platform, repeats: int) -> None:
        self.has_graphs, self.repeats = platform.device.torch_device.type == "cuda", repeats
        self.wait = platform.wait

    def seconds(self, launches: Sequence[Launch]) -> float:
        """Of one of them, in the median of some rounds; each launch reads memory of its own."""
        run, taken = (graph_of(launches), seconds_on_gpu) if self.has_graphs else (one_by_one(launches), self.waited)
        rounds = sorted(taken(run) for _ in range(self.repeats + 1))
        return rounds[len(rounds) // 2] / len(launches)

    def waited(self, run: Launch) -> float:
        self.wait()
        started = time.perf_counter()
        run()
        self.wait()
        return time.perf_counter() - started


def one_by_one(launches: Sequence[Launch]) -> Launch:
    def run() -> None:
        for launch in launches:
            launch()

    return run


def graph_of(launches: Sequence[Launch]) -> Launch:
    """All of them, which have run once, as one launch of a CUDA graph."""
    run = one_by_one(launches)
    run()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()
    return graph.replay


def seconds_on_gpu(run: Launch) -> float:
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    run()
    end.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end) / 1e3


def copy_gbps(platform: Platform, timer: Timer, n_bytes: int) -> float:
    """Bytes read and written by torch's copy, a second."""
    source = torch.empty(n_bytes, dtype=torch.uint8, device=platform.device.torch_device)
    target = torch.empty_like(source)
    return 2 * n_bytes / timer.seconds([lambda: void(target.copy_(source))] * 4) / 1e9


def matmul_tflops(platform: Platform, timer: Timer, side: int) -> float:
    """Of torch's product of bf16 matrices."""
    a, b = (torch.randn(side, side, device=platform.device.torch_device).bfloat16() for _ in range(2))
    return 2 * side**3 / timer.seconds([lambda: void(torch.mm(a, b))] * 4) / 1e12


def void(_: object) -> None:
    return None


def linear_cases(platform: Platform, timer: Timer, quick: bool) -> Iterator[Measured]:
    """Products with weights of every family, of one row, which an answer waits for, to a chunk of a prompt."""
    for rows in ROWS[:3] if quick else ROWS:
        shapes = ((64, 512),) if quick else ONE_ROW_SHAPES if rows == 1 else LINEAR_SHAPES
        for qtype in LINEAR_TYPES:
            for n_rows, n_cols in shapes:
                yield linear_case(platform, timer, qtype, n_rows, n_cols, rows, 1 if quick else 0)


def linear_case(
    platform: Platform, timer: Timer, qtype: str, n_rows: int, n_cols: int, rows: int, n_copies: int = 0
) -> Measured:
    where = platform.device.torch_device
    first = random_matrix(qtype, n_rows, n_cols, where)
    n_copies = n_copies or max(2, -(-L2_BYTES // first.nbytes))
    weights = [first, *(random_matrix(qtype, n_rows, n_cols, where) for _ in range(n_copies - 1))]
    x, out = torch.randn(rows, n_cols, device=where), torch.full((rows, n_rows), torch.nan, device=where)
    launches, read = platform.linear(x, weights, out)
    launches[0]()
    error = largest_error(out, read, first)
    seconds = timer.seconds(launches)
    moved, work = first.nbytes + 4 * rows * (n_rows + n_cols), 2 * rows * n_rows * n_cols
    shape = f"{n_rows} × {n_cols}"
    return Measured("linear", qtype, shape, rows, 1e6 * seconds, moved / seconds / 1e9, work / seconds / 1e12, error)


def bulk_cases(platform: Platform, timer: Timer, quick: bool) -> Iterator[Measured]:
    """The other way to read a prompt, in spans: weights decoded to bf16, torch's products, and what is around them."""
    where, span = platform.device.torch_device, 64 if quick else SPAN
    for n_rows, n_cols in ((64, 512),) if quick else LINEAR_SHAPES[:2]:
        for qtype in BULK_TYPES:
            packed = random_matrix(qtype, n_rows, n_cols, where)
            for rows in (span,) if quick else (span, BULK_SPANS * span):
                x, out = torch.randn(rows, n_cols, device=where), torch.empty(rows, n_rows, device=where)
                launches = platform.in_bulk(x, packed, out, span)
                if not launches:
                    return

                def all_of_them(launches: Sequence[Launch] = launches) -> None:
                    for launch in launches:
                        launch()

                all_of_them()
                error = largest_error(out, x, packed)
                seconds, work = timer.seconds([all_of_them] * 4), 2 * rows * n_rows * n_cols
                moved = packed.nbytes + 4 * n_rows * n_cols + rows * (6 * n_cols + 8 * n_rows)
                rates = (1e6 * seconds, moved / seconds / 1e9, work / seconds / 1e12)
                yield Measured(IN_BULK, qtype, f"{n_rows} × {n_cols}", rows, *rates, error)


def bulk_pays(found: Sequence[Measured]) -> float | None:
    """How many times as fast prompts are read in bulk, most rows at a time, as by the fused kernel: the median; None
    where there is one way only."""

    def rates(kernel: str) -> dict[tuple[str, str], float]:  # of the most rows, which come last
        return {(one.layout, one.shape): one.tflops for one in found if one.kernel == kernel}

    fused, in_bulk = rates("linear"), rates(IN_BULK)
    ratios = sorted(in_bulk[case] / fused[case] for case in in_bulk)
    return ratios[len(ratios) // 2] if ratios else None


def attention_cases(platform: Platform, timer: Timer, quick: bool) -> Iterator[Measured]:
    """Heads of Llama 3.1 8B over a cache of f16 or codes: one row that decodes, and a chunk at the end of a text."""
    for length in (100,) if quick else (512, 8192, 32_768):
        for rows in (1, 16) if quick else (1, 512):
            yield attention_case(platform, timer, length, rows, "f16")
        for codec in ("q8", "q4"):
            yield attention_case(platform, timer, length, 1, codec)


def attention_case(platform: Platform, timer: Timer, length: int, rows: int, codec: str) -> Measured:
    place, where = CacheLayer(group=0, index=0, n_heads=32, n_kv_heads=8, head_dim=128), platform.device.torch_device
    n_blocks, bucket = -(-length // BLOCK_TOKENS), bucket_rows(rows)
    q = torch.randn(bucket, place.n_heads, place.head_dim, device=where)
    pool = AttentionCase.room(place, n_blocks, where, codec)
    store, ring = pool.store(0, ring=False), pool.ring[0]
    keys, values = filled(pool, n_blocks, is_rounded=platform.device.ending == ".cu")
    buffer = StepBuffer(StepShape(1, (), sinks=False, rings=ring is not None), bucket, 2 * n_blocks, platform.device)
    positions, blocks = range(length - rows, length), (tuple(range(n_blocks)),)
    view = SequenceInput(length, blocks, (0,), ring=blocks if ring is not None else ())
    buffer.fill(StepInput([0] * rows, positions, [0] * rows, [view], [0]), bucket)
    n_units = bucket_units(length)
    scratch = torch.empty(partial_numbers(bucket, n_units, 32, 128), device=where)
    out, op = torch.empty(bucket, 4096, device=where), Attention(None, 0, 128**-0.5)
    of = LayerCache(place, pool.codecs[0], store, ring)
    case = AttentionCase(op, of, q.flatten(1), out, bucket, n_units, scratch)
    launches = platform.attend(buffer.tensors(bucket), case)

    def both() -> None:
        for launch in launches:
            launch()

    both()
    seen = torch.arange(length) <= torch.tensor(positions)[:, None]
    checked = slice(max(0, rows - 4), rows)  # as many rows as float64 has memory for
    exact = (exactly(part.flatten(0, 1)[:length]) for part in (keys, values))
    expected = attend(exactly(q[:rows][checked]), *exact, seen[checked].to(exactly(keys[:1]).device), op.scale)
    if pool.codecs[0].rotates:
        expected = rotate_hadamard(expected)
    error = float((exactly(out[:rows][checked]) - expected.flatten(1)).abs().max() / expected.abs().max())
    seconds = timer.seconds([both])
    moved, work = sum(plane.nbytes for plane in store.planes), 4 * rows * 32 * 128 * (length - rows / 2)
    shape = f"{length} tokens"
    return Measured("attention", codec, shape, rows, 1e6 * seconds, moved / seconds / 1e9, work / seconds / 1e12, error)


def filled(pool: KVPool, n_blocks: int, *, is_rounded: bool) -> tuple[Tensor, Tensor]:
    """Random keys and values in all blocks -> as rows of the last block read them, f32 [blocks, 64, KV heads, dim].

    is_rounded: codes are read as numbers of 16 bits.
    """
    store, ring = pool.store(0, ring=False), pool.ring[0]
    blocks = torch.arange(n_blocks, device=pool.device)
    size = (n_blocks, BLOCK_TOKENS, pool.layers[0].n_kv_heads, pool.layers[0].head_dim)
    keys, values = (torch.randn(size, device=pool.device) for _ in range(2))
    store.write((blocks, 0), keys, values)
    read = store.read((blocks, 0))
    if ring is None:
        return read
    ring.write((blocks, 0), keys, values)
    in_ring, exact = [0, n_blocks - 1], ring.read((blocks, 0))  # the first block and their own
    coded = [part.half().float() if is_rounded else part for part in read]
    for part, near in zip(coded, exact, strict=True):
        part[in_ring] = near[in_ring]
    return coded[0], coded[1]


def row_cases(platform: Platform, timer: Timer, quick: bool) -> Iterator[Measured]:
    """What touches every number of a row once: norms, and the search for the best logits."""
    where, width, vocab = platform.device.torch_device, 256 if quick else 4096, 1000 if quick else 128_256
    for rows in (1, 8) if quick else (1, 512):
        x, weight = torch.randn(rows, width, device=where), torch.randn(width, device=where)
        out = torch.empty_like(x)
        launch = platform.norm(x, weight, out)
        launch()
        wide = exactly(x)
        expected = wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + 1e-5) * exactly(weight)
        error = float((exactly(out) - expected).abs().max() / expected.abs().max())
        seconds = timer.seconds([launch])
        rate = 9 * rows * width / seconds / 1e9
        yield Measured("norm", "f32", f"{width}", rows, 1e6 * seconds, rate, 0.0, error)
    logits, adjust, found = (
        torch.randn(1, vocab, device=where),
        AdjustTensors(1, platform.device),
        FoundCandidates(1, platform.device),
    )
    expected_best = exactly(logits[0]).topk(16).values.cpu()
    launches = finish(platform.device, logits, adjust, found, 1)

    def all_of_them() -> None:
        for launch in launches:
            launch()

    all_of_them()
    error = float((torch.from_numpy(found.read(logits).top_values[0][:16]) - expected_best).abs().max())
    seconds = timer.seconds([all_of_them])
    yield Measured("logits", "f32", f"{vocab}", 1, 1e6 * seconds, 8 * vocab / seconds / 1e9, 0.0, error)


def largest_error(found: Tensor, x: Tensor, weights: Packed) -> float:
    blob = weights.planes[0] if weights.planes[0].is_cuda else weights.planes[0].cpu()
    expected = exactly(x) @ exactly(replace(weights, planes=(blob,)).unpack()).T
    return float((exactly(found) - expected).abs().max() / expected.abs().max())


def exactly(x: Tensor) -> Tensor:
    """As float64, which Apple's GPUs do not have: in main memory there."""
    return (x if x.is_cuda else x.cpu()).double()


CASES: tuple[Callable[[Platform, Timer, bool], Iterator[Measured]], ...] = (
    linear_cases,
    bulk_cases,
    attention_cases,
    row_cases,
)
