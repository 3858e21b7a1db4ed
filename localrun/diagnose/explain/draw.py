"""Reports as text: bars and curves of block characters, and readable numbers."""

import math
import textwrap
from collections.abc import Iterator, Sequence

from localrun.base.units import gib, ms, tps
from localrun.diagnose.explain.topic_report import Bars, Curve, Figure, TopicReport

WIDTH, BAR, HEIGHT = 78, 36, 4  # cells: of a line, of the longest bar, and lines of a curve
LEAST_BAR = 6
_EIGHTHS = " ▁▂▃▄▅▆▇█"
_PARTS = "▏▎▍▌▋▊▉█"


def drawn(report: TopicReport, width: int = WIDTH) -> Iterator[str]:
    """A report as lines of at most `width` columns."""
    yield from (report.title, "─" * len(report.title), *textwrap.wrap(report.text, width), "")
    yield from pictures(report, width)
    yield from figures(report.figures, width)
    yield from ("", *conclusion(report, width), *correction(report, width))


def pictures(report: TopicReport, width: int = WIDTH) -> Iterator[str]:
    """All pictures, each followed by an empty line."""
    for picture in report.pictures:
        yield from bars(picture, width) if isinstance(picture, Bars) else curve(picture, width)
        yield ""


def conclusion(report: TopicReport, width: int = WIDTH) -> list[str]:
    """The advice at the end."""
    return textwrap.wrap(f"→ {report.conclusion}", width, subsequent_indent="  ")


def correction(report: TopicReport, width: int = WIDTH) -> list[str]:
    """Which textbook number is wrong."""
    return textwrap.wrap(f"≠ {report.correction}", width, subsequent_indent="  ") if report.correction else []


def bars(picture: Bars, width: int = WIDTH) -> Iterator[str]:
    yield picture.title
    most = max(picture.values.values(), default=0.0) or 1.0
    wide = max(map(len, picture.values), default=0)
    numbers = {name: number(value, picture.unit) for name, value in picture.values.items()}
    room = width - wide - max(map(len, numbers.values()), default=0) - 5
    longest = max(min(BAR * width // WIDTH, room), LEAST_BAR)
    for name, value in picture.values.items():
        full, rest = divmod(math.ceil(8 * longest * (value / most)), 8)  # only nothing is not drawn
        bar = "█" * full + (_PARTS[rest - 1] if rest else "")
        yield f"  {name:<{wide}}  {bar:<{longest}} {numbers[name]}"


def curve(picture: Curve, width: int = WIDTH) -> Iterator[str]:
    """A row of columns for each line, all on one scale."""
    yield picture.title
    most = max(value for line in picture.lines.values() for value in line) or 1.0
    top = number(most, picture.unit)
    wide = max(map(len, (top, *picture.lines)))
    for name, line in picture.lines.items():
        columns = [mean(part) for part in split(line, min(len(line), width - wide - 4))]
        heights = [math.ceil(8 * HEIGHT * (value / most)) for value in columns]
        for row in range(HEIGHT - 1, -1, -1):
            cells = "".join(_EIGHTHS[min(max(height - 8 * row, 0), 8)] for height in heights)
            label = top if row == HEIGHT - 1 else name if row == 0 else ""
            yield f"{label:>{wide}} │{cells}".rstrip()
    yield f"{'':>{wide}} └ {picture.x_name} {picture.x[0]:,.0f} to {picture.x[-1]:,.0f}"


def figures(all_of_them: Sequence[Figure], width: int = WIDTH) -> Iterator[str]:
    """A table of measured and predicted numbers, with the formulas."""
    titles, rows = ("", "measured", "by formula"), []
    for figure in all_of_them:
        found, said = ("" if n is None else number(n, figure.unit) for n in (figure.measured, figure.expected))
        rows.append((figure.name, found, f"at best {said}" if figure.at_best and said else said))
    used = [column for column in range(3) if not column or any(row[column] for row in rows)]
    wide = [max(len(row[column]) for row in (titles, *rows)) for column in range(3)]

    def line(row: Sequence[str]) -> str:
        cells = [f"{row[column]:>{wide[column]}}" if column else f"{row[0]:<{wide[0]}}" for column in used]
        return f"  {'   '.join(cells)}".rstrip()

    yield line(titles)
    for figure, row in zip(all_of_them, rows, strict=True):
        yield line(row)
        if figure.expected is not None and figure.formula:
            yield from textwrap.wrap(figure.formula, width, initial_indent="      = ", subsequent_indent="        ")


def number(value: float, unit: str) -> str:
    if unit == "bytes":
        return gib(value)
    if unit == "ms":
        return ms(value)
    if unit == "tok/s":
        return tps(value)
    if not unit:
        return f"{value:.2f}"
    if unit == "nats":
        return f"{value:.4f} nats"
    return f"{value:,.0f} {unit}" if unit in ("tokens", "%") else f"{value:.1f} {unit}"


def split(line: Sequence[float], n: int) -> list[Sequence[float]]:
    """Split into `n` contiguous parts."""
    return [line[i * len(line) // n : (i + 1) * len(line) // n] for i in range(n)]


def mean(part: Sequence[float]) -> float:
    return sum(part) / len(part)
