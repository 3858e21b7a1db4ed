"""An executor without a model, that reads prompts in bulk: a token's value follows from all before it and how each of
them was read. So whatever is mixed shows in every value after it."""

import struct
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from localrun.base.device_figures import DeviceFigures
from localrun.ops.interface import Logits, PlainKV, StepInput
from localrun.ops.kv import BLOCK_TOKENS
from localrun.ops.program import Handle
from localrun_testing.small_model import VOCAB_SIZE

PRIME = (1 << 61) - 1


def follow(before: int, token: int, in_bulk: bool) -> int:
    """The value of a token after one of value `before`."""
    return (before * 1_000_003 + 2 * token + in_bulk + 1) % PRIME


def truth(ids: Sequence[int], n_bulk: int) -> int:
    """The value of the last of these tokens."""
    value = 0
    for first in range(0, len(ids), BLOCK_TOKENS):
        value = _follow_all(value, tuple(ids[first : first + BLOCK_TOKENS]), min(max(n_bulk - first, 0), BLOCK_TOKENS))
    return value


@lru_cache(1 << 14)  # a step asks for all tokens before it again
def _follow_all(value: int, ids: tuple[int, ...], n_bulk: int) -> int:
    for position, token in enumerate(ids):
        value = follow(value, token, position < n_bulk)
    return value


class ChainedExecutor:
    """One layer that sees everything: a block keeps the value of each of its tokens."""

    kv_nbytes = 0
    exact_rows = True
    takes_images = False
    runs_ahead = False

    def __init__(self, n_blocks: int, span: int) -> None:
        self.bulk_span = span
        self.values = [[-1] * BLOCK_TOKENS for _ in range(n_blocks)]
        self.n_rows: list[int] = []  # of every step
        self.found: list[int] = []  # values of the rows of the last step whose logits were wanted

    @property
    def device_steps(self) -> DeviceFigures:
        return DeviceFigures()

    def hidden(self, n_rows: int) -> np.ndarray | None:
        return None

    def beside(self, n_rows: int) -> np.ndarray | None:
        return None

    def block_bytes(self, group: int) -> int:
        return 8 * BLOCK_TOKENS

    def ring_bytes(self, group: int) -> int:
        return 0

    def copy_block(self, group: int, source: int, target: int) -> None:
        self.values[target] = list(self.values[source])

    def read_block(self, group: int, block: int) -> bytes:
        return struct.pack(f"<{BLOCK_TOKENS}q", *self.values[block])

    def write_block(self, group: int, block: int, data: bytes | memoryview) -> None:
        self.values[block] = list(struct.unpack(f"<{BLOCK_TOKENS}q", data))

    def run(self, step: StepInput) -> Handle:
        rows = []
        for token, position, index in zip(step.token_ids, step.positions, step.row_sequence, strict=True):
            sequence = step.sequences[index]

            def place(at: int, table: Sequence[int] = sequence.table[0]) -> tuple[list[int], int]:
                return self.values[table[at // BLOCK_TOKENS]], at % BLOCK_TOKENS

            before = 0
            if position:
                block, slot = place(position - 1)
                before = block[slot]
            block, slot = place(position)
            block[slot] = follow(before, token, position < sequence.n_bulk)
            rows.append(block[slot])
        self.n_rows.append(len(rows))
        self.found = [rows[row] for row in step.logits_rows]
        values = np.zeros((len(self.found), VOCAB_SIZE), np.float32)
        values[np.arange(len(self.found)), [value % VOCAB_SIZE for value in self.found]] = 9.0
        best = np.argsort(-values, axis=1, kind="stable").astype(np.int32)
        sums = np.log(np.exp(values).sum(1))
        finite = np.ones(len(values), bool)
        return Handle(Logits(values, best, np.take_along_axis(values, best, 1), sums, finite))

    def copy_ring(self, group: int, source: int, target: int) -> None:
        raise AssertionError("there is none")

    def read_ring(self, group: int, block: int) -> bytes:
        raise AssertionError("there is none")

    def write_ring(self, group: int, block: int, data: bytes | memoryview) -> None:
        raise AssertionError("there is none")

    def kv_export(self, layer: int, block: int, ring: bool = False) -> tuple[PlainKV, PlainKV]:
        raise AssertionError("nobody asks")

    def kv_import(self, layer: int, block: int, keys: PlainKV, values: PlainKV, ring: bool = False) -> None:
        raise AssertionError("nobody asks")

    def close(self) -> None:
        pass
