"""Label of one parameter of the explain screen."""

from textual import events
from textual.content import Content
from textual.widgets import Static

from localrun.diagnose.predict.what_if import WhatIf
from localrun_tui.screens.explain.drawing import MUTED
from localrun_tui.screens.explain.parameters import Parameter, share_of_contexts
from localrun_tui.widgets.columns import say

SLIDER = 16  # cells


class ParameterLabel(Static):
    """Key, name and value of a parameter; a click changes it, too."""

    def __init__(self, parameter: Parameter) -> None:
        super().__init__(id=parameter.field, classes="label")
        self.parameter = parameter

    def show(self, what: WhatIf) -> None:
        keys = "←→" if self.parameter.field == "ctx" else self.parameter.key
        slider = Content("")
        if self.parameter.field == "ctx" and not self.screen.has_class("-small"):
            at = round(share_of_contexts(what) * (SLIDER - 1))
            slider = Content.assemble(
                " ", ("━" * at, "$primary"), ("●", "bold $primary"), ("─" * (SLIDER - 1 - at), "$foreground 25%")
            )
        name = Content.assemble((f"{keys} ", "$footer-key-foreground"), (f"{self.parameter.title} ", MUTED))
        self.update(name + say(self.parameter.said(what), "bold") + slider)

    async def on_click(self, event: events.Click) -> None:
        await self.screen.run_action(f"turn('{self.parameter.field}', {-1 if event.shift else 1})")
