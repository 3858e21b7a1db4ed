"""What a layer of latent attention costs beside one of grouped queries: those of GLM-4.7-Flash and Qwen3-30B-A3B.

    python -m benchmarks.latent_layer [--threads 2] [--isa avx2] [--rounds 5] [--layers 8] [--depths 1024 8192]

Several layers read the same rows, one after the other, so that weights and caches come from memory. Times are those of
one layer, by the library's own clock, and the least of all rounds; the two kinds of layers take turns.
"""

from __future__ import annotations

import argparse
from collections import Counter

import numpy as np
import torch

from benchmarks.chosen_library import chosen_library
from benchmarks.step_profile import Clock
from localrun.backends.cpu import abi
from localrun.backends.cpu.bindings import calls_of
from localrun.backends.cpu.executor import CpuExecutor
from localrun.backends.cpu.layout import CpuLayout
from localrun.backends.executor import CachePlan, ExecutorRequest
from localrun.base.dataclass import dataclass
from localrun.cache.kinds.attention import AttentionCache
from localrun.cache.kinds.latent import Latent
from localrun.formats.quant import QUANT_TYPES
from localrun.ops.instructions import Attention, Embed, Linear, LinearWeight, LogitsOf, Norm, RopeAppend
from localrun.ops.interface import SequenceInput, StepInput
from localrun.ops.kv import BLOCK_TOKENS, KV_CODECS, KVPlan
from localrun.ops.latent import HeadLinear, LatentAppend
from localrun.ops.layouts import Packed, RowReader
from localrun.ops.recording import Ops
from localrun.ops.rope import RopeKind
from localrun.ops.types import Value

