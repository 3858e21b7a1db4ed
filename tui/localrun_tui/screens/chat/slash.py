"""What the commands do in the app. Typed behind a slash and chosen in the palette, they are the same."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textual.screen import Screen
from textual.widgets import Input

from localrun.base.errors import UsageError
from localrun.base.sanitize import clean
from localrun.chat.commands import temperature_in
from localrun.chat.overflow import POLICIES
from localrun_tui.state.branches import Branches

if TYPE_CHECKING:
    from localrun.chat.journal import Chat
    from localrun_tui.screens.chat.composer import Composer
    from localrun_tui.screens.chat.history_actions import HistoryActions
    from localrun_tui.screens.chat.history_list import HistoryList
    from localrun_tui.state.choice import ModelChoice
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
        self._branches = Branches(session)
        self._composer = composer
        self._chats = chats
        self._history = history
        self.handlers: dict[str, Handler] = {
            "/help": self._action("app.help"),
            "/new": self._action("new_chat"),
            "/retry": self._retry,
            "/retry-with": self._retry_with,
            "/continue": self._continue,
            "/edit": self._edit,
            "/undo": self._undo,
            "/branch": self._branch,
            "/compare": self._compare,
            "/attach": self._attach,
            "/copy": self._copy,
            "/list": self._action("history"),
            "/open": self._open,
            "/search": self._search,
            "/title": self._title,
            "/system": self._system,
            "/prompt": self._prompt,
            "/keep": self._keep,
            "/policy": self._policy,
            "/sees": self._sees,
            "/save": self._save,
            "/find": self._find,
            "/pin": self._of_chat("pin"),
            "/folder": self._folder,
            "/duplicate": self._of_chat("duplicate"),
            "/delete": self._of_chat("delete"),
            "/undelete": self._action("undelete"),
            "/chat-settings": self._chat_settings,
            "/stats": self._action("inspector"),
            "/explain": self._explain,
            "/models": self._action("app.models"),
            "/downloads": self._action("app.downloads"),
            "/settings": self._action("app.settings"),
            "/theme": self._action("app.change_theme"),
            "/quit": self._action("app.quit"),
        }

    async def run(self, name: str, arguments: str = "") -> None:
        await self.handlers[name](arguments)

    def _action(self, action: str) -> Handler:
        async def run(_: str) -> None:
            await self._screen.run_action(action)

        return run

    def _of_chat(self, what: str) -> Handler:
        async def run(_: str) -> None:
            await self._history.act(what, self._chat().id)

        return run

    async def _explain(self, topic: str) -> None:
        from localrun.diagnose.explain.words import WORDS

        if topic and topic not in WORDS:
            raise UsageError(f"there is no topic {topic}", f"one of {', '.join(WORDS)}")
        await self._screen.run_action(f"app.explain({topic!r})")

    # ---- the chat

    def _chat(self) -> "Chat":
        if self._session.chat is None or not len(self._session.chat.tree):
            raise UsageError("nothing was said in this chat yet", "type a message")
        return self._session.chat

    def _last_question(self) -> str:
        chat = self._chat()
        asked = [message.id for message in chat.tree.path(chat.tree.head) if message.role == "user"]
        if not asked:
            raise UsageError("there is no message yet", "type one")
        return asked[-1]

    async def _retry(self, temperature: str) -> None:
        chat = self._chat()
        if chat.tree.head is not None:
            await self._session.regenerate(chat.tree.head, temperature_in(temperature))

    async def _retry_with(self, name: str) -> None:
        from localrun_tui.screens.models.models_screen import ModelsScreen
        from localrun_tui.state.choice import named
        from localrun_tui.state.take_up import load_instead

        chat, head = self._chat(), self._chat().tree.head
        choice: ModelChoice | None
        if name:
            choice = await self._session.disk.run(named, name)
        else:
            asked, held = "Which model is to answer?", self._session.model.held_bytes
            choice = await self._screen.app.push_screen_wait(ModelsScreen(self._session.info, "disk", held, asked))
        if choice is None or head is None:
            return
        there = await load_instead(self._session, choice)
        if there and self._session.chat is chat:
            await self._session.regenerate(head)

    async def _continue(self, _: str) -> None:
        head = self._chat().tree.head
        if head is not None:
            await self._session.go_on(head)

    async def _sees(self, _: str) -> None:
        from localrun_tui.screens.dialogs.prompt_screen import PromptScreen
        from localrun_tui.state.prompt_preview import preview

        view = await preview(self._session, self._composer.message, pieces=True)
        if view is None:
            raise UsageError("nobody tells what the model sees now", "load a model on this machine, and say something")
        info, chat = self._session.info, self._session.chat
        rolls = chat is not None and chat.policy == "roll"
        n_hidden = len(chat.tree.path(chat.tree.head)) - len(chat.visible()) if chat else 0
        await self._screen.app.push_screen(PromptScreen(view, info.ctx if info else 0, n_hidden, rolls))

    async def _edit(self, text: str) -> None:
        question = self._last_question()
        if text:
            await self._branches.edit(question, text)
        else:
            self._composer.edit(question, self._chat().tree[question].text)

    async def _undo(self, _: str) -> None:
        question = self._last_question()
        await self._branches.take_back(question)
        self._screen.notify("The last message and its answer are taken back; /branch finds them.", timeout=4)

    async def _branch(self, number: str) -> None:
        from localrun.chat.versions import chosen, versions
        from localrun_tui.screens.dialogs.ask import AskOne

        chat = self._chat()
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

    async def _compare(self, number: str) -> None:
        from localrun.chat.versions import chosen, compared
        from localrun_tui.screens.dialogs.compare_screen import CompareScreen

        versions, shown = compared(self._chat())
        if number:
            taken: str | None = versions[chosen(number, len(versions), "version", "/compare")].id
        else:
            taken = await self._screen.app.push_screen_wait(CompareScreen(versions, shown))
        if taken is not None:
            await self._branches.show(taken)

    async def _copy(self, what: str) -> None:
        from localrun.chat.export import to_markdown

        chat = self._chat()
        if what:
            text, name = to_markdown(chat), "chat"
        else:
            answers = [one for one in chat.tree.path(chat.tree.head) if one.role == "assistant"]
            if not answers:
                raise UsageError("there is no answer yet", "/copy chat copies the chat")
            text, name = answers[-1].text, "answer"
        self._screen.app.copy_to_clipboard(clean(text))
        self._screen.notify(f"{name} copied", timeout=2)

    async def _attach(self, path: str) -> None:
        from localrun.chat.files import read_files

        if path:
            for attachment in await self._session.disk.run(read_files, path, Path.cwd()):
                self._composer.attach(attachment)
        else:
            await self._screen.run_action("attach")

    async def _title(self, title: str) -> None:
        chat = self._chat()
        if title:
            await self._session.shelf.change(chat.id, title=title)
            await self._history.show()
        else:
            await self._history.act("rename", chat.id)

    async def _folder(self, name: str) -> None:
        if name:
            await self._session.shelf.change(self._chat().id, folder="" if name == "none" else name)
            await self._history.show()
        else:
            await self._history.act("folder", self._chat().id)

    async def _chat_settings(self, change: str) -> None:
        from localrun.chat.remembered import own_change

        if not change:
            await self._screen.run_action("chat_settings")
            return
        name, value = own_change(change)
        chat = self._session.chat or await self._session.new_chat()
        await self._session.disk.run(lambda: chat.set(**{name: value}))
        self._screen.notify(f"{name} of this chat: {'as it is elsewhere' if value is None else value}", timeout=3)

    async def _system(self, text: str) -> None:
        if not text:
            await self._screen.run_action("chat_settings")
            return
        chat = self._session.chat or await self._session.new_chat()
        await self._session.disk.run(lambda: chat.set(system="" if text == "none" else text))
        self._screen.notify("System prompt taken away" if text == "none" else "System prompt set", timeout=3)

    async def _prompt(self, name: str) -> None:
        from localrun_tui.screens.chat.prompt_library import use_prompt

        await use_prompt(self._screen.app, self._session, self._composer, name)

    async def _keep(self, name: str) -> None:
        from localrun.chat.prompts import keep_prompt

        text = self._chat().tree[self._last_question()].text
        path = await self._session.disk.run(keep_prompt, name, text)
        self._screen.notify(f"{path}: /prompt {name} takes it", title="Kept", markup=False)

    async def _policy(self, wanted: str) -> None:
        policy = next((name for name in POLICIES if name == wanted), None)
        if policy is None:
            if wanted:
                raise UsageError(f"there is no policy {wanted}", f"one of {', '.join(POLICIES)}")
            await self._screen.run_action("chat_settings")
            return
        chat = self._session.chat or await self._session.new_chat()
        await self._session.disk.run(lambda: chat.set(policy=policy))
        self._screen.notify(f"When the context is full: {POLICIES[policy][0].lower()}", timeout=3)

    async def _find(self, words: str) -> None:
        await self._screen.run_action("find")
        self._screen.query_one("#find-words", Input).value = words

    # ---- all chats

    async def _save(self, name: str) -> None:
        from localrun.chat.export import write_export

        path, chat = Path(name).expanduser(), self._chat()
        await self._session.disk.run(write_export, chat, path, path.suffix == ".json")
        self._screen.notify(f"written to {path}", title="Exported", markup=False)

    async def _open(self, number: str) -> None:
        from localrun.chat.find import find_chat

        if number:
            found = await self._session.disk.run(lambda: find_chat(self._session.disk.store(), number))
            await self._session.open_chat(found.id)
        else:
            await self._screen.run_action("history")

    async def _search(self, words: str) -> None:
        if not self._chats.display:
            await self._screen.run_action("history")
        self._chats.search_box.value = words
