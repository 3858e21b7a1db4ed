"""Strings of a schema as regular expressions, for forms of calls that write them without JSON's quotes."""

import re
from collections.abc import Mapping
from typing import Any

from localrun.text.tool_calls.held_tool import HeldTool

STRING_KEYWORDS = frozenset(("type", "minLength", "maxLength", "pattern", "format"))
_MOST_LETTERS = 10_000  # that a length is counted up to
_DAY = r"[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
_TIME = r"([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,6})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])"
_BYTE = r"(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
_LABEL = r"[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_FORMATS = {
    "date": _DAY,
    "time": _TIME,
    "date-time": f"{_DAY}T{_TIME}",
    "uuid": "[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}",
    "ipv4": rf"{_BYTE}(\.{_BYTE}){{3}}",
    "hostname": rf"{_LABEL}(\.{_LABEL})*",
    "email": rf"[A-Za-z0-9_+-]+(\.[A-Za-z0-9_+-]+)*@{_LABEL}(\.{_LABEL})+",
}
_PARTS_OF_REGEX = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|.", re.DOTALL)


def string_regexes(tool: HeldTool, schema: Mapping[str, Any]) -> tuple[str, ...]:
    """Regular expressions that a string has to match, all of them; none for any string."""
    return tuple(filter(None, (_length(tool, schema), _pattern(tool, schema), _format(tool, schema))))


def _length(tool: HeldTool, schema: Mapping[str, Any]) -> str:
    least, most = schema.get("minLength") or 0, schema.get("maxLength")
    if not all(isinstance(n, int) and 0 <= n <= _MOST_LETTERS for n in (least, most or 0)):
        tool.leave_out(*(name for name in ("minLength", "maxLength") if name in schema))
        return ""
    if not least and most is None:
        return ""
    return f"(?s:.{{{least},{'' if most is None else most}}})"


def _pattern(tool: HeldTool, schema: Mapping[str, Any]) -> str:
    """A schema's pattern, which may match anywhere in a string, as one for the whole string."""
    pattern = schema.get("pattern")
    if not isinstance(pattern, str):
        return ""
    parts = _PARTS_OF_REGEX.findall(pattern)
    begins, ends = parts[:1] == ["^"], len(parts) > 1 and parts[-1] == "$"
    inner = parts[begins : len(parts) - ends]
    is_choice = (begins or ends) and "|" in inner  # of which an anchor may belong to one only
    if is_choice or any(part in ("^", "$", r"\b", r"\B") for part in inner) or "(?!" in pattern or "(?=" in pattern:
        tool.leave_out("pattern")
        return ""
    anything = "(?s:.*)"
    return f"{'' if begins else anything}({''.join(inner)}){'' if ends else anything}"


def _format(tool: HeldTool, schema: Mapping[str, Any]) -> str:
    name = schema.get("format")
    if name is None:
        return ""
    if name not in _FORMATS:
        tool.leave_out(f"format {name}")
    return _FORMATS.get(name, "") if isinstance(name, str) else ""
