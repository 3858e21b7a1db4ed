"""Commands that set properties of the open chat: name, folder, prompt, numbers, context policy."""

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from textual.screen import Screen

from localrun.base.errors import UsageError
from localrun.chat.commands import adapters_in, policy_in
from localrun.chat.overflow import POLICIES
from localrun.hub.disk.stored import StoredModel
from localrun_tui.state.current_chat import last_question, nonempty_chat

if TYPE_CHECKING:
    from localrun.chat.journal import Chat
    from localrun_tui.screens.chat.composer import Composer
    from localrun_tui.screens.chat.history_actions import HistoryActions
    from localrun_tui.state.session import Session


class OwnCommands:
    """Each takes what was typed behind the command, and may wait for the user. Most begin a chat where none is open."""

    def __init__(
        self, screen: Screen[Any], session: "Session", composer: "Composer", history: "HistoryActions"
    ) -> None:
        self._screen = screen
        self._session = session
        self._composer = composer
        self._history = history

    async def title(self, title: str) -> None:
        chat = nonempty_chat(self._session)
        if title:
            await self._session.shelf.change(chat.id, title=title)
            await self._history.show()
        else:
            await self._history.act("rename", chat.id)

    async def folder(self, name: str) -> None:
        if name:
            await self._session.shelf.change(nonempty_chat(self._session).id, folder="" if name == "none" else name)
            await self._history.show()
        else:
            await self._history.act("folder", nonempty_chat(self._session).id)

    async def chat_settings(self, change: str) -> None:
        from localrun.chat.chat_settings import own_change

        if not change:
            await self._screen.run_action("chat_settings")
            return
        name, value = own_change(change)
        chat = await self._chat()
        await self._session.disk.run(lambda: chat.set(**{name: value}))
        self._screen.notify(f"{name} of this chat: {'as it is elsewhere' if value is None else value}", timeout=3)

    async def lora(self, text: str) -> None:
        from localrun_tui.state.continue_chat import load_instead

        present = self._session.present
        if present is None or not isinstance(present.stored, StoredModel):
            raise UsageError("there is no model of this machine", "Ctrl+O chooses one")
        if text:
            await self._session.stop()
            await load_instead(self._session, replace(present, adapters=adapters_in(text)))
            present = self._session.present or present
        names = ", ".join(f"{one.path.name} × {one.scale:g}" for one in present.adapters or ())
        told = f"{names or 'No adapter'} beside the weights; /lora FILE[:SCALE] changes that."
        self._screen.notify(told, timeout=4, markup=False)

    async def system(self, text: str) -> None:
        if not text:
            await self._screen.run_action("chat_settings")
            return
        chat = await self._chat()
        await self._session.disk.run(lambda: chat.set(system="" if text == "none" else text))
        self._screen.notify("System prompt taken away" if text == "none" else "System prompt set", timeout=3)

    async def prompt(self, name: str) -> None:
        from localrun_tui.screens.chat.prompt_library import use_prompt

        await use_prompt(self._screen.app, self._session, self._composer, name)

    async def serve(self, wanted: str) -> None:
        from localrun_tui.screens.requests.server_badge import ServerBadge
        from localrun_tui.state.app_server import port_in

        server = self._session.server
        if wanted == "stop":
            await server.stop()
            self._screen.notify("Other programs are not answered any more", timeout=3)
            return
        if server.url and not wanted:
            self._screen.notify(f"{server.url}/v1 · /requests shows who asks", title="This model is served", timeout=10)
            return
        url = await server.start(port_in(wanted))
        await self._screen.query_one("#bar").mount(ServerBadge(server))
        self._screen.notify(
            f"{url}/v1, until the app ends · /requests shows who asks, /serve stop ends it",
            title="This model is served",
            timeout=6,
        )

    async def tools(self, wanted: str) -> None:
        from localrun.tools.tools_command import change_tools
        from localrun_tui.screens.tools.tools_screen import ToolsScreen

        tools = self._session.tools.tools
        before = tools.names
        if not wanted:
            await self._screen.app.push_screen_wait(ToolsScreen(tools))
        else:
            await asyncio.to_thread(change_tools, tools, wanted)  # servers take their time to end
        if wanted or tools.names != before:
            names = ", ".join(tools.names)
            self._screen.notify(f"The model may call {names or 'no tools'}", timeout=3, markup=False)

    async def keep(self, name: str) -> None:
        from localrun.chat.prompts import keep_prompt

        text = nonempty_chat(self._session).tree[last_question(self._session)].text
        path = await self._session.disk.run(keep_prompt, name, text)
        self._screen.notify(f"{path}: /prompt {name} takes it", title="Kept", markup=False)

    async def policy(self, wanted: str) -> None:
        policy = policy_in(wanted)
        if policy is None:
            await self._screen.run_action("chat_settings")
            return
        chat = await self._chat()
        await self._session.disk.run(lambda: chat.set(policy=policy))
        self._screen.notify(f"When the context is full: {POLICIES[policy][0].lower()}", timeout=3)

    async def _chat(self) -> "Chat":
        return self._session.chat or await self._session.new_chat()
