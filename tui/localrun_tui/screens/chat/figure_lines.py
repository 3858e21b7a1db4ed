"""Lines of the inspector: headings, what is said more quietly, durations as bars, and figures that lead to Explain."""

from collections.abc import Iterable, Mapping

from textual.content import Content
from textual.style import Style

from localrun.base.units import ms
from localrun.diagnose.facts import Stage
from localrun_tui.markdown.wrapping import wrap
from localrun_tui.widgets.meters import bar

_NAME, _NUMBER = 9, 9  # cells of the name of a phase, and of a usual duration


def heading(text: str) -> Content:
    return Content.styled(text, "bold $text-primary")


def muted(text: str, width: int) -> list[Content]:
    return wrap(Content.styled(text, "$foreground-muted"), width)


def phase_bars(times: Mapping[Stage, float] | Mapping[str, float], marked: str, width: int) -> list[Content]:
    """Milliseconds by phase as bars of the whole; a mark at one of them."""
    whole = sum(times.values()) or 1.0
    n_cells = max(_NUMBER, *(len(ms(milliseconds)) for milliseconds in times.values()))
    lines = []
    for name, milliseconds in times.items():
        style, mark = ("$warning", "◀") if name == marked else ("$primary", " ")
        drawn = bar(milliseconds / whole, max(width - _NAME - n_cells - 4, 4), style)
        lines.append(Content.assemble(f"{name:<{_NAME}} ", drawn, f" {ms(milliseconds):>{n_cells}} {mark}"))
    return lines


def explained(lines: Iterable[Content], topic: str) -> list[Content]:
    """The same lines, each of which opens the page of a topic when it is clicked."""
    opens = Style.from_meta({"@click": f"app.explain({topic!r})"})
    return [line.stylize(opens) for line in lines]
