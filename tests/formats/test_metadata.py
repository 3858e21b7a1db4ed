"""Typed getters: the right type comes out, every wrong one is an error of the file."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from localrun.base.errors import ModelFileError
from localrun.formats.metadata import Metadata

VALUES: dict[str, Any] = {
    "int": 7,
    "float": 1.5,
    "str": "text",
    "bool": True,
    "ints": [1, 2],
    "floats": [1.0],
    "strs": ["a"],
    "bools": [False],
    "mixed": [1, 1.0],
    "empty": [],
    "null": None,
    "dict": {"a": 1},
    "huge": 10**400,  # a whole number, but no float
}
METADATA = Metadata(VALUES, Path("m.gguf"))
GETTERS: dict[str, Callable[[str], Any]] = {
    "int": METADATA.get_int,
    "float": METADATA.get_float,
    "str": METADATA.get_str,
    "bool": METADATA.get_bool,
}
KINDS: dict[str, type] = {"ints": int, "floats": float, "strs": str, "bools": bool}


@pytest.mark.parametrize("kind", GETTERS)
def test_typed_getters_check_scalars(kind: str) -> None:
    get = GETTERS[kind]
    accepted = {"int": {"int", "huge"}, "float": {"float", "int"}}.get(kind, {kind})
    for key, value in VALUES.items():
        if key in accepted:
            assert get(key) == value
            assert type(get(key)) is type(VALUES[kind])
        else:
            with pytest.raises(ModelFileError) as caught:
                get(key)
            assert caught.value.code == ("MISSING_KEY" if key == "null" else "BAD_TYPE")


@pytest.mark.parametrize("kind", KINDS)
def test_typed_getters_check_arrays(kind: str) -> None:
    for key, value in VALUES.items():
        if key in (kind, "empty"):
            assert METADATA.get_array(key, KINDS[kind]) == value
        else:
            with pytest.raises(ModelFileError) as caught:
                METADATA.get_array(key, KINDS[kind])
            assert caught.value.code == ("MISSING_KEY" if key == "null" else "BAD_TYPE")


def test_defaults() -> None:
    assert METADATA.get_int("none", 3) == METADATA.get_int("null", 3) == 3
    assert METADATA.get_float("none", 0.5) == 0.5
    assert METADATA.get_str("none", "") == ""
    assert METADATA.get_bool("none", False) is False
    assert METADATA.get_array("none", int, []) == []
    with pytest.raises(ModelFileError, match="'str' has to be a whole number, and is of type str"):
        METADATA.get_int("str", 3)
    with pytest.raises(ModelFileError, match=r"m\.gguf: the key 'none' is missing"):
        METADATA.get_int("none")


def test_metadata_is_a_mapping() -> None:
    assert dict(METADATA) == VALUES
    assert len(METADATA) == len(VALUES)
    assert "int" in METADATA
    assert repr(METADATA) == "Metadata(13 keys of 'm.gguf')"
