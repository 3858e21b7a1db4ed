"""What the sidebar can do with chats: list, search, rename, export, delete."""

import re
from pathlib import Path
from typing import TYPE_CHECKING

from localrun_tui.screens.chat.history_list import HistoryList
from localrun_tui.state.session import Session
from localrun_tui.widgets.columns import say

if TYPE_CHECKING:
    from localrun.chat.journal import ChatSummary
    from localrun.chat.search import Hit

_FORMATS = (("md", "Markdown", "the branch you see, for reading"), ("json", "JSON", "every branch, for programs"))


class HistoryActions:
    """Every method may wait for the user, so run it as a worker."""

    def __init__(self, chats: HistoryList, session: Session) -> None:
        self._list = chats
        self._session = session
        self._words = ""

    async def show(self, words: str | None = None) -> None:
        """Fill the list: all chats, or those with the words looked for."""
        self._words = self._words if words is None else words
        rows = await self._session.disk.run(self._rows, self._words)
        current = self._session.chat.id if self._session.chat else None
        if not rows:
            note = f"nothing with “{self._words}”" if self._words else "no chats yet"
        else:
            note = f"{len(rows)} found" if self._words else ""
        self._list.show(rows, current, str(say(note)))

    async def rename(self, chat_id: str) -> None:
        from localrun_tui.screens.dialogs.ask import AskText

        title = await self._title(chat_id)
        answer = await self._list.app.push_screen_wait(AskText("Title of this chat", str(say(title))))
        if answer:
            await self._session.rename_chat(chat_id, answer)
            await self.show()

    async def delete(self, chat_id: str) -> None:
        from localrun_tui.screens.dialogs.confirm import ConfirmScreen

        title = await self._title(chat_id)
        facts = [("", "It can be brought back for 30 days: localrun history restore.")]
        question = ConfirmScreen(f"Delete “{title}”?", facts, yes="Delete", no="Keep", danger=True)
        if await self._list.app.push_screen_wait(question):
            await self._session.delete_chat(chat_id)
            await self.show()

    async def export(self, chat_id: str) -> None:
        from localrun_tui.screens.dialogs.ask import AskOne, AskText

        app = self._list.app
        suffix = await app.push_screen_wait(AskOne("Export this chat as", _FORMATS))
        if suffix is None:
            return
        name = re.sub(r"[^\w-]+", "-", await self._title(chat_id)).strip("-").lower()[:48] or "chat"
        answer = await app.push_screen_wait(AskText("Write it to", str(Path.cwd() / f"{name}.{suffix}")))
        if answer:
            path = Path(answer).expanduser()
            await self._session.disk.run(self._write, chat_id, path, suffix)
            app.notify(str(say(f"written to {path}")), title="Exported", markup=False)

    async def _title(self, chat_id: str) -> str:
        return await self._session.disk.run(lambda: self._session.disk.store().open(chat_id).title)

    def _rows(self, words: str) -> "list[tuple[ChatSummary, Hit | None]]":
        store = self._session.disk.store()
        summaries = store.summaries()
        if not words:
            return [(summary, None) for summary in summaries]
        from localrun.chat.search import search

        by_id = {summary.id: summary for summary in summaries}
        found = {hit.chat_id: hit for hit in reversed(search(store, words))}
        return [(by_id[chat_id], found[chat_id]) for chat_id in by_id if chat_id in found]

    def _write(self, chat_id: str, path: Path, suffix: str) -> None:
        from localrun.chat.export import write_export

        write_export(self._session.disk.store().open(chat_id), path, as_json=suffix == "json")