HIDDEN, PREFILL = 2048, 512
HEADS, Q_RANK, RANK, DIMS, NOPE, VALUES = 20, 768, 512, 64, 192, 256  # of GLM-4.7-Flash
GROUPED = 32, 4, 128  # of Qwen3-30B-A3B: heads, KV heads, head_dim


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of layer: what a token leaves in the cache, and products of a query with a key and its value."""

    name: str
    cache: Latent | AttentionCache
    n_heads: int
    rope_dims: int
    token_bytes: int
    pair_macs: int


LATENT = Kind("latent", Latent(RANK, DIMS), HEADS, DIMS, 2 * (RANK + DIMS), HEADS * (2 * RANK + DIMS))
GQA = Kind("grouped", AttentionCache(*GROUPED[1:], GROUPED[2]), GROUPED[0], GROUPED[2], 4 * GROUPED[1] * GROUPED[2],
           2 * GROUPED[0] * GROUPED[2])  # fmt: skip


class Layers:
    """Layers of one kind, and a text in their caches."""

    def __init__(self, kind: Kind, layout: CpuLayout, n_layers: int, depth: int) -> None:
        self.kind, self.layout, self.n_layers, self.depth = kind, layout, n_layers, depth
        self.numbers = 0  # of all matrices
        places = [kind.cache.layer(0, index, kind.n_heads) for index in range(n_layers)]
        n_blocks = -(-(depth + PREFILL) // BLOCK_TOKENS)
        plan = CachePlan(places, KVPlan.uniform(KV_CODECS["f16"], n_layers), [n_blocks], [0])
        self.executor = CpuExecutor(layout, ExecutorRequest.of(self.forward, plan), PREFILL)
        self.clock, self.blocks = Clock(self.executor), tuple(range(n_blocks))
        for start in range(0, depth, PREFILL):
            self.run(start, PREFILL)

    def matrix(self, n_rows: int, n_cols: int) -> LinearWeight:
        """Random bytes: the values mean nothing, the time is the same."""
        self.numbers += n_rows * n_cols
        return LinearWeight(self.packed(n_rows, n_cols))

    def packed(self, n_rows: int, n_cols: int) -> Packed:
        row_bytes = QUANT_TYPES["Q8_0"].nbytes((1, n_cols))
        raw = torch.randint(8, 64, (n_rows, row_bytes), dtype=torch.uint8).numpy()
        return self.layout.pack(RowReader("Q8_0", n_rows, n_cols, lambda first, n: raw[first : first + n]))

    def forward(self, ops: Ops) -> Value:
        (x,) = ops(Embed(self.packed(64, HIDDEN)))
        make = self.latent if self.kind is LATENT else self.grouped
        last = [make(ops, x, index) for index in range(self.n_layers)][-1]
        return ops(LogitsOf(last, self.packed(64, HIDDEN)))[0]

    def latent(self, ops: Ops, x: Value, layer: int) -> Value:
        (a,) = ops(Norm(x, np.ones(HIDDEN, np.float32), 1e-5))
        q, latent, k_rope = ops(Linear(a, tuple(self.matrix(n, HIDDEN) for n in (Q_RANK, RANK, DIMS))))
        (q,) = ops(Norm(q, np.ones(Q_RANK, np.float32), 1e-5))
        q, q_rope = ops(Linear(q, tuple(self.matrix(HEADS * n, Q_RANK) for n in (NOPE, DIMS))))
        (latent,) = ops(Norm(latent, np.ones(RANK, np.float32), 1e-5))
        (q,) = ops(HeadLinear(q, self.matrix(HEADS * RANK, NOPE), HEADS))
        (q,) = ops(LatentAppend(q, q_rope, latent, k_rope, layer, 0))
        (o,) = ops(Attention(q, layer, 1e-6))
        (o,) = ops(HeadLinear(o, self.matrix(HEADS * VALUES, RANK), HEADS))
        return ops(Linear(o, (self.matrix(HIDDEN, HEADS * VALUES),)))[0]

    def grouped(self, ops: Ops, x: Value, layer: int) -> Value:
        n_heads, n_kv_heads, head_dim = GROUPED
        (a,) = ops(Norm(x, np.ones(HIDDEN, np.float32), 1e-5))
        widths = (n_heads * head_dim, n_kv_heads * head_dim, n_kv_heads * head_dim)
        q, k, v = ops(Linear(a, tuple(self.matrix(n, HIDDEN) for n in widths)))
        one = np.ones(head_dim, np.float32)
        (q,) = ops(RopeAppend(q, k, v, layer, 0, "head", one, one, 1e-6))
        (o,) = ops(Attention(q, layer, 0.1))
        return ops(Linear(o, (self.matrix(HIDDEN, n_heads * head_dim),)))[0]

    def run(self, start: int, n: int) -> Counter[str]:
        """Seconds of one layer by operation in a step of n rows from `start` on."""
        positions = list(range(start, start + n))
        angles = RopeKind.of(10000.0, self.kind.rope_dims, None, 1.0).cos_sin(positions)
        sequence = SequenceInput(start + n, (self.blocks[: -(-(start + n) // BLOCK_TOKENS)],), (0,))
        self.clock.start()
        self.executor.run(
            StepInput([p % 64 for p in positions], positions, [0] * n, [sequence], [n - 1], cos_sin=[angles])
        )
        spent = Counter[str]()
        for op, seconds in zip(self.executor.instructions, self.clock.read(), strict=True):
            if abi.OPS[op.op] not in ("embed", "logits"):
                spent[abi.OPS[op.op]] += seconds / self.n_layers
        return spent

    def report(self, rounds: list[Counter[str]], n: int) -> str:
        best = min(rounds, key=lambda spent: spent.total())
        parts = ", ".join(f"{name} {1e3 * seconds:.3f}" for name, seconds in best.most_common())
        seen, numbers = n * self.depth + n * (n + 1) / 2, self.numbers / self.n_layers
        if n == 1:
            rate = (numbers * 34 / 32 + (self.depth + 1) * self.kind.token_bytes) / best.total()
            attention = (self.depth + 1) * self.kind.token_bytes / best["attention"]
            said = f"{rate / 1e9:.1f} GB/s, attention {attention / 1e9:.1f}"
        else:
            rate = 2 * (numbers * n + seen * self.kind.pair_macs) / best.total()
            attention = 2 * seen * self.kind.pair_macs / best["attention"]
            said = f"{rate / 1e9:.0f} GFLOP/s, attention {attention / 1e9:.0f}"
        return f"{self.kind.name:8} {1e3 * best.total():8.3f} ms a layer, {said} ({parts})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--isa")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--depths", type=int, nargs="*", default=(1024, 8192))
    options = parser.parse_args()
    library = chosen_library(parser, options.isa)
    layout = CpuLayout(calls_of(library), options.threads)
    print(f"{library.isa}, {options.threads} threads, weights of Q8_0, f16")
    for depth, n in (*((depth, 1) for depth in options.depths), (0, PREFILL)):
        both = [Layers(kind, layout, options.layers, depth) for kind in (LATENT, GQA)]
        rounds = [[layers.run(depth, n) for layers in both] for _ in range(options.rounds)]
        print(f"{'decode at' if n == 1 else 'prefill from'} {depth}, {n} rows")
        for layers, spent in zip(both, zip(*rounds, strict=True), strict=True):
            print("  " + layers.report(list(spent), n), flush=True)
            layers.executor.close()


if __name__ == "__main__":
    main()
