"""Files inside a message: text, or that of a PDF, read with a limit, written into the text, and found there again."""

import re
from dataclasses import dataclass
from pathlib import Path

from localrun.base.errors import UsageError
from localrun.base.sanitize import clean
from localrun.base.units import gib
from localrun.chat.pdf import pdf_text

MAX_BYTES = 1 << 20  # of text: more than any context of today takes
MAX_PDF_BYTES = 64 << 20
_MARK = re.compile(r"^\[file: (?P<name>[^\n]*)\]\n(?P<fence>`{3,})\n(?P<text>.*?)\n(?P=fence)(?:\n\n|\Z)", re.S | re.M)


@dataclass(frozen=True, slots=True)
class Attachment:
    """A text file that goes along with a message."""

    name: str
    text: str

    @property
    def chip(self) -> str:
        """Its name and size, as shown."""
        size = len(self.text.encode("utf-8", "replace"))
        return f"{clean(self.name, keep_newlines=False)} {gib(size)}"


def read_attachment(path: Path) -> Attachment:
    """The text of a file. UsageError when it is no file, too large, or neither text nor a PDF with text in it."""
    name = clean(path.name, keep_newlines=False)
    try:
        if not path.is_file():
            raise UsageError(f"{name} is not a file", "choose a text file or a PDF")
        size, is_pdf = path.stat().st_size, _is_pdf(path)
        most = MAX_PDF_BYTES if is_pdf else MAX_BYTES
        if size > most:
            raise UsageError(f"{name} has {gib(size)}; {gib(most)} is the most", "attach the part that matters")
        text = pdf_text(path, MAX_BYTES) if is_pdf else path.read_text("utf-8-sig")
    except UnicodeDecodeError:
        raise UsageError(f"{name} is not UTF-8 text", "text files and PDFs can be attached") from None
    except (OSError, ValueError) as error:
        raise UsageError(f"{name} cannot be read: {error}", "check the path and its permissions") from None
    if "\x00" in text:
        raise UsageError(f"{name} is not text", "text files and PDFs can be attached")
    return Attachment(name, text)


def _is_pdf(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(5) == b"%PDF-"


def about_tokens(n_bytes: int) -> int:
    """A guess of what so much text takes: most tokenizers make a token of three or four bytes."""
    return -(-n_bytes * 2 // 7)


def join(attachments: list[Attachment], text: str) -> str:
    """One message: the files first, then what was typed."""
    parts = []
    for attachment in attachments:
        longest = max((len(run) for run in re.findall("`+", attachment.text)), default=0)
        fence = "`" * max(3, longest + 1)
        name = attachment.name.replace("\n", " ")
        parts.append(f"[file: {name}]\n{fence}\n{attachment.text}\n{fence}")
    return "\n\n".join([*parts, text])


def split(message: str) -> tuple[list[Attachment], str]:
    """The files at the start of a message, and the rest."""
    attachments = []
    while match := _MARK.match(message):
        attachments.append(Attachment(match["name"], match["text"]))
        message = message[match.end() :]
    return attachments, message


def title_for(message: str) -> str:
    """A title for a chat that begins with files: what was typed below them, else their names; empty without files."""
    attachments, typed = split(message)
    if not attachments:
        return ""
    return " ".join(typed.split())[:60] or ", ".join(attachment.name for attachment in attachments)[:60]
