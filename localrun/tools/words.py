"""Calls and results in words, for one line of a terminal."""

import json

from localrun.base.content import CallPart, ResultPart
from localrun.base.sanitize import clean
from localrun.base.units import gib, ms

_SHOWN = 200  # characters of a value


def argument_rows(arguments: str) -> list[tuple[str, str]]:
    """Names and values of the arguments of a call; anything but a JSON object is one value without a name."""
    try:
        parsed = json.loads(arguments or "{}")
    except (ValueError, RecursionError):
        parsed = arguments
    if not isinstance(parsed, dict):
        return [("", str(parsed))]
    spelled = {name: json.dumps(value, ensure_ascii=False) for name, value in parsed.items()}
    return [(name, value if isinstance(value, str) else spelled[name]) for name, value in parsed.items()]


def call_line(call: CallPart) -> str:
    """A call on one line."""
    rows = argument_rows(call.arguments)
    shown = ", ".join(f"{name}: {_short(value)}" if name else _short(value) for name, value in rows)
    return clean(f"{' '.join(filter(None, (call.server, call.name)))}  {shown}".strip(), keep_newlines=False)


def result_line(result: ResultPart) -> str:
    """The result of a call on one line."""
    if result.is_error:
        return clean(f"{result.name} failed: {_short(result.text)}", keep_newlines=False)
    cut = f", {_size(result.cut)} of it left out" if result.cut else ""
    return clean(f"{result.name}: {_size(result.bytes)} in {ms(1000 * result.seconds)}{cut}", keep_newlines=False)


def _size(n_bytes: int) -> str:
    return f"{n_bytes} bytes" if n_bytes < 1024 else gib(n_bytes)


def _short(value: str) -> str:
    return value if len(value) <= _SHOWN else f"{value[:_SHOWN]}…"
