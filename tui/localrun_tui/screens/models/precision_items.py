"""A precision as a row of its menu."""

from textual.content import Content

from localrun.base.units import gib
from localrun.fit.precisions import is_extreme
from localrun.hub.precision_offer import PrecisionChoice
from localrun_tui.screens.models.model_rows import speed
from localrun_tui.screens.models.verdicts import verdict_text
from localrun_tui.widgets.columns import Column, Row, say
from localrun_tui.widgets.model_list import Item

COLUMNS = (
    Column("", 1),
    Column("PRECISION", 10),
    Column("SIZE", 9, right=True),
    Column("BITS", 4, right=True, from_width=72),
    Column("HERE", 7),
    Column("LONGEST", 7, right=True, from_width=64),
    Column("SPEED", 11, right=True),
    Column("KV", 4, from_width=72),
    Column(""),
)


def precision_item(one: PrecisionChoice, largest: int) -> Item[PrecisionChoice]:
    """A row; `largest` are the bytes of the largest precision in the menu."""
    fit = one.fit
    about = "≈" if one.approximate else ""
    longest = f"{fit.max_ctx:,}" if fit and fit.max_ctx else "–"
    cells = (
        Content.styled("★", "$text-accent") if one.recommended else Content(""),
        say(one.name or "?"),
        say(f"{about}{gib(one.bytes, largest)}"),
        say(f"{one.bits:.1f}"),
        verdict_text(fit.verdict if fit else None),
        say(longest),
        say(speed(fit)),
        say(fit.kv_codec if fit else "", "$foreground-muted"),
        say(_where(one), "$text-success" if one.stored else "$foreground-muted") + _warning(one),
    )
    return Item(one.key, Row(COLUMNS, cells), one)


def _where(one: PrecisionChoice) -> str:
    if one.stored is not None:
        return "on disk"
    return "" if one.variant is None else "download"


def _warning(one: PrecisionChoice) -> Content:
    return say(" extreme", "$text-warning") if is_extreme(one.name) else Content("")
