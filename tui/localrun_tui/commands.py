"""The command palette: everything that can be done, by name."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from textual.app import App, SystemCommand

from localrun.chat.commands import COMMANDS, Command
from localrun_tui.keys import key_for

if TYPE_CHECKING:
    from localrun_tui.screens.chat.chat_screen import ChatScreen


def commands(app: App[Any], chat: "ChatScreen | None") -> Iterable[SystemCommand]:
    """All commands where `chat`, the screen of a chat, is in front; else those that work everywhere."""
    for command in COMMANDS:
        if "app" not in command.faces:
            continue
        explanation = " · ".join(
            filter(None, (key_for(command.action.removeprefix("app.")), command.help, command.usage))
        )
        if chat is not None:
            yield SystemCommand(command.title, explanation, _in_chat(chat, command))
        elif command.works_everywhere:
            yield SystemCommand(command.title, explanation, _everywhere(app, command.action))


def _in_chat(chat: "ChatScreen", command: Command) -> Callable[[], Any]:
    def run() -> None:
        if command.needs_arguments:
            chat.composer.write(f"{command.name} ")
            chat.set_focus(chat.composer.editor)
        else:
            chat.run_guarded(chat.slash.run(command.name))

    return run


def _everywhere(app: App[Any], action: str) -> Callable[[], Any]:
    async def run() -> None:
        await app.run_action(action)

    return run
