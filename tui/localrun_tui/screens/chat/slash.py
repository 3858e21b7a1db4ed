"""Slash commands in the app. Typed behind a slash and chosen in the palette, they are the same."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textual.screen import Screen
from textual.widgets import Input

from localrun.base.errors import LocalrunError, UsageError
from localrun.base.sanitize import clean
from localrun.chat.commands import commands_of, copies_chat, named_file
from localrun.chat.files import part_of_file
from localrun.chat.left_out import TooLongError
from localrun_tui.screens.chat.long_file import attach_long, is_long
from localrun_tui.screens.chat.own_commands import OwnCommands
from localrun_tui.screens.chat.version_commands import VersionCommands
from localrun_tui.state.current_chat import nonempty_chat

if TYPE_CHECKING:
    from localrun_tui.screens.chat.composer import Composer
    from localrun_tui.screens.chat.history_actions import HistoryActions
    from localrun_tui.screens.chat.history_list import HistoryList
    from localrun_tui.state.session import Session

Handler = Callable[[str], Awaitable[None]]


class SlashCommands:
    """Commands of the chat screen, by name. Each may wait for the user, so run it as a worker."""

    def __init__(
        self,
        screen: Screen[Any],
        session: "Session",
        composer: "Composer",
        chats: "HistoryList",
        history: "HistoryActions",
    ) -> None:
        self._screen = screen
        self._session = session
        self._versions = VersionCommands(screen, session, composer)
        self._own = OwnCommands(screen, session, composer, history)
        self._composer = composer
        self._chats = chats
        self._history = history
        actions = {command.name: self._action(command.action) for command in commands_of("app").values()}
        self.handlers: dict[str, Handler] = {
            **actions,
            "/retry": self._versions.retry,
            "/retry-with": self._versions.retry_with,
            "/lora": self._own.lora,
            "/continue": self._versions.go_on,
            "/edit": self._versions.edit,
            "/undo": self._versions.undo,
            "/branch": self._versions.branch,
            "/compare": self._versions.compare,
            "/attach": self._attach,
            "/image": self._image,
            "/read": self._read,
            "/copy": self._copy,
            "/open": self._open,
            "/search": self._search,
            "/title": self._own.title,
            "/system": self._own.system,
            "/prompt": self._own.prompt,
            "/keep": self._own.keep,
            "/policy": self._own.policy,
            "/sees": self._sees,
            "/odds": self._odds,
            "/save": self._save,
            "/find": self._find,
            "/pin": self._of_chat("pin"),
            "/folder": self._own.folder,
            "/duplicate": self._of_chat("duplicate"),
            "/delete": self._of_chat("delete"),
            "/chat-settings": self._own.chat_settings,
            "/explain": self._explain,
            "/models": self._models,
            "/serve": self._own.serve,
            "/tools": self._own.tools,
        }

    async def run(self, name: str, arguments: str = "") -> None:
        """Run one; where it fails for what was typed behind it, that stands in the editor again, to be mended."""
        try:
            await self._session.opened()
            await self.handlers[name](arguments)
        except LocalrunError:
            if arguments and not self._composer.editor.text:
                self._composer.write(f"{name} {arguments}")
            raise

    def _action(self, action: str) -> Handler:
        async def run(_: str) -> None:
            await self._screen.run_action(action)

        return run

    def _of_chat(self, what: str) -> Handler:
        async def run(_: str) -> None:
            await self._history.act(what, nonempty_chat(self._session).id)

        return run

    async def _explain(self, topic: str) -> None:
        from localrun.diagnose.explain.words import WORDS

        if topic and topic not in WORDS:
            raise UsageError(f"there is no topic {topic}", f"one of {', '.join(WORDS)}")
        await self._screen.run_action(f"app.explain({topic!r})")

    async def _models(self, words: str) -> None:
        await self._screen.run_action(f"app.models('Models', {words!r})")

    # ---- the chat

    async def _sees(self, _: str) -> None:
        from localrun_tui.screens.dialogs.prompt_screen import PromptScreen
        from localrun_tui.state.prompt_preview import preview

        view = await preview(self._session, self._composer.message, pieces=True)
        if view is None:
            raise UsageError("there is nothing the model sees now", "load a model on this machine, and say something")
        info, chat = self._session.info, self._session.chat
        rolls = chat is not None and chat.policy == "roll"
        n_hidden = len(chat.tree.path(chat.tree.head)) - len(chat.visible()) if chat else 0
        await self._screen.app.push_screen(PromptScreen(view, info.ctx if info else 0, n_hidden, rolls))

    async def _odds(self, _: str) -> None:
        from localrun_tui.screens.chat.odds import show_odds

        await show_odds(self._screen.app, self._session)

    async def _copy(self, what: str) -> None:
        from localrun.chat.export import to_markdown

        chat = nonempty_chat(self._session)
        if copies_chat(what):
            text = to_markdown(chat)
        else:
            answers = [one for one in chat.tree.path(chat.tree.head) if one.role == "assistant"]
            if not answers:
                raise UsageError("there is no answer yet", "/copy chat copies the chat")
            text = answers[-1].text
        self._screen.app.copy_to_clipboard(clean(text))

    async def _attach(self, path: str) -> None:
        if not path:
            await self._screen.run_action("attach")
            return
        try:
            await self._composer.attached.read_typed(path)
        except TooLongError as error:
            await attach_long(self._screen.app, self._session, self._composer, error.path, part=error.part)

    async def _image(self, typed: str) -> None:
        if typed:
            self._composer.attached.resize(typed)
        else:
            self._composer.attached.fold.fold()

    async def _read(self, typed: str) -> None:
        name, question = named_file(typed)
        path, part = part_of_file(name, Path.cwd()) or (Path(name).expanduser(), None)
        if part is None or await is_long(self._session, path, part):
            typed_part = part.name if part else ""
            if question:  # it is a draft until it is answered: a reading may take an hour
                self._composer.write(f"/read {typed}")
            await attach_long(self._screen.app, self._session, self._composer, path, question, typed_part)
        else:
            await self._composer.attached.read_typed(name)
            self._composer.write(question)

    async def _find(self, words: str) -> None:
        await self._screen.run_action("find")
        self._screen.query_one("#find-words", Input).value = words

    # ---- all chats

    async def _save(self, name: str) -> None:
        from localrun.chat.export import write_export

        path, chat = Path(name).expanduser(), nonempty_chat(self._session)
        await self._session.disk.run(write_export, chat, path, path.suffix == ".json")
        self._screen.notify(f"written to {path}", title="Exported", markup=False)

    async def _open(self, number: str) -> None:
        from localrun.chat.journal import find_chat

        if number:
            found = await self._session.disk.run(lambda: find_chat(self._session.disk.store(), number))
            await self._session.open_chat(found.id)
        else:
            await self._screen.run_action("history")

    async def _search(self, words: str) -> None:
        if not self._chats.display:
            await self._screen.run_action("history")
        self._chats.search_box.value = words
