"""Dialects derived from the calls that a template writes: JSON, with texts around it."""

import json
from collections.abc import Iterator
from typing import Any

from localrun.text.tool_calls.json_syntax import JsonSyntax
from localrun.text.tool_calls.named_syntax import NamedSyntax
from localrun.text.tool_calls.syntax import Syntax

_JSON = json.JSONDecoder()


def derived_syntaxes(section: str, name: str) -> Iterator[Syntax]:
    """Candidate forms of the calls of `name` in a template's text, from the end of the text up to the results.

    Only parsing shows whether one is right.
    """
    first, second = section.find(name), section.rfind(name)
    if first < 0 or first == second:
        return
    objects = list(_objects(section))
    around = [(start, end, value) for start, end, value in objects if start < first < end and name in value.values()]
    if around:
        start, end, value = around[-1]
        named = next(key for key, item in value.items() if item == name)
        arguments = next((key for key, item in value.items() if isinstance(item, dict)), "")
        before = section[:start].strip()
        after = section[end:]
        yield JsonSyntax(
            before.removesuffix("[").strip(), _mark(after.lstrip().removeprefix("]")), is_list=before.endswith("["),
            name=named, arguments=arguments,
        )  # fmt: skip
    for start, end, _ in objects:
        if start > first:
            opened = _common_end(section[:first], section[:second])
            named = section[first + len(name) : start]
            between = section[end : second - len(opened)]
            yield NamedSyntax(opened.lstrip(), named, between.strip(), section[: first - len(opened)].strip())
            return


def _common_end(a: str, b: str) -> str:
    """The longest common suffix."""
    n = next((n for n, (x, y) in enumerate(zip(reversed(a), reversed(b), strict=False)) if x != y), min(len(a), len(b)))
    return a[len(a) - n :]


def _mark(text: str) -> str:
    """The tag that a text begins with."""
    text = text.strip()
    end = {"<": ">", "[": "]"}.get(text[:1], "")
    return text[: text.find(end) + 1] if end else ""


def _objects(text: str) -> Iterator[tuple[int, int, dict[str, Any]]]:
    """JSON objects in a text, each with its start and end."""
    start = text.find("{")
    while start >= 0:
        try:
            value, end = _JSON.raw_decode(text, start)
        except ValueError:
            pass
        else:
            if isinstance(value, dict):
                yield start, end, value
        start = text.find("{", start + 1)
