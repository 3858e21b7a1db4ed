"""`localrun tui`: the app, with a named model."""

import os
import sys
from dataclasses import asdict
from typing import Annotated

from localrun.base.errors import UsageError
from localrun.base.settings import set_for_this_run
from localrun.cli.chats import ContinueSwitch
from localrun.cli.console import ONE_OR_MANY, at_terminal, is_terminal
from localrun.cli.groups import (
    NO_ATTACH,
    DraftOption,
    LoraOption,
    MachineFlags,
    ModelArgument,
    ModelOptions,
    OfflineSwitch,
    ServerOption,
    SettingFlags,
    adapters_named,
    switch,
)
from localrun.cli.open_app import is_plain, open_app
from localrun.cli.server_choice import on_server


def tui(
    named: ModelArgument = None,
    *,
    model: ModelOptions,
    machine: MachineFlags,
    answers: SettingFlags,
    draft: DraftOption = None,
    lora: LoraOption = None,
    offline: OfflineSwitch = False,
    server: ServerOption = None,
    go_on: ContinueSwitch = False,
    no_attach: Annotated[bool, switch("--no-attach", NO_ATTACH)] = False,
) -> int:
    """Open the app: pick a model, chat, see what happens. `localrun` alone does the same.

    Options hold until the app ends, before LOCALRUN_* and config.toml; a chat's own settings go first.
    """
    if named and model.model:
        raise UsageError("two models are named", "leave one out")
    if not at_terminal():
        raise UsageError("the app needs a terminal", ONE_OR_MANY)
    if is_plain():
        if not is_terminal(sys.stderr):
            raise UsageError("the app draws on stderr, which is no terminal here", "leave out 2>, or use localrun chat")
        raise UsageError("this terminal shows plain lines only", "use localrun chat, or set TERM")
    typed = asdict(machine)
    first = {name: typed.pop(name) for name in ("backend", "device", "threads")}
    name, held = named or model.model, {**typed, "adapters": adapters_named(lora)}
    of_any = first if name else first | typed  # without a name, context and cache are of whichever is chosen
    set_for_this_run(of_any | asdict(answers) | {"draft": draft})
    if offline:
        os.environ["HF_HUB_OFFLINE"] = "1"  # for what the app starts, too
    if server is not None:
        here = {"precision": model.precision, **asdict(machine), "lora": lora}
        return open_app(choice=on_server(server, name, here), go_on=go_on)
    return open_app(name, model.precision, attach=not no_attach, held=held, go_on=go_on)
