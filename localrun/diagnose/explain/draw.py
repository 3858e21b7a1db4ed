"""Lessons as text: bars and curves of block characters, numbers as people read them."""

import textwrap
from collections.abc import Iterator, Sequence

from localrun.base.units import gib, ms, tps
from localrun.diagnose.explain.lesson import Bars, Curve, Figure, Lesson

WIDTH, BAR, HEIGHT = 78, 36, 8
_EIGHTHS = " ▁▂▃▄▅▆▇█"
_PARTS = "▏▎▍▌▋▊▉█"


def drawn(lesson: Lesson) -> Iterator[str]:
    """Lines of at most 78 columns."""
    yield from (lesson.title, "─" * len(lesson.title), *textwrap.wrap(lesson.text, WIDTH), "")
    for picture in lesson.pictures:
        yield from bars(picture) if isinstance(picture, Bars) else curve(picture)
        yield ""
    yield from figures(lesson.figures)
    yield from ("", *textwrap.wrap(f"→ {lesson.conclusion}", WIDTH, subsequent_indent="  "))


def bars(picture: Bars) -> Iterator[str]:
    yield picture.title
    most = max(picture.values.values(), default=0.0) or 1.0
    wide = max(map(len, picture.values), default=0)
    for name, value in picture.values.items():
        full, rest = divmod(round(8 * BAR * value / most), 8)
        bar = "█" * full + (_PARTS[rest - 1] if rest else "")
        yield f"  {name:<{wide}}  {bar:<{BAR}} {number(value, picture.unit)}"


def curve(picture: Curve) -> Iterator[str]:
    """A row of columns for each line, all to one scale."""
    yield picture.title
    most = max(value for line in picture.lines.values() for value in line) or 1.0
    for name, line in picture.lines.items():
        columns = [mean(part) for part in split(line, min(len(line), WIDTH - 16))]
        heights = [round(8 * HEIGHT / 2 * value / most) for value in columns]
        for row in range(HEIGHT // 2 - 1, -1, -1):
            cells = "".join(_EIGHTHS[min(max(height - 8 * row, 0), 8)] for height in heights)
            label = number(most, picture.unit) if row == HEIGHT // 2 - 1 else name if row == 0 else ""
            yield f"{label:>13} │{cells}".rstrip()
    yield f"{'':>13} └ {picture.x_name} {picture.x[0]:,.0f} to {picture.x[-1]:,.0f}"


def figures(all_of_them: Sequence[Figure]) -> Iterator[str]:
    wide = max(len(figure.name) for figure in all_of_them)
    for figure in all_of_them:
        measured = "" if figure.measured is None else number(figure.measured, figure.unit)
        line = f"  {figure.name:<{wide}}  {measured:>12}"
        if figure.expected is not None:
            line += f"   by formula {number(figure.expected, figure.unit)}"
        yield line
        if figure.expected is not None and figure.formula:
            yield f"      = {figure.formula}"


def number(value: float, unit: str) -> str:
    if unit == "bytes":
        return gib(value)
    if unit == "ms":
        return ms(value)
    if unit == "tok/s":
        return tps(value)
    return f"{value:,.0f} {unit}" if unit in ("tokens", "%") else f"{value:.1f} {unit}"


def split(line: Sequence[float], n: int) -> list[Sequence[float]]:
    """So many neighbouring parts."""
    return [line[i * len(line) // n : (i + 1) * len(line) // n] for i in range(n)]


def mean(part: Sequence[float]) -> float:
    return sum(part) / len(part)
