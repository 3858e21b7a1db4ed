"""Attachments of a message: the text of a file or PDF, read with a limit."""

from io import BytesIO, TextIOWrapper
from pathlib import Path

from localrun.base.content import Content, FilePart, files_in, typed_text
from localrun.base.sanitize import clean
from localrun.base.small_file import read_small
from localrun.base.units import gib
from localrun.chat.left_out import UnreadError
from localrun.chat.pdf import pdf_text

MAX_BYTES = 1 << 20  # of text: more than any context of today takes
MAX_PDF_BYTES = 64 << 20


def read_attachment(path: Path) -> FilePart:
    """Read the text of a file. UnreadError when it is not a file, too large, or neither text nor a PDF with text."""
    name = clean(path.name, keep_newlines=False)
    try:
        if not path.is_file():
            raise UnreadError(name, "is not a file", "choose a text file or a PDF")
        size, is_pdf = path.stat().st_size, _is_pdf(path)
        most = MAX_PDF_BYTES if is_pdf else MAX_BYTES
        if size > most:
            more = f"it has {gib(size)}, and {gib(most)} is the most"
            raise UnreadError(name, "is too long", "attach the part that matters", more)
        text = pdf_text(path, MAX_BYTES) if is_pdf else _text(path)
    except UnicodeDecodeError:
        raise UnreadError(name, "is not UTF-8 text", "text files and PDFs can be attached") from None
    except (OSError, ValueError) as error:
        raise UnreadError(name, "cannot be read", "check the path and its permissions", str(error)) from None
    if "\x00" in text:
        raise UnreadError(name, "is not text", "text files and PDFs can be attached")
    return FilePart(name, text)


def _text(path: Path) -> str:
    return TextIOWrapper(BytesIO(read_small(path, MAX_BYTES)), "utf-8-sig").read()  # any ends of lines become \n


def _is_pdf(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(5) == b"%PDF-"


def about_tokens(n_bytes: int) -> int:
    """Estimate of the tokens in `n_bytes` of text: most tokenizers make a token of three or four bytes."""
    return -(-n_bytes * 2 // 7)


def title_for(content: Content) -> str:
    """Title of a chat that begins with files: the text typed with them, else their names; empty without files."""
    files = files_in(content)
    if not files:
        return ""
    return " ".join(typed_text(content).split())[:60] or ", ".join(file.name for file in files)[:60]
