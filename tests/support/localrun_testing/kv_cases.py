"""rope_append and attention on any executor: one layer over given q, k and v, its blocks handed out as an engine does.

The model is a single layer whose weights only pick: token t is row t of `[q | k | v]`, and the logits are the output
of attention. What is expected comes from a loop over queries that chooses each key's form by its position.
"""

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from localrun.backends.executor import CachePlan, Executor, ExecutorRequest
from localrun.backends.reference.executor import ReferenceExecutor
from localrun.backends.reference.kv_codes import decode, encode, rotate_hadamard
from localrun.backends.reference.ops import ReferenceOps
from localrun.ops.cache_layer import CacheLayer
from localrun.ops.instructions import Attention, Embed, Linear, LinearWeight, LogitsOf, RopeAppend
from localrun.ops.interface import Angles, SequenceInput, StepInput
from localrun.ops.kv import BLOCK_TOKENS, KV_CODECS, KVCodec, KVPlan
from localrun.ops.layouts import F32, Layout, Packed, RowReader
from localrun.ops.recording import Forward, Ops
from localrun.ops.rope import RopeKind, query_scales
from localrun.ops.types import Value

# Normalised mean square error that a backend's own arithmetic may add. 8-bit codes are multiplied as integers, with q
# and the weighted scales of V rounded to 8 bits too.
NMSE = {"f32": 1e-10, "f16": 5e-5, "q8": 1e-4, "k8v4": 1e-4, "q4": 1e-4}


CPU = torch.device("cpu")
QUERY_BETA = 0.3


