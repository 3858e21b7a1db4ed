"""The first key-values of a GGUF, without its vocabulary: what lists and previews ask of many files."""

from pathlib import Path
from typing import Any

from localrun.formats.files import Fetch
from localrun.formats.gguf_cursor import ARRAY, Cursor
from localrun.formats.gguf_header import MAX_ENTRIES

_LONG_ARRAY = 4096  # elements; longer ones are vocabularies


def skim_gguf(fetch: Fetch, size: int, path: Path) -> dict[str, Any]:
    """Key-values up to the first long array, which is the vocabulary: of that only the length, as a range.

    Raises ModelFileError for what is no GGUF, or a malformed one.
    """
    cursor = Cursor(fetch, size, path)
    if cursor.head(4) != b"GGUF":
        cursor.fail("NOT_GGUF", "this is not a GGUF file", 0)
    cursor.number("I", "the magic")
    version = cursor.number("I", "the version")
    if version not in (2, 3):
        cursor.fail("BAD_VERSION", f"GGUF version {version}; versions 2 and 3 can be read", 4)
    cursor.number("Q", "the number of tensors")
    n_keys = cursor.number("Q", "the number of keys")
    if n_keys > MAX_ENTRIES:
        cursor.fail("BAD_COUNT", f"{n_keys:,} keys are more than any model has")
    values: dict[str, Any] = {}
    for _ in range(n_keys):
        key = cursor.string("a key", 1 << 16, "BAD_KEY")
        value_type = cursor.number("I", f"the type of {key!r}")
        if value_type == ARRAY:
            count = _peek_count(cursor)
            if count > _LONG_ARRAY:
                values[key] = range(count)
                break
        values[key] = cursor.value(value_type, f"the value of {key!r}")
    return values


def _peek_count(cursor: Cursor) -> int:
    """The length of the array that begins here, without moving."""
    start = cursor.pos
    cursor.number("I", "an array")
    count: int = cursor.number("Q", "an array")
    cursor.pos = start
    return count
