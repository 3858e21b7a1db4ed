"""How sure the model was of each token of an answer, and which others it might have written."""

import math
from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from localrun.base.events import TokenLogprob
from localrun.base.units import percent
from localrun.chat.token_odds import shown_token
from localrun_tui.screens.dialogs.prompt_screen import TokenRows
from localrun_tui.widgets.columns import say
from localrun_tui.widgets.key_hint import KeyHint
from localrun_tui.widgets.leaving import Dialog
from localrun_tui.widgets.meters import bar

_BAR, _TEXT = 8, 18  # cells
_SURE, _UNSURE = 0.9, 0.5


def odds_row(token: TokenLogprob, width: int) -> Content:
    """A token with its probability, and as many others with theirs as `width` cells hold."""
    chance = math.exp(token.logprob) if token.logprob is not None else 1.0
    style = "$success" if chance >= _SURE else "$warning" if chance < _UNSURE else "$primary"
    text = shown_token(token.piece)
    others = [one for one in token.top if (one.token_id, one.piece) != (token.token_id, token.piece)]
    row = Content.assemble(bar(chance, _BAR, style), f" {percent(chance):>5}  ", say(f"{text:<{_TEXT}}  ", "bold"))
    for one in others:
        other = say(f"{shown_token(one.piece)} {percent(math.exp(one.logprob))}   ", "$foreground-muted")
        if row.cell_length + other.cell_length > width:
            break
        row += other
    return row


class OddsScreen(Dialog[None]):
    """One row a token; the probabilities are the model's own, before temperature, penalties and bias."""

    CSS_PATH = "prompt_screen.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q", "dismiss", "Close", id="odds.close")]

    def __init__(self, tokens: Sequence[TokenLogprob]) -> None:
        super().__init__()
        self.tokens = tokens

    def compose(self) -> ComposeResult:
        with Vertical(id="box"):
            yield Static(say("How sure the model was of each token, and which others it thought of"), id="question")
            yield Static(say("before temperature and penalties; · is a blank, ⏎ ends a line", "$foreground-muted"))
            yield TokenRows()
        yield KeyHint("↑↓ Page↑ Page↓ scroll, Escape closes")

    def on_mount(self) -> None:
        self.query_one(TokenRows).focus()

    def on_resize(self) -> None:
        self.call_after_refresh(self._show)

    def _show(self) -> None:
        rows = self.query_one(TokenRows)
        rows.show([odds_row(token, max(rows.size.width, 20)) for token in self.tokens])
