"""Loading the model of the chat again: in another form, or because settings have changed."""

from collections.abc import Collection
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from textual.app import App

from localrun.backends.registry import usual_memory
from localrun.client.choice import ModelChoice
from localrun.hub.disk.stored import StoredModel
from localrun_tui.screens.dialogs.confirm import ConfirmScreen
from localrun_tui.screens.models.model_sections import subject_of_stored
from localrun_tui.screens.models.precision_menu import PrecisionMenu
from localrun_tui.screens.settings.settings_groups import RELOADED, in_groups
from localrun_tui.state.continue_chat import load_instead

if TYPE_CHECKING:
    from localrun_tui.state.session import Session


async def choose_form(app: App[Any], session: "Session") -> None:
    """Let the user choose another precision, context or codec of the loaded model, or of one that was just refused, and
    load it; where there is none, let them choose a model."""
    present = session.model.refused or session.present
    if session.info is not None:
        session.model.refused = None  # the next time it is about the loaded one
    if present is None or not isinstance(present.stored, StoredModel):
        await app.run_action("models")
        return
    menu = PrecisionMenu(
        subject_of_stored(present.stored), lambda: usual_memory().available + session.model.held_bytes()
    )
    answer = await app.push_screen_wait(menu)
    if isinstance(answer, ModelChoice):
        await load_instead(session, answer)
    elif answer is not None:
        await app.run_action("downloads")


async def reload_for(app: App[Any], session: "Session", changed: Collection[str]) -> None:
    """After settings have changed: offer to load the model again where they count from then on only."""
    titles = [title for _, key, title in in_groups() if key in changed and key in RELOADED]
    present = session.present
    if changed and not titles:
        app.notify("It counts from the next message on.")
    if not titles or present is None or not isinstance(present.stored, StoredModel):
        return
    facts = [("changed", ", ".join(titles)), ("chat", "goes on; it is read again where the cache has another form")]
    if await app.push_screen_wait(ConfirmScreen("Load the model again now?", facts, "Reload now", "Later")):
        await load_instead(session, replace(present, ctx=None, kv="auto", window=None))
