"""JSON schemas of Python types: dataclasses, and the classes of pydantic."""

import dataclasses
import enum
import types
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from localrun.base.errors import UsageError

_PLAIN: dict[Any, dict[str, Any]] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    type(None): {"type": "null"},
    Any: {},
}


def schema_of(wish: Any) -> Any:
    """The JSON schema of a dataclass or a pydantic class, or the dict that is one. Raises UsageError."""
    if isinstance(wish, Mapping):
        return dict(wish)
    if hasattr(wish, "model_json_schema"):  # pydantic, which need not be there
        return wish.model_json_schema()
    if isinstance(wish, type) and dataclasses.is_dataclass(wish):
        definitions: dict[str, Any] = {}
        _named(wish, definitions)
        return {"$ref": f"#/$defs/{wish.__qualname__}", "$defs": definitions}
    raise UsageError(f"schema is {wish!r:.80}", "give a JSON schema, a dataclass, or a class of pydantic")


def _schema(kind: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    origin, arguments = get_origin(kind), get_args(kind)
    if kind in _PLAIN:
        return _PLAIN[kind]
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        return _named(kind, definitions)
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return {"enum": [member.value for member in kind]}
    if origin is Literal:
        return {"enum": list(arguments)}
    if origin in (Union, types.UnionType):
        return {"anyOf": [_schema(one, definitions) for one in arguments]}
    if origin is tuple and arguments[-1:] != (...,):
        items = [_schema(one, definitions) for one in arguments]
        return {"type": "array", "prefixItems": items, "items": False, "minItems": len(items)}
    if isinstance(origin, type) and issubclass(origin, Sequence):
        return {"type": "array", "items": _schema(arguments[0], definitions)}
    if isinstance(origin, type) and issubclass(origin, Mapping) and arguments[0] is str:
        return {"type": "object", "additionalProperties": _schema(arguments[1], definitions)}
    raise UsageError(f"{kind!r:.80} has no JSON schema", "use plain types, lists, dicts by str, or dataclasses")


def _named(kind: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    """A reference to a dataclass, which may hold itself."""
    name = kind.__qualname__
    if name not in definitions:
        definitions[name] = {}
        hints = get_type_hints(kind)
        fields = [field for field in dataclasses.fields(kind) if field.init]
        needed = [f.name for f in fields if f.default is f.default_factory is dataclasses.MISSING]
        definitions[name] = {
            "type": "object",
            "properties": {field.name: _schema(hints[field.name], definitions) for field in fields},
            "required": needed,
            "additionalProperties": False,
        }
    return {"$ref": f"#/$defs/{name}"}
