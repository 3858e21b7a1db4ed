"""The mirror of the C ABI: every field of the headers is compared, and a library of other sources is refused."""

import ctypes
import re

import pytest
from localrun_testing.instruction_sets import SOURCES, library_in_use

from localrun.backends.cpu import abi_check, abi_step, library
from localrun.backends.cpu.library import load_library, why_no_library

HEADER_NAMES = ("values.h", "instructions.h", "program.h", "localrun_cpu.h")
HEADERS = "".join((SOURCES / name).read_text() for name in HEADER_NAMES)


@pytest.fixture
def loading(monkeypatch: pytest.MonkeyPatch) -> None:
    """The library is loaded anew."""
    library_in_use()
    monkeypatch.setattr(library, "_load", library._load.__wrapped__)


def fields_of_headers() -> set[str]:
    """ "structure.field" for everything in the headers, as read from their text."""
    text = re.sub(r"//.*", "", HEADERS)
    names = set()
    for body, structure in re.findall(r"typedef struct \{(.*?)\n\} (lr_\w+);", text, re.S):
        declarations = re.sub(r"union \{(.*?)\};", r"\1", body, flags=re.S).replace(",", ";").split(";")
        found = (re.search(r"(\w+)\s*(\[.*\])?$", declaration.strip()) for declaration in declarations)
        names |= {structure} | {f"{structure}.{field[1]}" for field in found if field}
    return {name for name in names if not name.startswith("lr_abi_entry")}


def test_the_library_and_its_mirror_agree() -> None:
    assert abi_check.differences(library_in_use().cdll) == []


def test_every_field_of_the_headers_is_compared() -> None:
    fields = fields_of_headers()
    assert len(fields) > 100
    assert fields == {name for name in abi_check.found(library_in_use().cdll) if name.startswith("lr_")}


class Swapped(ctypes.Structure):
    _fields_ = tuple(abi_step.KVPoolC._fields_[i] for i in (0, 2, 1))


class Short(ctypes.Structure):
    _fields_ = tuple(abi_step.KVPoolC._fields_[:2])


@pytest.mark.parametrize(
    ("where", "name", "other", "said"),
    [
        ("STRUCTURES", "lr_kv_pool", Swapped, "lr_kv_pool.block_bytes is (8, 8), not (16, 8)"),
        ("STRUCTURES", "lr_kv_pool", Short, "lr_kv_pool is (0, 24), not (0, 16)"),
        ("CONSTANTS", "LR_STRIDE", 128, "LR_STRIDE is (256, 0), not (128, 0)"),
        ("CONSTANTS", "LR_OP_CONV", 9, "LR_OP_CONV is None, not (9, 0)"),
    ],
)
def test_a_library_of_other_sources_is_refused(
    loading: None, monkeypatch: pytest.MonkeyPatch, where: str, name: str, other: object, said: str
) -> None:
    monkeypatch.setitem(getattr(abi_check, where), name, other)
    assert load_library() is None
    assert f"built from other sources ({said})" in why_no_library()
    assert "reinstall localrun" in why_no_library()
