"""What a compiled CUDA kernel needs of a GPU, and its instructions, read from the cubin: no GPU, no driver."""

import re
import shutil
import struct
import subprocess
import sysconfig
from collections import Counter
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from localrun_testing.kept import kept

_FRAME_SIZE, _MAX_THREADS, _REGISTERS = 0x11, 0x05, 0x2F  # EIATTR_*: records of the sections .nv.info
_SIZED = 4  # a record of so many bytes; others hold two


@dataclass(slots=True)
class Kernel:
    """registers of a thread; stack: bytes of its own in memory; shared: static bytes; threads: the most in a block."""

    registers: int = 0
    stack: int = 0
    shared: int = 0
    threads: int = 0
    instructions: Counter[str] = field(default_factory=Counter)

    def count(self, *prefixes: str) -> int:
        """Instructions whose names start with one of these."""
        return sum(n for name, n in self.instructions.items() if name.startswith(prefixes))


def kernels(cubin: bytes) -> dict[str, Kernel]:
    """By name; without instructions."""
    sections = _sections(cubin)
    names = _symbols(cubin, sections)
    found: dict[str, Kernel] = {name.removeprefix(".text."): Kernel() for name in sections if name.startswith(".text.")}
    for attribute, record in _records(cubin, sections[".nv.info"]):
        if len(record) == 8:
            symbol, value = struct.unpack("<II", record)
            if (kernel := found.get(names[symbol])) is not None:
                if attribute == _REGISTERS:
                    kernel.registers = value
                elif attribute == _FRAME_SIZE:
                    kernel.stack = value
    for name, kernel in found.items():
        kernel.shared = sections.get(f".nv.shared.{name}", (0, 0))[1]
        for attribute, record in _records(cubin, sections[f".nv.info.{name}"]):
            if attribute == _MAX_THREADS:
                x, y, z = struct.unpack("<III", record)
                kernel.threads = x * y * z
    return found


def disassembled(cubin: bytes) -> dict[str, Kernel]:
    """By name, with instructions, by nvdisasm."""
    tool = Path(sysconfig.get_path("purelib"), "nvidia", "cu13", "bin", "nvdisasm")
    command = str(tool) if tool.exists() else shutil.which("nvdisasm") or "nvdisasm"

    def disassemble(path: Path) -> None:
        source = path.with_name("kernels.cubin")
        source.write_bytes(cubin)
        # Instructions are all that is read: where branches lead, a fifth of its time, changes none.
        what = ("--print-code", "--no-dataflow")
        done = subprocess.run([command, *what, str(source)], capture_output=True, text=True, check=True)
        path.write_text(done.stdout)

    text = kept(disassemble, cubin, _version_of(command)).read_text()
    found = kernels(cubin)
    for part in re.split(r"\n\.text\.", text)[1:]:
        name = part[: part.index(":")]
        instruction = re.compile(r"^\s+/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+ )?([A-Z0-9_.]+)", re.MULTILINE)
        found[name].instructions.update(instruction.findall(part))
    return found


@cache
def _version_of(command: str) -> str:
    return subprocess.run([command, "--version"], capture_output=True, text=True, check=True).stdout


def _sections(cubin: bytes) -> dict[str, tuple[int, int]]:
    """Offset and size of the ELF file's sections."""
    (table,) = struct.unpack_from("<Q", cubin, 0x28)
    _, n_sections, names_at = struct.unpack_from("<HHH", cubin, 0x3A)
    raw = [struct.unpack_from("<IIQQQQ", cubin, table + 64 * i) for i in range(n_sections)]
    names = raw[names_at][4]
    return {_string(cubin, names + header[0]): (header[4], header[5]) for header in raw}


def _symbols(cubin: bytes, sections: dict[str, tuple[int, int]]) -> list[str]:
    at, size = sections[".symtab"]
    strings = sections[".strtab"][0]
    return [_string(cubin, strings + struct.unpack_from("<I", cubin, i)[0]) for i in range(at, at + size, 24)]


def _records(cubin: bytes, section: tuple[int, int]) -> list[tuple[int, bytes]]:
    found = []
    at, end = section[0], sum(section)
    while at < end:
        kind, attribute, size = struct.unpack_from("<BBH", cubin, at)
        at += 4
        if kind == _SIZED:
            found.append((attribute, cubin[at : at + size]))
            at += size
    return found


def _string(data: bytes, at: int) -> str:
    return data[at : data.index(b"\0", at)].decode()
