"""Rules for tensors in a file that every container shares: their names, and their places."""

from collections.abc import Iterable
from pathlib import Path

from localrun.formats.files import bad_file, shown
from localrun.formats.source import TensorInfo


def is_tensor_name(name: str) -> bool:
    """Names end up in messages and tables: no control characters, nothing that climbs out of a folder."""
    return name.isprintable() and name != "" and not name.startswith("/") and ".." not in name and "\\" not in name


def padded(n_bytes: int, alignment: int) -> int:
    return -(-n_bytes // alignment) * alignment


def check_layout(tensors: Iterable[TensorInfo], path: Path, size: int, data_start: int, alignment: int = 1) -> int:
    """Every byte from `data_start` on belongs to one tensor or its padding, and all lie inside the file of `size`.

    Returns where the last tensor and its padding end. Raises ModelFileError.
    """
    expected = data_start
    for info in sorted(tensors, key=lambda info: info.offset):
        name = f"the tensor {shown(info.name)}"
        if (info.offset - data_start) % alignment:
            message = f"{name} does not start at a multiple of {alignment} bytes"
            raise bad_file("BAD_OFFSET", message, path, info.offset)
        if info.offset < expected:
            raise bad_file("OVERLAP", f"{name} overlaps the tensor before it", path, info.offset)
        if info.offset > expected and info.offset >= size:
            raise bad_file("BAD_OFFSET", f"{name} starts behind the end of the file", path, info.offset)
        if info.offset > expected:
            message = f"{info.offset - expected:,} bytes before {name} belong to no tensor"
            raise bad_file("GAP", message, path, expected)
        if info.offset + info.nbytes > size:
            missing = info.offset + info.nbytes - size
            message = f"{missing:,} bytes are missing at the end of {name}: the file is cut short"
            raise bad_file("TRUNCATED", message, path, info.offset)
        expected = padded(info.offset + info.nbytes, alignment)
    return expected
