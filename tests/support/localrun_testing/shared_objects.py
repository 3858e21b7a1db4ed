"""What a shared library says of itself, whatever system it is for: ELF, Mach-O and PE, of 64 bits and little-endian."""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_MACHINES = {
    62: "x86_64",
    183: "aarch64",
    0x1000007: "x86_64",
    0x100000C: "aarch64",
    0x8664: "x86_64",
    0xAA64: "aarch64",
}


@dataclass(frozen=True)
class SharedObject:
    """`needs` are the libraries it is linked with, `exports` the names it offers as C spells them."""

    format: str  # "elf", "macho" or "pe"
    machine: str
    needs: frozenset[str]
    exports: frozenset[str]


def read(path: Path) -> SharedObject:
    """ValueError for anything else."""
    data = path.read_bytes()
    for magic, reader in ((b"\x7fELF\x02\x01", _elf), (b"\xcf\xfa\xed\xfe", _macho), (b"MZ", _pe)):
        if data.startswith(magic):
            return reader(data)
    raise ValueError(f"{path} is no shared library")


def _text(data: bytes, at: int) -> str:
    return data[at : data.index(b"\0", at)].decode()


def _elf(data: bytes) -> SharedObject:
    (machine,) = struct.unpack_from("<H", data, 18)
    (table,) = struct.unpack_from("<Q", data, 40)
    size, count = struct.unpack_from("<HH", data, 58)
    sections = [struct.unpack_from("<IIQQQQIIQQ", data, table + i * size) for i in range(count)]
    needs, exports = set[str](), set[str]()
    for _, kind, _, _, offset, n_bytes, link, *_ in sections:
        texts = sections[link][4] if link < count else 0
        if kind == 6:  # SHT_DYNAMIC
            tags = struct.iter_unpack("<QQ", data[offset : offset + n_bytes])
            needs |= {_text(data, texts + value) for tag, value in tags if tag == 1}  # DT_NEEDED
        elif kind == 11:  # SHT_DYNSYM
            symbols = struct.iter_unpack("<IBBHQQ", data[offset : offset + n_bytes])
            exports |= {_text(data, texts + name) for name, info, _, section, *_ in symbols if section and info >> 4}
    return SharedObject("elf", _MACHINES[machine], frozenset(needs), frozenset(exports))


def _macho(data: bytes) -> SharedObject:
    machine, _, _, n_commands = struct.unpack_from("<IIII", data, 4)
    at, needs, exports = 32, set[str](), set[str]()
    for _ in range(n_commands):
        command, size = struct.unpack_from("<II", data, at)
        if command == 0xC:  # LC_LOAD_DYLIB
            needs.add(_text(data, at + struct.unpack_from("<I", data, at + 8)[0]))
        elif command == 0x2:  # LC_SYMTAB
            symbols, n_symbols, texts, _ = struct.unpack_from("<IIII", data, at + 8)
            for name, kind, *_ in struct.iter_unpack("<IBBHQ", data[symbols : symbols + 16 * n_symbols]):
                if kind & 0xFF == 0x0F:  # in a section, for others to see
                    exports.add(_text(data, texts + name).removeprefix("_"))
        at += size
    return SharedObject("macho", _MACHINES[machine], frozenset(needs), frozenset(exports))


def _pe(data: bytes) -> SharedObject:
    (at,) = struct.unpack_from("<I", data, 0x3C)
    machine, n_sections, _, _, _, n_optional, _ = struct.unpack_from("<HHIIIHH", data, at + 4)
    heads = [struct.unpack_from("<8sIIII", data, at + 24 + n_optional + 40 * i) for i in range(n_sections)]

    def place(address: int) -> int:
        inside: Iterator[int] = (address - a + offset for _, n, a, _, offset in heads if a <= address < a + n)
        return next(inside)

    exported, _, imported, _ = struct.unpack_from("<IIII", data, at + 24 + 112)
    n_names, _, names = struct.unpack_from("<III", data, place(exported) + 24)
    exports = {_text(data, place(name)) for (name,) in struct.iter_unpack("<I", data[place(names) :][: 4 * n_names])}
    needs, entry = set[str](), place(imported)
    while name := struct.unpack_from("<I", data, entry + 12)[0]:
        needs.add(_text(data, place(name)))
        entry += 20
    return SharedObject("pe", _MACHINES[machine], frozenset(needs), frozenset(exports))
