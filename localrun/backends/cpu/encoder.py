"""Encoders in the native library: one recorded program, run in parts. Torch-free."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator

import numpy as np

from localrun.backends.cpu import abi, abi_step
from localrun.backends.cpu.bindings import start_threads
from localrun.backends.cpu.buffers import CpuBuffers
from localrun.backends.cpu.layout import CpuLayout
from localrun.backends.cpu.logits import view_of
from localrun.backends.cpu.program import ProgramBuilder
from localrun.backends.cpu.step import NativeStep
from localrun.ops.encoder_program import EncoderInput, EncoderRecording
from localrun.ops.interface import StepCancelled

PARTS = 32  # of a program, for the sake of its progress


class CpuEncoder:
    """An encoder with an arena for `max_rows` rows, which is given back when it is closed."""

    def __init__(self, layout: CpuLayout, recording: EncoderRecording, max_rows: int) -> None:
        self.calls, self.max_rows = layout.calls, max_rows
        self.reserved: list[tuple[int, int]] = []
        known = (layout.matrix, layout.activation_format, layout.file_type)
        builder = ProgramBuilder(
            recording.instructions, (), CpuBuffers(self.reserve, max_rows), *known, given=recording.given
        )
        self.given = [builder.values[slot] for slot in range(len(recording.given))]
        instructions = builder.build()
        self.result = builder.values[recording.result]
        self.keep = builder.keep
        self.instructions = (abi.Instruction * len(instructions))(*instructions)
        self.step = NativeStep(None, 0, max_rows)
        self.threads = start_threads(self.calls, layout.n_threads)

    def reserve(self, n_bytes: int) -> int:
        """The address of zeroed memory that is freed with the encoder."""
        address = self.calls.reserve(n_bytes)
        self.reserved.append((address, n_bytes))
        return address

    def run(self, rows: EncoderInput, progress: Callable[[float], None]) -> np.ndarray:
        n_rows = sum(rows.lengths)
        assert n_rows <= self.max_rows
        for value, numbers in zip(self.given, rows.given, strict=True):
            view_of(value, n_rows)[:] = numbers
        step = self.step.translate(rows.step())
        for done, part in self.parts():
            handle = self.calls.program_create(part, self.threads, self.max_rows)
            try:
                if self.calls.program_run(handle, step) == abi.CANCELLED:
                    raise StepCancelled
            finally:
                self.calls.program_destroy(handle)
            progress(done)
        return view_of(self.result, n_rows).copy()

    def parts(self) -> Iterator[tuple[float, abi_step.ProgramC]]:
        """Programs of the instructions in their order, and what share of them is done after each."""
        n, size = len(self.instructions), ctypes.sizeof(abi.Instruction)
        length = -(-n // PARTS)
        for first in range(0, n, length):
            count = min(length, n - first)
            begin = (abi.Instruction * count).from_buffer(self.instructions, first * size)
            yield (first + count) / n, abi_step.ProgramC(begin, None, count, 0)

    def close(self) -> None:
        self.calls.threads_destroy(self.threads)
        for address, n_bytes in self.reserved:
            self.calls.release(address, n_bytes)
        self.reserved.clear()
