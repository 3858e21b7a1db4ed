"""Calls of tools within an answer, as Markdown: a line a call and a line a result, which is folded or written out."""

import re

from localrun.base.content import CallPart, Content, FilePart, ImagePart, ResultPart, TextPart
from localrun.base.sanitize import clean
from localrun.tools.words import call_line, result_line


def answer_markdown(content: Content, is_open: bool = False) -> str:
    """An answer with its calls. Folded, what comes is appended as the answer grows."""
    pieces = []
    for part in content:
        match part:
            case TextPart(text):
                pieces.append(text)
            case CallPart():
                pieces.append(f"> 🔧 {_code(call_line(part))}")
            case ResultPart():
                line = f"> ⤷ {_code(result_line(part))}"
                pieces.append(f"{line}\n\n{_fenced(part.text)}" if is_open else line)
            case FilePart() | ImagePart():
                pass
    return "\n\n".join(pieces)


def _code(line: str) -> str:
    """A line in which no sign of Markdown counts."""
    fence = "`" * (max((len(run) for run in re.findall("`+", line)), default=0) + 1)
    return f"{fence} {line} {fence}" if line.startswith("`") or line.endswith("`") else f"{fence}{line}{fence}"


def _fenced(text: str) -> str:
    text = clean(text)
    fence = "`" * max(3, max((len(run) for run in re.findall("`+", text)), default=0) + 1)
    return f"{fence}\n{text}\n{fence}"
