"""Records of a journal: one JSON object a line, whose last field is a checksum of all bytes before that field.

Each record starts with a line break, so that one torn by a crash or a full disk ends where the next begins. Damage
loses the damaged record only: a record is also found inside a broken line.
"""

import json
import re
import zlib
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

from localrun.base.content import text_of
from localrun.chat.record_parts import content_without_parts, pack_parts, unpack_parts
from localrun.chat.tree import Message

_START = b'{"kind":'
_END = re.compile(rb',"crc32":"([0-9a-f]{8})"\}')
_START_OR_END = re.compile(re.escape(_START) + b"|" + _END.pattern)
_END_LENGTH = len(b',"crc32":"00000000"}')
_LATEST = 1 << 35  # seconds; the year 3058
_MAX_STARTS = 16  # places tried as the start of a record inside of a damaged line


def pack(kind: str, **fields: Any) -> bytes:
    """A record, ready to be appended in one write."""
    text = json.dumps({"kind": kind, **fields}, ensure_ascii=False, separators=(",", ":"))
    body = text.encode("utf-8", "surrogatepass")[:-1]
    return b'\n%b,"crc32":"%08x"}' % (body, zlib.crc32(body))


def split(data: bytes) -> Iterator[tuple[int, bytes | None]]:
    """The records in `data`, each with the offset of its end; None stands for a damaged range."""
    start = 0
    while start < len(data):
        end = data.find(b"\n", start)
        end = len(data) if end < 0 else end
        line = data[start:end]
        if _is_whole(line):
            yield end, line
        elif line.strip():
            for stop, record in _salvage(line):
                yield start + stop, record
        start = end + 1


def parse(record: bytes) -> dict[str, Any] | None:
    """The fields of a record; None where it is malformed."""
    try:
        value = json.loads(record)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) and isinstance(value.get("kind"), str) else None


def pack_message(message: Message, grandparent: str | None) -> bytes:
    """Record of a message. `grandparent` tells where a reply belongs when the message between is lost."""
    text = text_of(message.content)
    fields: dict[str, Any] = {
        **message.extra,
        "id": message.id,
        "parent": message.parent,
        "grandparent": grandparent,
        "role": message.role,
        "created": message.created,
        "text": text,
    }
    more = {
        "parts": pack_parts(message.content, text, message.role),
        "thinking": message.thinking,
        "kept": message.kept,
        "ids": message.ids,
        "stats": dict(message.stats),
    }
    fields |= {name: value for name, value in more.items() if value}
    return pack("message", **fields, **({"interrupted": True} if message.interrupted else {}))


def unpack_message(fields: Mapping[str, Any]) -> Message | None:
    """The message of a record; None where a field has the wrong type."""
    ids = fields.get("ids", [])
    if not isinstance(ids, list) or not set(map(type, ids)) <= {int}:
        return None
    values = {name: fields.get(name, default) for name, default in _FIELDS.items()}
    if any(not isinstance(value, _TYPES[name]) for name, value in values.items()) or values["kept"] < 0:
        return None
    values["created"] = as_time(values["created"])
    text, parts = values.pop("text"), fields.get("parts")
    content = unpack_parts(text, parts)
    known = _KNOWN if content or parts is None else _KNOWN - {"parts"}
    return Message(
        **values,
        content=content or content_without_parts(text, values["role"]),
        ids=tuple(ids),
        interrupted=fields.get("interrupted") is True,
        extra={name: value for name, value in fields.items() if name not in known},
    )


def as_time(value: object) -> float:
    """A Unix time within the calendar; 0.0 for anything else."""
    return float(value) if isinstance(value, int | float) and 0 <= value < _LATEST else 0.0


_FIELDS: dict[str, Any] = {
    "id": None,
    "parent": None,
    "role": None,
    "text": None,
    "thinking": "",
    "created": 0.0,
    "kept": 0,
    "stats": {},
}
_KNOWN = frozenset(_FIELDS) | {"kind", "grandparent", "parts", "ids", "interrupted", "crc32"}
_TYPES: dict[str, Any] = {
    "id": str,
    "parent": (str, type(None)),
    "role": str,
    "text": str,
    "thinking": str,
    "created": (int, float),
    "kept": int,
    "stats": dict,
}


def _is_whole(record: bytes) -> bool:
    if not record.startswith(_START):
        return False
    end = _END.fullmatch(record, len(record) - _END_LENGTH)
    return end is not None and int(end[1], 16) == zlib.crc32(record[:-_END_LENGTH])


def _salvage(line: bytes) -> Iterator[tuple[int, bytes | None]]:
    """Find records inside a broken line. Quotes inside texts are escaped, so only records look like one.

    Every byte is read once for each open start of a record, of which there are few.
    """
    view, done = memoryview(line), 0
    opened: deque[_Opened] = deque(maxlen=_MAX_STARTS)
    for match in _START_OR_END.finditer(line):
        if match[1] is None:
            opened.append(_Opened(match.start()))
            continue
        for one in opened:
            one.read(view, match.start())
        whole = next((one.start for one in opened if one.crc == int(match[1], 16)), None)
        if whole is not None:
            if whole > done:
                yield whole, None
            done = match.end()
            yield done, line[whole:done]
            opened.clear()
    if done < len(line):
        yield len(line), None


class _Opened:
    """A possible start of a record, and the checksum of the bytes from there up to `end`."""

    def __init__(self, start: int) -> None:
        self.start = self.end = start
        self.crc = 0

    def read(self, line: memoryview, end: int) -> None:
        self.crc = zlib.crc32(line[self.end : end], self.crc)
        self.end = end
