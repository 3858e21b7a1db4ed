"""Text of PDF files."""

import logging
import time
from pathlib import Path

from localrun.chat.left_out import TooLongError, UnreadError
from localrun.chat.long_text.part_of_text import HOW_TO_SHORTEN

MAX_SECONDS = 20.0  # of reading: a file may be made to take forever


def pdf_text(path: Path, most: int) -> str:
    """Text of the pages, with an empty line between two; at most `most` characters. UnreadError where there is none."""
    from pypdf import PdfReader
    from pypdf.errors import PyPdfError

    logging.getLogger("pypdf").setLevel(logging.ERROR)  # it complains of every other file
    name, give_up = path.name, time.monotonic() + MAX_SECONDS
    pages: list[str] = []
    length = 0
    try:
        reader = PdfReader(path)
        if reader.is_encrypted and not reader.decrypt(""):
            raise UnreadError(name, "is locked with a password", "save a copy without one")
        for number, page in enumerate(reader.pages, 1):
            pages.append(page.extract_text().strip())
            length += len(pages[-1])
            if length > most:
                more = f"it has more than {most:,} characters"
                raise TooLongError(path, name, HOW_TO_SHORTEN, more)
            if time.monotonic() > give_up:
                raise UnreadError(name, "takes too long to read", "attach fewer pages", f"{number} pages so far")
    except UnreadError:
        raise
    except (PyPdfError, OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError, IndexError) as error:
        raise UnreadError(name, "cannot be read as a PDF", "save it again, or as text", str(error)) from None
    text = "\n\n".join(page for page in pages if page)
    if not text:
        raise UnreadError(name, "has no text", "run text recognition (OCR) on the file first", "its pages are pictures")
    return text
