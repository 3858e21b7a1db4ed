"""What a system tells of a machine that is not there: files as Linux writes them, and sysctl of a Mac."""

import ctypes
from pathlib import Path
from typing import Any


def write(folder: Path, **files: object) -> None:
    """A file a name, in which `__` stands for a dot."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, value in files.items():
        (folder / name.replace("__", ".")).write_text(f"{value}\n")


class Mac:
    """The C library of a Mac: sysctl as its manual describes it."""

    def __init__(self, **numbers: int) -> None:
        self.values = {name.replace("__", "."): n.to_bytes(4, "little") for name, n in numbers.items()}
        self.values["machdep.cpu.brand_string"] = b"Apple M2 Pro\0"

    def sysctlbyname(self, name: bytes, out: Any, size: Any, fresh: None, n_fresh: ctypes.c_size_t) -> int:
        value = self.values.get(name.decode())
        if value is None or size._obj.value < len(value):
            return -1
        ctypes.memmove(out, value, len(value))
        size._obj.value = len(value)
        return 0
