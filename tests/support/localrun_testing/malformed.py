"""Making a good GGUF bad in one place, and demanding that it is refused as it should be."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gguf
import pytest

from localrun.base.errors import ModelFileError
from localrun_testing.gguf_convert import prepare, write
from localrun_testing.resources import peak_growth

Change = Callable[[gguf.GGUFWriter], None]

MAX_SECONDS, MAX_BYTES = 1.0, 300 << 20
TYPES: dict[type, gguf.GGUFValueType] = {
    bool: gguf.GGUFValueType.BOOL,
    int: gguf.GGUFValueType.INT64,
    float: gguf.GGUFValueType.FLOAT32,
    str: gguf.GGUFValueType.STRING,
    list: gguf.GGUFValueType.ARRAY,
}


def key(name: str, value: Any) -> Change:
    """Set a key, under the architecture's prefix where the name has a dot in front; ... removes it."""

    def change(writer: gguf.GGUFWriter) -> None:
        keys = writer.kv_data[0]
        full = keys["general.architecture"].value + name if name.startswith(".") else name
        if value is ...:
            del keys[full]
        else:
            item = TYPES[type(value[0])] if isinstance(value, list) else None
            keys[full] = gguf.gguf_writer.GGUFValue(value, TYPES[type(value)], item)

    return change


def keys(**values: Any) -> Change:
    """Several keys of the architecture at once, `__` standing for a dot."""
    changes = [key("." + name.replace("__", "."), value) for name, value in values.items()]

    def change_all(writer: gguf.GGUFWriter) -> None:
        for change in changes:
            change(writer)

    return change_all


def tensor(name: str, data: Any, kind: gguf.GGMLQuantizationType | None = None) -> Change:
    """Replace a tensor (or add one); ... removes it."""

    def change(writer: gguf.GGUFWriter) -> None:
        writer.tensors[0].pop(name, None)
        if data is not ...:
            writer.add_tensor(name, data, raw_dtype=kind)

    return change


def transpose(name: str) -> Change:
    def change(writer: gguf.GGUFWriter) -> None:
        data: Any = writer.tensors[0][name].tensor
        tensor(name, data.T.copy())(writer)

    return change


def write_changed(folder: Path, target: Path, change: Change) -> Path:
    """The GGUF of a tiny folder after `change`."""
    writer = prepare(folder, target)
    change(writer)
    write(writer)
    return target


def refused(path: Path, code: str, check: Callable[[Path], object]) -> None:
    """`check(path)` is a ModelFileError `code` within the limits, and says so in one plain line."""
    started = time.process_time()  # not the clock on the wall: tests share their processors
    with peak_growth() as growth, pytest.raises(ModelFileError) as caught:
        check(path)
    assert caught.value.code == code, caught.value
    assert caught.value.message.isprintable()
    assert len(caught.value.message) < 400 + len(str(path))
    assert time.process_time() - started < MAX_SECONDS
    assert growth.bytes < MAX_BYTES
