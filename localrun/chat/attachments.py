"""Attachments of a message: the text of a file or PDF, read with a limit."""

from io import BytesIO, TextIOWrapper
from pathlib import Path

from localrun.base.content import Content, FilePart, attachments_in, typed_text
from localrun.base.sanitize import clean
from localrun.base.small_file import open_regular, read_small
from localrun.base.text_encoding import encoding_of
from localrun.base.units import gib
from localrun.chat.left_out import TooLongError, UnreadError
from localrun.chat.long_text.condensed_file import ReadingWatch, condense_file, unwatched
from localrun.chat.long_text.part_of_text import CONDENSED, HOW_TO_SHORTEN, TextRange, take
from localrun.chat.pdf import pdf_text
from localrun.chat.summary import title_of

MAX_BYTES = 1 << 20  # of text: more than any context of today takes
MAX_FILE_BYTES = 64 << 20  # of a PDF, or of a file of which a part is attached, or which is read in parts


def read_attachment(path: Path, part: TextRange | None = None, watch: ReadingWatch = unwatched) -> FilePart:
    """Read the text of a file, or a part of it. `watch` is told of a file of any size that is condensed.

    UnreadError when it is not a file, or neither text nor a PDF with text; TooLongError for more than MAX_BYTES of it.
    """
    name = clean(path.name, keep_newlines=False)
    if part is None:
        return FilePart(name, read_text(path, MAX_BYTES))
    name, text = f"{name}:{part.name}", _taken(path, part, watch)
    if (size := len(text.encode(errors="replace"))) > MAX_BYTES:
        raise _too_long(path, name, size, MAX_BYTES, part.name)
    return FilePart(name, text)


def read_text(path: Path, most: int = MAX_FILE_BYTES) -> str:
    """Read all text of a file that has at most `most` bytes of it. Raises UnreadError."""
    name = clean(path.name, keep_newlines=False)
    try:
        if not path.is_file():
            raise UnreadError(name, "is not a file", "choose a text file or a PDF")
        size, is_pdf = path.stat().st_size, _is_pdf(path)
        if size > (limit := MAX_FILE_BYTES if is_pdf else most):
            raise _too_long(path, name, size, limit)
        text = pdf_text(path, most) if is_pdf else _text(path, most)
    except UnicodeDecodeError:
        raise UnreadError(name, "is not UTF-8 text", "text files in UTF-8 or UTF-16 and PDFs can be attached") from None
    except (OSError, ValueError) as error:
        raise UnreadError(name, "cannot be read", "check the path and its permissions", str(error)) from None
    if "\x00" in text:
        raise UnreadError(name, "is not text", "text files and PDFs can be attached")
    return text


def _taken(path: Path, part: TextRange, watch: ReadingWatch) -> str:
    """A part of a file, which may be of any size where its kinds of lines are the part."""
    if part.is_condensed and not _is_pdf(path):
        return condense_file(path, watch).text
    return take(read_text(path), part)


def _too_long(path: Path, name: str, size: int, most: int, part: str = "") -> TooLongError:
    way = HOW_TO_SHORTEN if size <= MAX_FILE_BYTES else f"attach {name}:{CONDENSED}, or cut it into smaller files"
    return TooLongError(path, name, way, f"it has {gib(size)}, and {gib(most)} is the most", part)


def _text(path: Path, most: int) -> str:
    data = read_small(path, most)
    return TextIOWrapper(BytesIO(data), encoding_of(data)).read()  # any ends of lines become \n


def _is_pdf(path: Path) -> bool:
    """Whether it begins as a PDF; not where it cannot be read, as reading it says why."""
    try:
        with open_regular(path) as file:
            return file.read(5) == b"%PDF-"
    except (OSError, ValueError):
        return False


def title_for(content: Content) -> str:
    """Title of a chat that begins with files or images: of the text typed with them, else their names; empty without
    any."""
    files = attachments_in(content)
    return (title_of(typed_text(content)) or title_of(", ".join(file.name for file in files))) if files else ""
