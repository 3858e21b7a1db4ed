"""Fields of what a server sends, which may be anything."""

from typing import Any

Json = dict[str, Any]


def first_of(values: Any) -> Json:
    """The first object of a list; an empty one where there is none."""
    return values[0] if isinstance(values, list) and values and isinstance(values[0], dict) else {}


def count_or_none(values: Any, name: str) -> int | None:
    """A number of tokens, None where the server gives none."""
    return count_of(values, name) if isinstance(values, dict) and name in values else None


def count_of(values: Any, name: str) -> int:
    """A number of tokens as a server gives it: 0 for anything that is none."""
    value = values.get(name) if isinstance(values, dict) else None
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 40 else 0
