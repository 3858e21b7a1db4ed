"""Buffers of the arena: what the operations of a program leave for each other."""

from collections.abc import Callable
from dataclasses import field

from localrun.backends.cpu import abi
from localrun.base.dataclass import dataclass

GROUP = 32  # codes that share a scale and a sum


def row_stride(width: int) -> int:
    """Numbers from one row to the next. No power of two: a task of a linear writes a few columns of many rows, and all
    of them would fall into one set of a cache."""
    return -(-width // abi.STRIDE) * abi.STRIDE + GROUP


@dataclass(slots=True)
class CpuBuffers:
    """Arena buffers by what they hold; one is used again as soon as nothing reads it."""

    allocate: Callable[[int], int]  # bytes -> address, zeroed
    max_rows: int
    free: dict[tuple[int, int, int], list[abi.Value]] = field(default_factory=dict)

    def take(self, width: int, formats: int, copies: int = 1) -> abi.Value:
        """A buffer of exactly that width: what lies behind it in a row has to stay zero. `copies`: of every row."""
        spare = self.free.get((width, formats, copies))
        return spare.pop() if spare else self.make(width, formats, copies * self.max_rows)

    def give(self, value: abi.Value, copies: int = 1) -> None:
        self.free.setdefault((value.width, value.formats, copies), []).append(value)

    def make(self, width: int, formats: int, rows: int) -> abi.Value:
        stride = row_stride(width)
        value = abi.Value(stride=stride, width=width, formats=formats, f32=self.allocate(4 * rows * stride))
        if code_bytes := formats & (abi.FORMAT_Q8 | abi.FORMAT_Q16):
            value.q8 = self.allocate(code_bytes * rows * stride)
            value.q8_scale = self.allocate(4 * rows * stride // GROUP)
            value.q8_sum = self.allocate(4 * rows * stride // (GROUP // 2))
        if formats & abi.FORMAT_BF16:
            value.bf16 = self.allocate(2 * rows * stride)
        return value
