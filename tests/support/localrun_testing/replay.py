"""Steps of whole models on another build of the library, as one under qemu: memory goes there, results come back."""

import ctypes
import struct
import subprocess
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from localrun.backends.cpu import abi, abi_step
from localrun.backends.cpu.executor import CpuExecutor

POINTER_SIZE = ctypes.sizeof(ctypes.c_void_p)
LINE = 64  # bytes that what is read stays aligned to
MOST = 1 << 20  # bytes that are taken along of what is of unknown size
Place = tuple[int, int]  # address and bytes


class Memory:
    """What a program and a step can reach: places in memory, and where pointers to them stand."""

    def __init__(self, max_rows: int) -> None:
        self.max_rows = max_rows
        self.places: set[Place] = set()
        self.pointers: set[int] = set()
        self.readable = [*mapped()]

    def structure(self, address: int, kind: type[ctypes.Structure] | type[ctypes.Union]) -> None:
        """A structure and all it points to."""
        self.places.add((address, ctypes.sizeof(kind)))
        for name, field_type, *_ in kind._fields_:
            self.field(address + getattr(kind, name).offset, field_type)

    def field(self, address: int, kind: type) -> None:
        if issubclass(kind, abi.AnyOp):
            number = ctypes.c_int32.from_address(address - abi.Instruction.any.offset).value
            self.structure(address, dict(abi.AnyOp._fields_)[abi.OPS[number]])
        elif issubclass(kind, ctypes.Structure):
            self.structure(address, kind)
        elif issubclass(kind, ctypes.Array):
            self.fields(address, kind)
        elif issubclass(kind, ctypes.c_void_p) or hasattr(kind, "contents"):
            self.pointer(address, kind)

    def fields(self, address: int, kind: Any) -> None:
        """Those of an array."""
        for index in range(kind._length_):
            self.field(address + index * ctypes.sizeof(kind._type_), kind._type_)

    def pointer(self, address: int, kind: type) -> None:
        target = ctypes.c_uint64.from_address(address).value
        if not target or address in self.pointers:
            return
        self.pointers.add(address)
        pointed = getattr(kind, "_type_", None)
        if isinstance(pointed, type) and issubclass(pointed, ctypes.Structure):
            self.structure(target, pointed)
        else:
            self.unknown(target)

    def array(self, address: int, kind: type[ctypes.Structure], count: int) -> None:
        for index in range(count):
            self.structure(address + index * ctypes.sizeof(kind), kind)

    def pointers_at(self, address: int | None, count: int) -> None:
        """An array of pointers to numbers."""
        for index in range(count if address else 0):
            assert address
            self.pointer(address + index * POINTER_SIZE, ctypes.c_void_p)

    def unknown(self, address: int, n_bytes: int = MOST) -> None:
        """As much as may be there."""
        end = next(end for first, end in self.readable if first <= address < end)
        self.places.add((address, min(n_bytes, end - address)))

    def regions(self) -> list[Place]:
        """The places, those that touch or overlap in one."""
        merged: list[list[int]] = []
        for address, n_bytes in sorted(self.places):
            first = address // LINE * LINE
            if merged and first <= merged[-1][1]:
                merged[-1][1] = max(merged[-1][1], address + n_bytes)
            else:
                merged.append([first, address + n_bytes])
        return [(first, end - first) for first, end in merged]


def mapped() -> Iterator[tuple[int, int]]:
    """First and last address of all readable memory, neighbours in one."""
    start = end = 0
    for line in Path("/proc/self/maps").read_text().splitlines():
        span, rights = line.split()[:2]
        first, last = (int(part, 16) for part in span.split("-"))
        if "r" not in rights or "[v" in line:
            continue
        if first == end:
            end = last
            continue
        yield start, end
        start, end = first, last
    yield start, end


def memory_of(executor: CpuExecutor, step: abi_step.Step) -> Memory:
    """All that a step of an executor's program reads and writes."""
    program, memory = executor.program, Memory(executor.max_rows)
    n_groups, n_kinds = len(executor.blocks), len(executor.step.rope_half or ())
    memory.structure(ctypes.addressof(program), abi_step.ProgramC)
    for kind, field, count in (
        (abi.Instruction, program.instruction, program.n_instructions),
        (abi_step.CacheLayerC, program.layer, program.n_layers),
    ):
        memory.array(ctypes.addressof(field.contents), kind, count)
    for address, n_bytes in executor.reserved:
        memory.unknown(address, min(n_bytes, 16 * MOST))
    memory.structure(ctypes.addressof(step), abi_step.Step)
    memory.array(ctypes.addressof(step.sequence.contents), abi_step.SequenceC, step.n_sequences)
    for index in range(step.n_sequences):
        sequence = step.sequence[index]
        for table in (sequence.table, sequence.ring):
            memory.pointers_at(ctypes.addressof(table.contents) if table else None, n_groups)
    for angles in (step.cos, step.sin, step.sink_cos, step.sink_sin):
        memory.pointers_at(ctypes.addressof(angles.contents) if angles else None, n_kinds)
    return memory


def replay(command: Sequence[str], executor: CpuExecutor, step: abi_step.Step) -> int:
    """Run a step by the command of a driver; what it leaves in cache, logits and candidates is then here, too."""
    memory = memory_of(executor, step)
    pools = filter(None, (*executor.blocks, *executor.ring))
    results = [(pool.address, pool.n_committed * pool.block_bytes) for pool in pools]
    results.append((executor.memory.address, 4 * step.n_logits * executor.memory.rows.shape[1]))
    results.append((ctypes.addressof(step.candidates.contents), step.n_logits * ctypes.sizeof(abi_step.Candidates)))
    memory.places.update(results)
    regions = memory.regions()
    numbers = [len(regions), len(memory.pointers), len(results)]
    numbers += [ctypes.addressof(executor.program), ctypes.addressof(step), executor.max_rows]
    numbers += chain(chain.from_iterable(regions), memory.pointers, chain.from_iterable(results))
    data = struct.pack(f"<{len(numbers)}Q", *numbers) + b"".join(ctypes.string_at(*region) for region in regions)
    done = subprocess.run(command, input=data, capture_output=True, timeout=600)
    assert done.returncode == 0, (done.returncode, done.stderr.decode())
    found = memoryview(done.stdout)
    for address, n_bytes in results:
        ctypes.memmove(address, bytes(found[:n_bytes]), n_bytes)
        found = found[n_bytes:]
    return abi.OK
