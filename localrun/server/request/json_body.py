"""Bodies of requests: bounded, JSON, and read field by field, so that an error names the field."""

import base64
import binascii
import json
import math
from collections.abc import Iterator
from typing import Any

from starlette.requests import Request as HttpRequest

from localrun.base.request import Json
from localrun.base.setting_rows import SETTINGS
from localrun.server.options import seconds
from localrun.server.refusal import Refusal

MAX_BYTES = 32 << 20
MAX_VALUES = 2_000_000  # counted by their commas and brackets, before any of them takes memory
MAX_KEYS = 250_000  # counted by their colons: reading so many takes a quarter of a second, and everybody waits
MAX_DEPTH = 64
MAX_ITEMS = 4_096  # of a list of messages, tools or prompts


async def read_json(request: HttpRequest) -> "Body":
    """The body of a request. Raises Refusal where it is too long or not a JSON object."""
    _check_size(int(request.headers.get("content-length", 0)))  # h11 lets only digits through
    chunks, nbytes = [], 0
    async for chunk in request.stream():
        nbytes += len(chunk)
        _check_size(nbytes)
        chunks.append(chunk)
    return parse_json(b"".join(chunks))


def parse_json(data: bytes) -> "Body":
    """A JSON object. Raises Refusal."""
    if sum(data.count(mark) for mark in (b",", b"[", b"{")) > MAX_VALUES:
        raise Refusal(413, f"the body has more than {MAX_VALUES:,} values", "request_too_large")
    if data.count(b":") > MAX_KEYS:
        raise Refusal(413, f"the body has more than {MAX_KEYS:,} keys, or colons in its texts", "request_too_large")
    try:
        values = json.loads(data, parse_constant=_no_number, parse_float=_finite)
    except RecursionError:
        raise _too_deep() from None
    except ValueError as error:
        why, _, _ = str(error).partition(";")  # what follows is for programmers
        raise Refusal(400, f"the body is not JSON: {why}", "invalid_json") from None
    if not isinstance(values, dict):
        raise Refusal(400, "the body has to be a JSON object", "invalid_json")
    level: list[Any] = [values]
    for _ in range(MAX_DEPTH):
        level = [inner for outer in level for inner in _within(outer) if type(inner) in (dict, list)]
        if not level:
            return Body(values)
    raise _too_deep()


class Body:
    """The fields of a JSON object; null counts as missing. `where`: its own path in the body.

    Every method gives `usual` where the field is missing, and raises Refusal where it is something else.
    """

    def __init__(self, values: Json, where: str = "") -> None:
        self.values, self.where = values, where

    def __contains__(self, name: str) -> bool:
        return self.values.get(name) is not None

    def text(self, name: str, usual: str = "") -> str:
        return usual if name not in self else self._checked(name, str, "a string is needed")

    def flag(self, name: str, usual: bool = False) -> bool:
        return usual if name not in self else self._checked(name, bool, "true or false is needed")

    def whole(self, name: str, usual: int | None, low: int, high: int) -> int | None:
        """An integer within a range; JSON has one kind of numbers, so it may be written as 3.0."""
        if name not in self:
            return usual
        value = _as_integer(self.values[name])
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise self.wrong(name, f"an integer from {low:,} to {high:,} is needed")
        return value

    def setting(self, name: str, key: str) -> Any:
        """A number within the range of the setting of the same name; None where it is missing."""
        if name not in self:
            return None
        value = self.values[name]
        try:
            if isinstance(value, str | bool):
                raise ValueError("a number is needed")
            return SETTINGS[key].parse(_as_integer(value))
        except ValueError as error:
            raise self.wrong(name, str(error)) from None

    def seconds(self, name: str) -> float | None:
        """A time, as `5m` or 300; inf for a negative one."""
        if name not in self:
            return None
        try:
            found = seconds(self.values[name])
        except ValueError as error:
            raise self.wrong(name, str(error)) from None
        return math.inf if found is None else found

    def choice(self, name: str, choices: tuple[str, ...], usual: str) -> str:
        value = self.text(name, usual)
        if value not in choices:
            raise self.wrong(name, f"one of {', '.join(choices)} is needed")
        return value

    def texts(self, name: str, most: int) -> tuple[str, ...]:
        """A string, or a list of up to `most` of them."""
        value = self.values.get(name)
        values = [value] if isinstance(value, str) else [] if value is None else value
        if not isinstance(values, list) or len(values) > most or not all(isinstance(one, str) for one in values):
            raise self.wrong(name, f"a string or a list of up to {most} strings is needed")
        return tuple(values)

    def inner(self, name: str) -> "Body":
        """An object within this one; an empty one where it is missing."""
        values = {} if name not in self else self._checked(name, dict, "an object is needed")
        return Body(values, self.place(name))

    def objects(self, name: str) -> list["Body"]:
        """A list of objects."""
        values = [] if name not in self else self._checked(name, list, "a list is needed")
        if len(values) > MAX_ITEMS:
            raise self.wrong(name, f"at most {MAX_ITEMS:,} are taken")
        return [self._item(name, number, value) for number, value in enumerate(values)]

    def place(self, name: str) -> str:
        """Path of a field in the body, such as `messages[2].content`."""
        return f"{self.where}.{name}" if self.where else name

    def wrong(self, name: str, needed: str) -> Refusal:
        """The refusal of a field."""
        return Refusal(400, f"{self.place(name)}: {needed}", "invalid_value", self.place(name))

    def decoded(self, name: str, encoded: str, needed: str) -> bytes:
        """The bytes of base64 that a field has. Raises Refusal."""
        try:
            return base64.b64decode(encoded, validate=True)
        except (binascii.Error, ValueError):
            raise self.wrong(name, needed) from None

    def _item(self, name: str, number: int, value: object) -> "Body":
        where = f"{self.place(name)}[{number}]"
        if not isinstance(value, dict):
            raise Refusal(400, f"{where}: an object is needed", "invalid_value", where)
        return Body(value, where)

    def _checked(self, name: str, kind: type, needed: str) -> Any:
        if not isinstance(self.values[name], kind):
            raise self.wrong(name, needed)
        return self.values[name]


def _check_size(nbytes: int) -> None:
    if nbytes > MAX_BYTES:
        raise Refusal(413, f"the body has more than {MAX_BYTES >> 20} MB", "request_too_large")


def _within(value: Any) -> Iterator[Any]:
    return iter(value.values()) if isinstance(value, dict) else iter(value)


def _as_integer(value: Any) -> Any:
    """A number without a fraction as an integer; else the value."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _no_number(name: str) -> float:
    raise ValueError(f"{name} is no number")


def _finite(digits: str) -> float:
    number = float(digits)
    return number if math.isfinite(number) else _no_number(digits)


def _too_deep() -> Refusal:
    return Refusal(400, f"the body is nested more than {MAX_DEPTH} levels deep", "invalid_json")
