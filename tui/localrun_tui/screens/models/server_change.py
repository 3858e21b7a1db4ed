"""Adding a server, changing the address or key of one that is there, or forgetting it."""

from collections.abc import Callable, Iterable
from typing import Any

from textual.screen import Screen

from localrun.client.remote.endpoint import Endpoint
from localrun.client.remote.endpoints import change_endpoint
from localrun_tui.screens.dialogs.confirm import ConfirmScreen
from localrun_tui.screens.settings.endpoint_form import EndpointForm
from localrun_tui.state.background import run_in_background
from localrun_tui.widgets.toast import toast_error


def ask_for_server(
    screen: Screen[Any], known: Endpoint | None, taken: Iterable[str], changed: Callable[[], Any]
) -> None:
    """Show the form, keep what it gives, and call `changed`. `known` is the server to change; `taken` are the names of
    all there are."""

    def keep(new: Endpoint | None) -> None:
        if new is not None:
            run_in_background(
                screen,
                lambda task: change_endpoint(known, new),
                lambda _: changed(),
                lambda error: toast_error(screen, error),
            )

    others = [name for name in taken if known is None or name != known.name]
    screen.app.push_screen(EndpointForm(known, others), keep)


def ask_to_forget(screen: Screen[Any], known: Endpoint, changed: Callable[[], Any]) -> None:
    """Ask whether to forget a server, then do it and call `changed`."""

    def forget(yes: bool | None) -> None:
        if yes:
            run_in_background(
                screen,
                lambda task: change_endpoint(known, None),
                lambda _: changed(),
                lambda error: toast_error(screen, error),
            )

    question = f"Forget the server {known.name}?"
    screen.app.push_screen(ConfirmScreen(question, [("address", known.url)], "Forget", danger=True), forget)
