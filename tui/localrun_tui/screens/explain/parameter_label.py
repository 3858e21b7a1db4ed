"""A knob on the screen."""

from textual import events
from textual.content import Content
from textual.widgets import Static

from localrun.diagnose.predict.what_if import WhatIf
from localrun_tui.screens.explain.drawing import MUTED
from localrun_tui.screens.explain.knobs import Knob, share_of_contexts
from localrun_tui.widgets.columns import say

SLIDER = 16  # cells


class Chip(Static):
    """A knob: its key, what it turns, and how it is set. A click turns it, too."""

    def __init__(self, knob: Knob) -> None:
        super().__init__(id=knob.field, classes="chip")
        self.knob = knob

    def show(self, what: WhatIf) -> None:
        keys = "←→" if self.knob.field == "ctx" else self.knob.key
        slider = Content("")
        if self.knob.field == "ctx":
            at = round(share_of_contexts(what) * (SLIDER - 1))
            slider = Content.assemble(
                " ", ("━" * at, "$primary"), ("●", "bold $primary"), ("─" * (SLIDER - 1 - at), "$foreground 25%")
            )
        name = Content.assemble((f"{keys} ", "$footer-key-foreground"), (f"{self.knob.title} ", MUTED))
        self.update(name + say(self.knob.said(what), "bold") + slider)

    async def on_click(self, event: events.Click) -> None:
        await self.screen.run_action(f"turn('{self.knob.field}', {-1 if event.shift else 1})")
