"""An estimate of the tokens of a text or a file, where no tokenizer counts them."""

import re
from io import FileIO
from math import ceil
from pathlib import Path

from localrun.base.small_file import open_regular
from localrun.base.text_encoding import encoding_of

_LOOKED_AT = 16384  # characters of a long text
_PLACES = 16  # of a long text that are looked at
_FILE_PLACE = 256  # bytes of each in a file: a menu looks at dozens of them
# As tokenizers cut a text: words, at capitals too, single digits, writing without spaces, letters of other alphabets,
# signs, and breaks.
_PARTS = re.compile(
    r"([A-Z]?[a-z]+|[A-Z]+)|(\d)|([\u0e00-\u0eff\u1100-\u11ff\u2e80-\ud7ff\uf900-\ufaff\U00010000-\U0010ffff]+)"
    r"|([^\W\d_]+)|([^\w\s]+|_)|(\s{2,}|[^\S ])"
)
_WORD, _UNSPACED, _LETTERS, _SIGNS = 8, 4 / 3, 3, 2  # characters of a token


def about_tokens(text: str) -> int:
    """Estimate of the tokens of a text."""
    sample = samples(text, _LOOKED_AT)
    return round(_n_tokens(sample) * len(text) / max(len(sample), 1))


def about_tokens_of_file(path: Path, n_bytes: int) -> int:
    """Estimate of the tokens of a text file of this size; 0 where it cannot be read, or is no text."""
    step = n_bytes // _PLACES & ~3  # characters of UTF-16 stay whole
    try:
        with open_regular(path) as file:
            if step <= _FILE_PLACE:
                places = [file.read(n_bytes)]
            else:
                places = [_read_at(file, place * step, _FILE_PLACE) for place in range(_PLACES)]
    except OSError:
        return 0
    encoding, n_read = encoding_of(places[0]), sum(map(len, places))
    mark = places[0][:2] if encoding == "utf-16" else b""
    text = places[0].decode(encoding, "ignore")
    text += "".join((mark + place).decode(encoding, "ignore") for place in places[1:])
    return 0 if "\0" in text or not n_read else round(_n_tokens(text) * n_bytes / n_read)


def samples(text: str, n: int) -> str:
    """The middles of equal sections of a text, `n` characters in all; the text itself where it has no more."""
    if len(text) <= n:
        return text
    size = n // _PLACES
    starts = ((2 * i + 1) * len(text) // (2 * _PLACES) - size // 2 for i in range(_PLACES))
    return "".join(text[start : start + size] for start in starts)


def _read_at(file: FileIO, at: int, n: int) -> bytes:
    file.seek(at)
    return file.read(n)


def _n_tokens(text: str) -> int:
    return sum(map(_tokens_of, _PARTS.findall(text)))


def _tokens_of(part: tuple[str, ...]) -> int:
    word, _, unspaced, letters, signs, _ = part
    for text, size in ((word, _WORD), (unspaced, _UNSPACED), (letters, _LETTERS), (signs, _SIGNS)):
        if text:
            return ceil(len(text) / size)
    return 1
