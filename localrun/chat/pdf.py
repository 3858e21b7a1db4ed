"""The text of a PDF."""

import logging
import time
from pathlib import Path

from localrun.base.errors import UsageError

MAX_SECONDS = 20.0  # of reading: a file may be made to take forever


def pdf_text(path: Path, most: int) -> str:
    """Its pages, an empty line between two; at most `most` characters. UsageError where there is no text to be had."""
    from pypdf import PdfReader
    from pypdf.errors import PyPdfError

    logging.getLogger("pypdf").setLevel(logging.ERROR)  # it complains of every other file
    name, give_up = path.name, time.monotonic() + MAX_SECONDS
    pages: list[str] = []
    length = 0
    try:
        reader = PdfReader(path)
        if reader.is_encrypted and not reader.decrypt(""):
            raise UsageError(f"{name} is locked with a password", "save a copy without one")
        for number, page in enumerate(reader.pages, 1):
            pages.append(page.extract_text().strip())
            length += len(pages[-1])
            if length > most:
                raise UsageError(f"{name} has more than {most:,} characters", "attach the pages that matter")
            if time.monotonic() > give_up:
                raise UsageError(f"{name} takes too long to read: {number} pages so far", "attach fewer pages")
    except UsageError:
        raise
    except (PyPdfError, OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError, IndexError) as error:
        raise UsageError(f"{name} cannot be read as a PDF: {error}", "save it anew, or as text") from None
    text = "\n\n".join(page for page in pages if page)
    if not text:
        raise UsageError(f"{name} has no text: its pages are pictures", "text recognition makes text of them")
    return text
