"""Key-values of a model file behind typed getters: a wrong type is an error of the file, never of ours."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from localrun.base.errors import ModelFileError
from localrun.formats.files import bad_file, shown

T = TypeVar("T", bool, int, float, str)

_NAMES = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}


class Metadata(Mapping[str, Any]):
    """GGUF key-values, or config.json: a mapping with typed getters.

    A getter without a default demands its key; null is the same as no key. Getters raise ModelFileError: MISSING_KEY,
    or BAD_TYPE for a value of another type. true is not 1; but a whole number will do for a float, since JSON writes
    10000 for 10000.0.
    """

    def __init__(self, values: Mapping[str, Any], path: Path) -> None:
        """`path` is the file that they are in."""
        self.path = path
        self._values = values

    def __getitem__(self, key: str) -> Any:
        return self._values[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"Metadata({len(self)} keys of {shown(str(self.path))})"

    def get_int(self, key: str, default: int | None = None) -> int:
        return self._scalar(key, int, default)

    def get_float(self, key: str, default: float | None = None) -> float:
        return self._scalar(key, float, default)

    def get_str(self, key: str, default: str | None = None) -> str:
        return self._scalar(key, str, default)

    def get_bool(self, key: str, default: bool | None = None) -> bool:
        return self._scalar(key, bool, default)

    def get_array(self, key: str, kind: type[T], default: list[T] | None = None) -> list[T]:
        """A list whose every element is of exactly that kind."""
        value = self._find(key, default)
        if type(value) is list and set(map(type, value)) <= {kind}:
            return value
        raise self._wrong_type(key, f"a list, and each element {_NAMES[kind]}")

    def _scalar(self, key: str, kind: type[T], default: T | None) -> T:
        value = self._find(key, default)
        if type(value) is kind:
            return value
        if kind is float and type(value) is int and abs(value) < 1 << 1000:  # there is no float for larger ones
            return kind(value)
        raise self._wrong_type(key, _NAMES[kind])

    def _find(self, key: str, default: Any) -> Any:
        value = self._values.get(key)
        if value is None:
            value = default
        if value is None:
            raise bad_file("MISSING_KEY", f"the key {shown(key)} is missing", self.path)
        return value

    def _wrong_type(self, key: str, expected: str) -> ModelFileError:
        found = type(self._values[key]).__name__
        return bad_file("BAD_TYPE", f"{shown(key)} has to be {expected}, and is of type {found}", self.path)
