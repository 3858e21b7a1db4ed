"""JSON from untrusted files: bounded in size, depth and number of items."""

import json
import math
import re
from pathlib import Path
from typing import Any

from localrun.base.errors import LocalrunError, ModelFileError, NotFoundError
from localrun.formats.files import bad_file, read_small

MAX_CONFIG_BYTES = 8 << 20
_TAGGED = {"Infinity": math.inf, "-Infinity": -math.inf, "NaN": math.nan}  # {"__float__": "NaN"}, of transformers 5
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
MAX_ITEMS = 1 << 20  # a bound on what parsing allocates, taken before parsing


def read_json(path: Path, code: str, max_bytes: int = MAX_CONFIG_BYTES) -> dict[str, Any]:
    """The object in a JSON file; ModelFileError `code` for anything else."""
    return parse_json(read_small(path, max_bytes), path, code)


def read_object(path: Path, max_bytes: int = MAX_CONFIG_BYTES) -> dict[str, Any]:
    """Likewise, and empty where there is no such file or none that can be read: files that can be done without."""
    try:
        return read_json(path, "BAD_CONFIG", max_bytes)
    except LocalrunError:
        return {}


def read_optional(path: Path, notes: list[str]) -> dict[str, Any]:
    """Likewise, with a note about one that cannot be read."""
    try:
        return read_json(path, "BAD_CONFIG")
    except NotFoundError:
        return {}
    except ModelFileError as error:
        notes.append(left_out(error.message))
        return {}


def left_out(problem: str) -> str:
    """A note about a file that can be done without."""
    return f"left out, {problem}"


def parse_json(raw: bytes, path: Path, code: str, strict: bool = False, max_items: int = MAX_ITEMS) -> dict[str, Any]:
    """The object that `raw` holds. Endless nesting and lone surrogates are errors.

    Python writes NaN and infinities, and of a key that is there twice it takes the last one, as is done here; `strict`
    refuses both, as readers do that are not in Python, and a byte order mark, which some editors write.
    """
    if raw.count(b",") + raw.count(b"[") + raw.count(b"{") > max_items:
        raise bad_file(code, f"the JSON has more than {max_items:,} items", path)
    try:
        value = json.loads(
            raw.decode("utf-8" if strict else "utf-8-sig"),
            parse_constant=_refuse_constant if strict else None,
            parse_float=_finite if strict else None,
            object_pairs_hook=_unique if strict else None,
            object_hook=_untagged,  # unless there is a hook for pairs
        )
        if _SURROGATE.search(raw):
            json.dumps(value, ensure_ascii=False).encode()  # a lone surrogate has no encoding
    except UnicodeDecodeError as error:
        raise bad_file("BAD_UTF8", "the JSON is not UTF-8 text", path, error.start) from None
    except UnicodeEncodeError:
        raise bad_file("BAD_UTF8", "the JSON holds half a UTF-16 pair", path) from None
    except _DuplicateKeyError as error:
        raise bad_file("DUP_KEY", f"the JSON has the key {error} twice", path) from None
    except ValueError as error:
        raise bad_file(code, f"this is not valid JSON: {error}", path) from None
    except RecursionError:
        raise bad_file(code, "the JSON is nested too deeply", path) from None
    if not isinstance(value, dict):
        raise bad_file(code, "the JSON is not an object", path)
    return value


class _DuplicateKeyError(Exception):
    pass


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for key, item in pairs:
        if key in value:
            raise _DuplicateKeyError(repr(key[:80]))
        value[key] = item
    return value


def _untagged(value: dict[str, Any]) -> Any:
    tag = value.get("__float__")
    return _TAGGED.get(tag, value) if len(value) == 1 and isinstance(tag, str) else value


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not a JSON number")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text[:20]} is too large a number")
    return value
