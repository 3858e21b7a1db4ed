"""Encode dataclasses as plain JSON data and decode them by their annotations, so that no other type can be created."""

import dataclasses
import types
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

Convert = Callable[[Any], Any]


class WireError(ValueError):
    """Data that does not match its annotation."""


class JsonCodec(NamedTuple):
    """`encode` gives JSON data; `decode` gives the value back. Both raise WireError for a wrong type.

    `schema` spells the whole shape, so that two programs can tell whether they mean the same by it.
    """

    encode: Convert
    decode: Convert
    schema: str


def codec(kind: Any) -> JsonCodec:
    """The converter of an annotation. Dataclasses become [name, field, …], so that members of a union differ."""
    return _codec(kind)


@cache
def _codec(kind: Any) -> JsonCodec:
    origin, arguments = get_origin(kind), get_args(kind)
    if kind is Any:
        return JsonCodec(_same, _same, "Any")
    if kind in (str, int, float, bool, type(None)):
        return _scalar(kind)
    if kind is bytes:
        return JsonCodec(lambda value: _only(bytes, value).decode("latin-1"), _bytes, "bytes")
    if kind is Path:
        return JsonCodec(lambda value: str(_only(Path, value)), lambda value: Path(_only(str, value)), "Path")
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        return _record(kind)
    if origin is Literal:
        return _choice(arguments)
    if origin in (Union, types.UnionType):
        return _union(arguments)
    if origin is tuple and len(arguments) == 2 and arguments[1] is Ellipsis:
        return _sequence(codec(arguments[0]))
    if origin in (dict, Mapping):
        return _mapping(*arguments)
    raise TypeError(f"{kind} has no form to travel in")


def _same(value: Any) -> Any:
    return value


def _only(kind: Any, value: Any) -> Any:
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise WireError(f"{kind.__name__} expected, not {type(value).__name__}")
    return value


def _bytes(value: Any) -> bytes:
    try:
        return _only(str, value).encode("latin-1")  # type: ignore[no-any-return]
    except UnicodeEncodeError as error:
        raise WireError(str(error)) from None


def _scalar(kind: type) -> JsonCodec:
    def number(value: Any) -> float:
        if isinstance(value, float):
            return value
        try:
            return float(_only(int, value))
        except OverflowError as error:
            raise WireError(str(error)) from None

    def check(value: Any) -> Any:
        return _only(kind, value)

    convert = number if kind is float else check
    return JsonCodec(convert, convert, kind.__name__)


def _choice(values: tuple[Any, ...]) -> JsonCodec:
    def check(value: Any) -> Any:
        if not any(value is known or (type(value) is type(known) and value == known) for known in values):
            raise WireError(f"one of {', '.join(map(repr, values))} expected")
        return value

    return JsonCodec(check, check, f"Literal{values!r}")


def _sequence(item: JsonCodec) -> JsonCodec:
    """Token ids, which come by the thousand, are checked in one go."""
    are_ids = item is codec(int)

    def encode(values: Any) -> list[Any]:
        if are_ids and type(values) is tuple and set(map(type, values)) <= {int}:
            return list(values)
        return [item.encode(value) for value in _only(tuple, values)]

    def decode(values: Any) -> tuple[Any, ...]:
        if are_ids and type(values) is list and set(map(type, values)) <= {int}:
            return tuple(values)
        return tuple([item.decode(value) for value in _only(list, values)])

    return JsonCodec(encode, decode, f"{item.schema}*")


def _mapping(key_kind: Any, value_kind: Any) -> JsonCodec:
    """Pairs, since the keys of a JSON object are strings only."""
    key, value = codec(key_kind), codec(value_kind)

    def encode(values: Any) -> list[Any]:
        return [[key.encode(k), value.encode(v)] for k, v in _only(Mapping, values).items()]

    def decode(pairs: Any) -> dict[Any, Any]:
        if any(len(_only(list, pair)) != 2 for pair in _only(list, pairs)):
            raise WireError("pairs expected")
        return {key.decode(k): value.decode(v) for k, v in pairs}

    return JsonCodec(encode, decode, f"{{{key.schema}: {value.schema}}}")


def _record(kind: type) -> JsonCodec:
    hints = get_type_hints(kind)
    names = [field.name for field in dataclasses.fields(kind)]
    parts = [codec(hints[name]) for name in names]
    encoders = [(name, part.encode) for name, part in zip(names, parts, strict=True)]
    decoders = [part.decode for part in parts]

    def encode(value: Any) -> list[Any]:
        _only(kind, value)
        return [kind.__name__, *[encode(getattr(value, name)) for name, encode in encoders]]

    def decode(values: Any) -> Any:
        if len(_only(list, values)) != len(decoders) + 1 or values[0] != kind.__name__:
            raise WireError(f"{kind.__name__} expected")
        return kind(*[decode(value) for decode, value in zip(decoders, values[1:], strict=True)])

    spelled = ", ".join(f"{name}: {part.schema}" for name, part in zip(names, parts, strict=True))
    return JsonCodec(encode, decode, f"{kind.__name__}({spelled})")


def _union(kinds: tuple[type, ...]) -> JsonCodec:
    """Dataclasses are distinguished by name; among other types, the first that takes the value."""
    records = {str(kind.__name__): codec(kind) for kind in kinds if dataclasses.is_dataclass(kind)}
    others = [codec(kind) for kind in kinds if not dataclasses.is_dataclass(kind)]

    def first(way: Literal["encode", "decode"], value: Any) -> Any:
        for other in others:
            try:
                return getattr(other, way)(value)
            except WireError:
                continue
        raise WireError(f"{type(value).__name__} is none of {', '.join(map(str, kinds))}")

    def encode(value: Any) -> Any:
        record = records.get(type(value).__name__)
        return record.encode(value) if record else first("encode", value)

    def decode(value: Any) -> Any:
        named = isinstance(value, list) and value and isinstance(value[0], str)
        record = records.get(value[0]) if named else None
        return record.decode(value) if record else first("decode", value)

    return JsonCodec(encode, decode, " | ".join(part.schema for part in (*records.values(), *others)))