@dataclass(frozen=True, slots=True)
class KVCase:
    """One layer and what its ops do."""

    codec: str = "f16"
    head_dim: int = 64
    n_heads: int = 4
    n_kv_heads: int = 2
    n_tokens: int = 200
    window: int | None = None
    sink_window: int | None = None
    softcap: float | None = None
    sinks: bool = False
    rope: bool = True
    query_floor: int = 0  # queries grow each time this many tokens lie before them; 0: they do not
    outliers: bool = True  # a few channels of K are much larger than the others, as in trained models

    def __str__(self) -> str:
        options = {"window": self.window, "sink_window": self.sink_window, "softcap": self.softcap, "sinks": self.sinks}
        options["query_floor"] = self.query_floor
        said = [f"{name}={value}" for name, value in options.items() if value] + ["nope"] * (not self.rope)
        shape = f"{self.codec}-d{self.head_dim}-h{self.n_heads}of{self.n_kv_heads}-n{self.n_tokens}"
        return "-".join((shape, *said))

    @property
    def kv_codec(self) -> KVCodec:
        return KV_CODECS[self.codec]

    @property
    def scale(self) -> float:
        return 1 / math.sqrt(self.head_dim)

    @property
    def layer(self) -> CacheLayer:
        return CacheLayer(0, 0, self.n_heads, self.n_kv_heads, self.head_dim)

    def request(self, forward: Forward, n_blocks: int, n_ring: int) -> ExecutorRequest:
        """`forward` on a cache of so many coded and 16-bit blocks."""
        return ExecutorRequest.of(forward, CachePlan([self.layer], KVPlan((self.kv_codec,)), [n_blocks], [n_ring]))

    def sink_scores(self) -> Tensor | None:
        return torch.linspace(-1.0, 2.0, self.n_heads) if self.sinks else None

    def qkv(self) -> tuple[Tensor, Tensor, Tensor]:
        """q, k and v before rope, f32 [n_tokens, heads, head_dim]"""
        g = torch.Generator().manual_seed(self.head_dim * 1000 + self.n_tokens)
        heads = (self.n_heads, self.n_kv_heads, self.n_kv_heads)
        q, k, v = (torch.randn(self.n_tokens, n, self.head_dim, generator=g) for n in heads)
        if self.outliers:
            k[..., :: max(1, self.head_dim // 3)] *= 5
        return q, k, v

    def cos_sin(self, positions: Sequence[int]) -> Angles:
        return RopeKind.of(10000.0, self.head_dim, None, 1.0).cos_sin(positions)

    def forward(
        self, layout: Layout, qkv: tuple[Tensor, Tensor, Tensor] | None = None, device: torch.device = CPU
    ) -> Forward:
        """The picking model, its matrices in `layout`."""
        q, k, v = (x.flatten(1) for x in qkv or self.qkv())
        table = pack(torch.cat((q, k, v), dim=1), layout, device)
        every = torch.eye(table.n_cols).split([x.shape[1] for x in (q, k, v)])
        picks = tuple(LinearWeight(pack(part, layout, device)) for part in every)
        unity = pack(torch.eye(q.shape[1]), layout, device)
        rope = 0 if self.rope else None
        sinks = self.sink_scores()
        sinks = None if sinks is None else sinks.to(device)

        def forward(ops: Ops) -> Value:
            (x,) = ops(Embed(table))
            twice = self.rope and self.sink_window is not None
            q, k, v = ops(Linear(x, picks))
            q, *sink_q = ops(RopeAppend(q, k, v, 0, rope, sink_query=twice))
            rules = (self.scale, self.softcap, self.window, sinks, sink_q[0] if twice else None, self.sink_window)
            (out,) = ops(Attention(q, 0, *rules))
            return ops(LogitsOf(out, unity))[0]

        return forward

    @property
    def telling_rows(self) -> list[int]:
        """Rows at the edges of blocks, and some between them: enough to compare where a loop over all is slow."""
        return [p for p in range(self.n_tokens) if p % BLOCK_TOKENS in (0, 1, 62, 63) or p % 9 == 8]

    def expected(self, rows: Sequence[int]) -> Tensor:
        """The output of some rows, f32 [len(rows), n_heads · head_dim], one query after the other."""
        q, k, v = self.qkv()
        positions = list(range(self.n_tokens))
        sink_q = q
        if self.rope:
            near = [min(p, self.sink_window + BLOCK_TOKENS - 1) if self.sink_window else p for p in positions]
            sink_q = turn(q, self.cos_sin(near))
            q, k = (turn(x, self.cos_sin(positions)) for x in (q, k))
        if self.query_floor:
            grown = torch.tensor([1 + QUERY_BETA * math.log(1 + p // self.query_floor) for p in positions])
            q, sink_q = (x * grown[:, None, None] for x in (q, sink_q))
        turned = rotate_hadamard if self.kv_codec.rotates else (lambda x: x)
        q, k, v, sink_q = (turned(x) for x in (q, k, v, sink_q))
        bits = (self.kv_codec.k_bits, self.kv_codec.v_bits)
        coded = [decode(encode(x, n)) for x, n in zip((k, v), bits, strict=True)]
        exact = coded if self.kv_codec.native else [decode(encode(x, 16)) for x in (k, v)]
        out = torch.stack([self._one(q[p], sink_q[p], p, coded, exact) for p in rows])
        return turned(out).flatten(1)

    def _one(self, q: Tensor, sink_q: Tensor, p: int, coded: list[Tensor], exact: list[Tensor]) -> Tensor:
        slots = torch.arange(p + 1)
        if self.window is not None:
            slots = slots[p - slots < self.window]
        if self.sink_window is not None:
            slots = slots[(p - slots < self.sink_window) | (slots < BLOCK_TOKENS)]
        near = (slots // BLOCK_TOKENS == p // BLOCK_TOKENS) | (slots < BLOCK_TOKENS)
        heads = torch.arange(self.n_heads) // (self.n_heads // self.n_kv_heads)
        keys, values = (
            torch.where(near[:, None, None], e[slots], c[slots])[:, heads]  # [T, n_heads, head_dim]
            for e, c in zip(exact, coded, strict=True)
        )
        queries = torch.where((slots < BLOCK_TOKENS)[:, None, None], sink_q, q)
        scores = (keys * queries).sum(-1) * self.scale  # [T, n_heads]
        if self.softcap is not None:
            scores = self.softcap * torch.tanh(scores / self.softcap)
        sinks = self.sink_scores()
        weights = torch.exp(scores if sinks is None else torch.cat((scores, sinks[None])))
        return (weights[: len(slots), :, None] * values).sum(0) / weights.sum(0)[:, None]


def pack(x: Tensor, layout: Layout, device: torch.device = CPU) -> Packed:
    raw = x.contiguous().view(torch.uint8).numpy()
    n_rows, n_cols = x.shape
    return layout.pack(RowReader("F32", n_rows, n_cols, lambda first, n: raw[first : first + n], device))


def turn(x: Tensor, cos_sin: Angles) -> Tensor:
    """Rotary embedding by complex multiplication of the pairs (j, j + head_dim / 2)."""
    half = x.shape[-1] // 2
    pairs = torch.complex(x[..., :half].contiguous(), x[..., half:].contiguous())
    pairs = pairs * torch.complex(*map(torch.as_tensor, cos_sin))[:, None]
    return torch.cat((pairs.real, pairs.imag), dim=-1)


@dataclass(slots=True)
class Blocks:
    """The blocks of one sequence, in a random order; what left the window or the ring is poisoned and used again."""

    case: KVCase
    executor: Executor
    free: list[int]
    free_ring: list[int]
    poison: bool = False
    coded: dict[int, int] = field(default_factory=dict)  # by logical block
    ring: dict[int, int] = field(default_factory=dict)

    @classmethod
    def of(cls, case: KVCase, executor: Executor, n_blocks: int, n_ring: int, seed: int, poison: bool) -> "Blocks":
        shuffle = random.Random(seed)
        blocks = cls(case, executor, list(range(n_blocks)), list(range(n_ring)), poison)
        for numbers in (blocks.free, blocks.free_ring):
            shuffle.shuffle(numbers)
        if poison:
            for block in blocks.free:
                executor.write_block(0, block, b"\xff" * executor.block_bytes(0))  # NaN in every form
            for block in blocks.free_ring:
                executor.write_ring(0, block, b"\xff" * executor.ring_bytes(0))
        return blocks

    def view(self, start: int, end: int, write_from: int = 0) -> SequenceInput:
        """The sequence for a step over positions start … end - 1."""
        window = self.case.window or self.case.sink_window
        first = 0 if window is None else max(0, start - window + 1) // BLOCK_TOKENS
        keep_sink = self.case.window is None or start - self.case.window < BLOCK_TOKENS - 1
        for number in [n for n in self.coded if n < first and not (n == 0 and self.case.sink_window)]:
            self.drop(number)
        last = (end - 1) // BLOCK_TOKENS
        for number in range(first, last + 1):
            if number not in self.coded:
                self.coded[number] = self.free.pop()
        table = tuple(self.coded[number] for number in range(first, last + 1))
        if self.case.kv_codec.native:
            return SequenceInput(end, (table,), (first,), (self.coded[0] if first and 0 in self.coded else -1,))
        ring_first = start // BLOCK_TOKENS
        for number in range(ring_first, last + 1):
            if number not in self.ring:
                self.ring[number] = self.free_ring.pop()
        ring = tuple(self.ring[number] for number in range(ring_first, last + 1))
        ring_sink = self.ring[0] if keep_sink else -1
        return SequenceInput(end, (table,), (first,), (-1,), (ring,), ring_first, (ring_sink,), (write_from,))

    def free_old_ring_blocks(self, end: int) -> None:
        """After a step: the ring keeps block 0 and the last two."""
        for number in [n for n in self.ring if 0 < n < end // BLOCK_TOKENS - 1]:
            block = self.ring.pop(number)
            if self.poison:
                self.executor.write_ring(0, block, b"\xff" * self.executor.ring_bytes(0))
            self.free_ring.append(block)

    def drop(self, number: int) -> None:
        block = self.coded.pop(number)
        if self.poison:
            self.executor.write_block(0, block, b"\xff" * self.executor.block_bytes(0))
        self.free.append(block)


def run(
    case: KVCase, executor: Executor, chunks: Sequence[int] = (), seed: int = 0, poison: bool = False, start: int = 0
) -> Tensor:
    """The output of all rows from `start` on, computed in steps of `chunks` tokens (default: one step)."""
    n_blocks, n_ring = sizes(case)
    blocks = Blocks.of(case, executor, n_blocks, n_ring, seed, poison)
    out = []
    for n in chunks or [case.n_tokens - start]:
        out.append(step(case, executor, blocks.view(start, start + n), start, n))
        start += n
        blocks.free_old_ring_blocks(start)
    assert start == case.n_tokens
    return torch.cat(out)


def step(case: KVCase, executor: Executor, view: SequenceInput, start: int, n: int, shift: int = 0) -> Tensor:
    """One step over positions start … start + n - 1 of a sequence; `shift` puts other tokens there."""
    positions = list(range(start, start + n))
    near = [min(p, (case.sink_window or 0) + BLOCK_TOKENS - 1) for p in positions]
    inputs = StepInput(
        token_ids=[(p + shift) % case.n_tokens for p in positions],
        positions=positions,
        row_sequence=[0] * n,
        sequences=[view],
        logits_rows=range(n),
        cos_sin=[case.cos_sin(positions)],
        sink_cos_sin=[case.cos_sin(near)] if case.sink_window else [],
        query_scale=query_scales(positions, QUERY_BETA, case.query_floor) if case.query_floor else None,
    )
    return torch.as_tensor(executor.run(inputs).result().rows).clone()


def sizes(case: KVCase) -> tuple[int, int]:
    """Coded and 16-bit blocks for the whole of a case in one step, and a few to choose from."""
    n_blocks = -(-case.n_tokens // BLOCK_TOKENS) + 3
    return n_blocks, 0 if case.kv_codec.native else n_blocks


def reference_for(
    case: KVCase, ops: type[ReferenceOps] = ReferenceOps, spare: int = 0, device: torch.device = CPU
) -> ReferenceExecutor:
    """The reference on a case, with `spare` blocks more than one sequence needs."""
    n_blocks, n_ring = sizes(case)
    counts = n_blocks + spare, n_ring + spare if n_ring else 0
    forward = case.forward(F32, device=device)
    return ReferenceExecutor(case.request(forward, *counts), device, ops)


def nmse(got: Tensor, wanted: Tensor) -> float:
    return float((got - wanted).square().sum() / wanted.square().sum())


_CODECS = ("f32", "f16", "q8", "k8v4", "q4")
CASES: tuple[KVCase, ...] = (
    # every codec: depths around the first block and the first unit, and every option
    *(KVCase(codec, n_tokens=530) for codec in _CODECS),
    *(KVCase(codec, n_tokens=270, window=70, softcap=3.0, sinks=True) for codec in _CODECS),
    *(KVCase(codec, n_tokens=270, sink_window=100, softcap=3.0, sinks=True) for codec in _CODECS),
    *(KVCase(codec, n_tokens=330, sink_window=192, rope=False) for codec in _CODECS),
    # every head_dim and every number of heads that share a key
    *(KVCase(codec, head_dim, n_tokens=140) for codec in _CODECS for head_dim in (80, 96, 128, 256, 512)),
    *(KVCase(codec, 192, 2, 1, n_tokens=140) for codec in ("q8", "q4")),
    *(KVCase(codec, 64, heads, 1, n_tokens=140) for codec in _CODECS for heads in (1, 8)),
    # queries that grow with their position
    *(KVCase(codec, n_tokens=150, sink_window=100, query_floor=40) for codec in _CODECS),
    # widths no power of two divides well, windows on a boundary, decode at the edge of a unit
    *(KVCase(codec, 24, 3, 3, n_tokens=200, window=64) for codec in _CODECS),
    *(KVCase(codec, 64, 2, 1, n_tokens=1090, sink_window=448) for codec in ("f16", "q8", "q4")),
)
