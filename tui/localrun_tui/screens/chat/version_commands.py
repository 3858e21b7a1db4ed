"""Commands for versions of messages: make, show, compare or drop one."""

from typing import TYPE_CHECKING, Any

from textual.screen import Screen

from localrun.base.errors import UsageError
from localrun.chat.commands import temperature_in
from localrun_tui.state.branches import Branches
from localrun_tui.state.current_chat import last_question, nonempty_chat

if TYPE_CHECKING:
    from localrun.client.choice import ModelChoice
    from localrun_tui.screens.chat.composer import Composer
    from localrun_tui.state.session import Session


class VersionCommands:
    """Each takes what was typed behind the command, and may wait for the user."""

    def __init__(self, screen: Screen[Any], session: "Session", composer: "Composer") -> None:
        self._screen = screen
        self._session = session
        self._branches = Branches(session)
        self._composer = composer

    async def retry(self, temperature: str) -> None:
        chat = nonempty_chat(self._session)
        if chat.tree.head is not None:
            await self._session.regenerate(chat.tree.head, temperature_in(temperature))

    async def retry_with(self, name: str) -> None:
        from localrun.client.choice import named
        from localrun_tui.screens.models.models_screen import ModelsScreen
        from localrun_tui.state.continue_chat import load_instead

        chat = nonempty_chat(self._session)
        head = chat.tree.head
        choice: ModelChoice | None
        if name:
            choice = await self._session.disk.run(named, name)
        else:
            asked, model = "Which model is to answer?", self._session.model
            screen = ModelsScreen("disk", model.held_bytes, asked, in_use=model.path_in_use)
            choice = await self._screen.app.push_screen_wait(screen)
        if choice is None or head is None:
            return
        there = await load_instead(self._session, choice)
        if there and self._session.chat is chat:
            await self._session.regenerate(head)

    async def go_on(self, _: str) -> None:
        head = nonempty_chat(self._session).tree.head
        if head is not None:
            await self._session.go_on(head)

    async def edit(self, text: str) -> None:
        question = last_question(self._session)
        if text:
            await self._branches.edit(question, text)
        else:
            self._composer.edit(question, nonempty_chat(self._session).tree[question].content)

    async def undo(self, _: str) -> None:
        question = last_question(self._session)
        await self._branches.take_back(question)
        self._screen.notify("The last message and its answer are taken back; /branch finds them.", timeout=4)

    async def branch(self, number: str) -> None:
        from localrun.chat.versions import chosen, versions
        from localrun_tui.screens.dialogs.ask import AskOne

        chat = nonempty_chat(self._session)
        found = list(versions(chat))
        if not found:
            raise UsageError("this chat has no branches", "Ctrl+R and editing a message make one")
        if number:
            taken: str | None = found[chosen(number, len(found), "branch", "/branch")][0]
        else:
            shown = next(one for one, line in reversed(found) if line[4:5] == "*" or one == found[-1][0])
            rows = [(one, line.strip(), "") for one, line in found]
            taken = await self._screen.app.push_screen_wait(AskOne("Which branch?", rows, current=shown))
        if taken is not None:
            await self._branches.show(taken)

    async def compare(self, number: str) -> None:
        from localrun.chat.versions import chosen, compared
        from localrun_tui.screens.dialogs.compare_screen import CompareScreen

        versions, shown = compared(nonempty_chat(self._session))
        if number:
            taken: str | None = versions[chosen(number, len(versions), "version", "/compare")].id
        else:
            taken = await self._screen.app.push_screen_wait(CompareScreen(versions, shown))
        if taken is not None:
            await self._branches.show(taken)
