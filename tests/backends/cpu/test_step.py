"""Steps as the native library reads them: right numbers, and long tables where they lie."""

import ctypes
from array import array

from localrun.backends.cpu import abi_step
from localrun.backends.cpu.step import NativeStep
from localrun.ops.interface import SequenceInput, StepInput


def test_tables_are_read_where_they_lie() -> None:
    """A table of a long context is not copied for every step, nor one that the reference wants as a tuple refused."""
    native = NativeStep((abi_step.Candidates * 4)(), 2, 4)
    long, short = array("i", range(5000)), (7, 8, 9)
    step = StepInput([1], [6], [0], [SequenceInput(7, (long, short), (0, 3))], [0])
    for _ in range(2):
        sequence = native.translate(step).sequence[0]
        assert sequence.table[0] == long.buffer_info()[0]
        assert (ctypes.c_int32 * 3).from_address(sequence.table[1])[:] == [7, 8, 9]
        assert (ctypes.c_int32 * 2).from_address(sequence.first)[:] == [0, 3]
        assert (sequence.length, sequence.ring[:0] if sequence.ring else None) == (7, None)
        long.append(1)  # the next block of the sequence; where the table then lies is asked anew
