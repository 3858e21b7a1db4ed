"""A report as it is shown on the screen, and the two lines that sum up the parameters. No widgets."""

import re
import textwrap
from collections.abc import Iterable
from dataclasses import replace

from textual.content import Content

from localrun.base.options import in_app
from localrun.base.units import gib, ms, tps
from localrun.diagnose.explain import draw
from localrun.diagnose.explain.topic_report import TopicReport
from localrun.diagnose.predict.times import Times
from localrun_tui.widgets.columns import say

MUTED = "$foreground-muted"
GAUGE = 24  # cells
_MEMORY = "Memory "
_BLOCKS = re.compile("[█▏▎▍▌▋▊▉▁▂▃▄▅▆▇]+")


def report_content(report: TopicReport, width: int, title: str = "", about: bool = True) -> Content:
    """Pictures first, for they move as one turns a parameter; then the numbers, and what all of it means."""
    lines = [say(title or report.title, "bold"), *map(_said, draw.correction(report, width)), Content("")]
    lines += [_line(line) for line in draw.pictures(report, width)]
    lines += [_figure_line(line) for line in draw.figures(report.figures, width)]
    lines.append(Content(""))
    lines += _told(draw.conclusion(replace(report, conclusion=in_app(report.conclusion)), width))
    lines.append(Content(""))
    if about:
        lines += [say(line, MUTED) for line in textwrap.wrap(report.text, width)]
    return Content("\n").join(lines)


def _line(line: str) -> Content:
    """Bars and columns in a colour."""
    content, at = Content(""), 0
    for found in _BLOCKS.finditer(line):
        content += Content(line[at : found.start()]) + Content.styled(found[0], "$primary")
        at = found.end()
    return content + Content(line[at:])


def _figure_line(line: str) -> Content:
    return Content.styled(line, MUTED) if line.lstrip().startswith("=") or line.startswith("   ") else Content(line)


def _said(line: str) -> Content:
    return Content.styled(line[:1], "$text-accent bold") + Content(line[1:])


def _told(lines: Iterable[str]) -> list[Content]:
    """Lines of advice; what is between backticks, over their ends too, is in bold."""
    shown, is_code = [], False
    for line in lines:
        first, *others = line.split("`")
        content = Content.styled(first, "bold") if is_code else _said(first)
        for part in others:
            is_code = not is_code
            content += Content.styled(part, "bold") if is_code else Content(part)
        shown.append(content)
    return shown


def memory_line(times: Times, width: int) -> Content:
    """Weights and caches against what is free; the gauge gives way to the figures."""
    what = times.what
    free = times.free or what.total_bytes
    scale = max(free, what.total_bytes, 1)
    words = f" {gib(what.weights_bytes)} + {gib(what.cache_bytes) if what.cached else 'no'} KV "
    said, verdict = Content(words), _verdict(times)
    cells = max(min(GAUGE, width - len(_MEMORY) - said.cell_length - verdict.cell_length), 0)
    weights = round(cells * what.weights_bytes / scale)
    cache = round(cells * what.total_bytes / scale) - weights
    parts: Iterable[Content] = (
        say(_MEMORY, MUTED),
        Content.styled("█" * weights, "$primary"),
        Content.styled("▓" * cache, "$accent"),
        Content.styled("░" * (cells - weights - cache), "$foreground 25%"),
        said,
        verdict,
    )
    return Content("").join(parts)


def _verdict(times: Times) -> Content:
    left = None if times.free is None else times.free - times.what.total_bytes
    if left is None:
        return Content("")
    if left < 0:
        return Content.styled(f"✘ {gib(-left)} too much", "$text-error")
    return Content.styled(f"✔ {gib(left)} left", "$text-success")


def time_line(times: Times, width: int) -> Content:
    """The first token of an answer that ends with the context, and those after it; ≤ and ≥ where other programs
    computed while the machine was measured. What limits each is said where there is room."""
    what, (most, least) = times.what, ("", "") if times.rates.idle else ("≤", "≥")
    first, token = times.prefill(what.prompt), times.token(what.ctx)
    read = f"{what.prompt:,} tokens read in {most}{ms(1000 * first.longer)}"
    written = f", then {least}{tps(what.chats / token.longer)}"
    whole = Content.assemble(
        ("Time   ", MUTED), read, (f" ({first.limit})", MUTED), written, (f" ({token.limit})", MUTED)
    )
    return whole if whole.cell_length <= width else Content.assemble(("Time   ", MUTED), read, written)
