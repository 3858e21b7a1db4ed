"""Code blocks: a title line with the language and the digit that copies it, then the code, highlighted. A line that is
wrapped ends in a mark; with `Wide.whole` it is not wrapped, and the window moves."""

from functools import cache, lru_cache
from typing import TYPE_CHECKING

from textual.content import Content
from textual.style import Style

from localrun_tui.markdown.inline import CODE
from localrun_tui.markdown.wide import FITTED, Wide, window

if TYPE_CHECKING:
    from textual.highlight import HighlightTheme

_MAX_HIGHLIGHTED = 20_000  # characters; more is shown plain, so that a long block cannot hold the screen up
_AT_ONCE = 8  # lines of code that are highlighted together while more arrive
_BODY = "on $foreground 6%"
_TITLE = "$foreground-muted on $foreground 10%"
_WRAPPED = Content.styled("↩", "$text-warning")


def code_lines(
    code: str, info: str, width: int, number: int, grows: bool = False, wide: Wide = FITTED
) -> list[Content]:
    """The lines of code block `number`; `info` is the text after the fence.

    Of one that `grows`, the last lines are highlighted without those before them, which do not change any more.
    """
    language = info.split()[0] if info.split() else ""
    copy = f"copy: {number} " if number < 10 else ""
    name = language[: max(width - len(copy) - 2, 0)] or ("code" if width > 16 else "")
    title = f" {name}".ljust(width - len(copy)) + copy
    lines = code.rstrip("\n").expandtabs(4).split("\n")
    n_still = (len(lines) - 1) // _AT_ONCE * _AT_ONCE if grows else 0
    still, last = "\n".join(lines[:n_still]), "\n".join(lines[n_still:])
    return [
        Content.styled(title[:width], _TITLE).stylize(Style.from_meta({CODE: number})),
        *(_still_lines(still, language, width, wide) if n_still else ()),
        *_body_lines(last, language, width, wide),
    ]


@lru_cache(4)
def _still_lines(code: str, language: str, width: int, wide: Wide) -> list[Content]:
    return _body_lines(code, language, width, wide)


def _body_lines(code: str, language: str, width: int, wide: Wide) -> list[Content]:
    lines = _highlighted(code, language).split("\n", allow_blank=True)
    body = (
        window(lines, width - 2, wide.shift) if wide.whole else [part for line in lines for part in _fold(line, width)]
    )
    return [(Content(" ") + part).pad_right(width - 1 - part.cell_length).stylize_before(_BODY) for part in body]


def _fold(line: Content, width: int) -> list[Content]:
    """One cell is left at the end of each line but the last, for the mark."""
    if line.cell_length <= width - 2:
        return [line]
    *parts, last = line.fold(width - 3)
    return [*(part.pad_right(width - 3 - part.cell_length) + _WRAPPED for part in parts), last]


@cache
def _theme() -> "type[HighlightTheme]":
    """Textual's colours for code, without underlines: those mean links here."""
    from textual.highlight import HighlightTheme

    class CodeTheme(HighlightTheme):
        STYLES = {kind: style.replace(" underline", "") for kind, style in HighlightTheme.STYLES.items()}  # noqa: RUF012

    return CodeTheme


def _highlighted(code: str, language: str) -> Content:
    if not language or len(code) > _MAX_HIGHLIGHTED:
        return Content(code)
    from textual.highlight import highlight

    highlighted = highlight(code, language=language, theme=_theme())
    return highlighted if highlighted.plain == code else Content(code)
