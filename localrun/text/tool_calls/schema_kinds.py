"""References within a schema, and the types of values that it allows."""

from collections.abc import Mapping
from typing import Any

MAX_REFERENCES = 64  # that lead from one to the next


def resolved(root: Mapping[str, Any], schema: Any) -> Mapping[str, Any]:
    """The schema that references, or choices of one, lead to.

    An empty one stands for any value, and for a missing target.
    """
    for _ in range(MAX_REFERENCES):
        if not isinstance(schema, Mapping):
            return {}
        only = next((one for name in ("allOf", "anyOf", "oneOf") if len(one := branches(schema, name)) == 1), None)
        if "$ref" in schema:
            schema = pointed_at(root, schema["$ref"])
        elif only is not None and "type" not in schema:
            schema = only[0]
        else:
            return schema
    return {}


def branches(schema: Mapping[str, Any], *names: str) -> list[Any]:
    """The schemas in a choice under one of these keywords."""
    return next((found for name in names if isinstance(found := schema.get(name), list)), [])


def pointed_at(root: Mapping[str, Any], pointer: Any) -> Any:
    """Target of a reference within a schema; None for any other."""
    if not isinstance(pointer, str) or not pointer.startswith("#"):
        return None
    found: Any = root
    for part in pointer.removeprefix("#").strip("/").split("/"):
        name = part.replace("~1", "/").replace("~0", "~")
        if part:
            found = found.get(name) if isinstance(found, Mapping) else None
    return found


def kinds_of(root: Mapping[str, Any], schema: Any) -> set[str]:
    """The types that a schema allows; empty for any. Those of an enumeration are string, null and any."""
    kinds, seen, waiting = set[str](), set[int](), [schema]
    while waiting:
        found = resolved(root, waiting.pop())
        if id(found) in seen:  # a choice that refers to itself
            continue
        seen.add(id(found))
        own, several = _own_kinds(found), [*branches(found, "anyOf"), *branches(found, "oneOf")]
        if not own and not several:
            return set()
        kinds |= own
        waiting += [] if own else several
    return kinds


def _own_kinds(schema: Mapping[str, Any]) -> set[str]:
    kind, values = schema.get("type"), schema.get("enum")
    if isinstance(kind, str | list):
        return {kind} if isinstance(kind, str) else set(filter(None, map(str, kind)))
    if isinstance(values, list):
        return {"string" if isinstance(value, str) else "null" if value is None else "any" for value in values}
    return set()
