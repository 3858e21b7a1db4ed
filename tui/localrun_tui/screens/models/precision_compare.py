"""Two precisions of a model side by side. No widgets."""

from textual.content import Content

from localrun.base.units import gib
from localrun.fit.quality import MEANING, kld_text, weight_kld
from localrun.hub.precision_offer import PrecisionChoice
from localrun_tui.screens.models.model_rows import speed
from localrun_tui.screens.models.verdicts import verdict_text
from localrun_tui.widgets.columns import say

_NAME, _CELL = 16, 20  # cells


def compare(one: PrecisionChoice, other: PrecisionChoice) -> Content:
    """A line for each thing in which precisions differ; what is better in bold."""
    rows = [
        (Content(""), say(one.name, "bold underline"), say(other.name, "bold underline")),
        _row("on disk", gib(one.bytes), gib(other.bytes), other.bytes - one.bytes),
        _row("bits a weight", f"{one.bits:.1f}", f"{other.bits:.1f}", one.bits - other.bits),
        _row("KLD", *_klds(one, other)),
    ]
    if one.fit is not None and other.fit is not None:
        a, b = one.fit, other.fit
        faster = a.est_decode_tps - b.est_decode_tps
        rows += [
            _row("memory", gib(a.total_bytes), gib(b.total_bytes), b.total_bytes - a.total_bytes),
            _row("speed", speed(a), speed(b), faster),
            _row("longest context", f"{a.max_ctx:,}", f"{b.max_ctx:,}", a.max_ctx - b.max_ctx),
            (say("here"), verdict_text(a.verdict), verdict_text(b.verdict)),
        ]
    table = [_cell(name, _NAME) + _cell(first, _CELL) + second for name, first, second in rows]
    return Content("\n").join([*table, say(MEANING, "$foreground-muted")])


def _klds(one: PrecisionChoice, other: PrecisionChoice) -> tuple[str, str, float]:
    """KL divergence of each, their ratio, and how much better the first one is."""
    a, b = weight_kld(one.name), weight_kld(other.name)
    first, second = kld_text(a), kld_text(b)
    if not a or not b:
        return first, second, 0.0
    times = f"  {max(a, b) / min(a, b):.1f} ×"
    return first + times * (a > b), second + times * (b > a), b - a


def _row(name: str, first: str, second: str, lead: float) -> tuple[Content, Content, Content]:
    """`lead` says how much better the first one is."""
    styles = ("bold" if lead > 0 else "", "bold" if lead < 0 else "")
    return say(name, "$foreground-muted"), say(first, styles[0]), say(second, styles[1])


def _cell(text: Content, width: int) -> Content:
    return text.truncate(width - 1, ellipsis=True).pad_right(max(width - text.cell_length, 1))
