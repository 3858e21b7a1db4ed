"""Actions on chats, from their list, from the chat itself and from the palette."""

import re
from pathlib import Path
from typing import TYPE_CHECKING

from localrun_tui.screens.chat.history_list import HistoryList
from localrun_tui.state.session import Session
from localrun_tui.widgets.columns import say
from localrun_tui.widgets.toast import toast

if TYPE_CHECKING:
    from localrun.chat.journal import Chat, ChatSummary
    from localrun_tui.screens.chat.history_groups import Found

_FORMATS = (("md", "Markdown", "the branch you see, for reading"), ("json", "JSON", "every branch, for programs"))
_NONE, _NEW = "none", "new"


class HistoryActions:
    """Every method may wait for the user, so run it as a worker."""

    def __init__(self, chats: HistoryList, session: Session) -> None:
        self._list = chats
        self._session = session
        self._words = ""

    async def show(self, words: str | None = None) -> None:
        """Fill the list: all chats, or those with the words looked for."""
        self._words = self._words if words is None else words
        if not self._list.display:
            return
        rows = await self._session.disk.run(self._rows, self._words)
        current = self._session.chat.id if self._session.chat else None
        if not rows:
            note = f"nothing with “{self._words}”" if self._words else "no chats yet"
        else:
            note = f"{len(rows)} found" if self._words else ""
        self._list.show(rows, self._words.split(), current, str(say(note)))

    async def act(self, what: str, chat_id: str) -> None:
        """Do one of: rename, pin, folder, duplicate, export, delete."""
        does = {
            "rename": self.rename,
            "pin": self.pin,
            "folder": self.choose_folder,
            "duplicate": self.duplicate,
            "export": self.export,
            "delete": self.delete,
        }
        await does[what](chat_id)
        await self.show()

    async def act_on_open(self, what: str) -> None:
        """The same with the chat that is open."""
        chat = self._session.chat
        if chat is not None and len(chat.tree):
            await self.act(what, chat.id)
        else:
            toast(self._list, "Nothing was said in this chat yet")

    async def rename(self, chat_id: str) -> None:
        from localrun_tui.screens.dialogs.ask import AskText

        title = (await self._chat(chat_id)).title
        answer = await self._list.app.push_screen_wait(AskText("Title of this chat", str(say(title))))
        if answer:
            await self._session.shelf.change(chat_id, title=answer)

    async def pin(self, chat_id: str) -> None:
        """Move a chat to the top of the list, or back to its day."""
        pinned = not (await self._chat(chat_id)).pinned
        await self._session.shelf.change(chat_id, pinned=pinned)
        toast(self._list, "Pinned: it stays at the top of the chats" if pinned else "Not pinned any more")

    async def choose_folder(self, chat_id: str) -> None:
        """Below a heading of the user's own."""
        from localrun_tui.screens.dialogs.ask import AskOne, AskText

        app, now = self._list.app, (await self._chat(chat_id)).folder
        summaries = await self._session.disk.run(self._summaries)
        names = sorted({one.folder for one in summaries if one.folder}, key=str.casefold)
        rows = [(f"/{name}", str(say(name)), "") for name in names]
        rows += [(_NEW, "A new folder", ""), (_NONE, "No folder", "among the others, by its day")]
        choice = await app.push_screen_wait(AskOne("Folder of this chat", rows, current=f"/{now}" if now else _NONE))
        name = await app.push_screen_wait(AskText("Name of the folder")) if choice == _NEW else (choice or "")[1:]
        if choice == _NONE:
            await self._session.shelf.change(chat_id, folder="")
        elif choice and name:
            await self._session.shelf.change(chat_id, folder=name)

    async def duplicate(self, chat_id: str) -> None:
        copy = await self._session.shelf.duplicate(chat_id)
        await self._session.open_chat(copy)
        toast(self._list, "This is the copy now", "The first one stays as it is.")

    async def delete(self, chat_id: str) -> None:
        """Delete a chat without a question: it can be restored."""
        title = (await self._chat(chat_id)).title
        await self._session.shelf.delete(chat_id)
        if self._session.chat is not None and self._session.chat.id == chat_id:
            await self._session.new_chat()
        toast(self._list, f"“{title}” is deleted", "u in the list of chats, or /undelete, brings it back.")

    async def undelete(self) -> None:
        """Bring the chat back that was deleted last."""
        chat_id = await self._session.shelf.undelete()
        if chat_id is None:
            toast(self._list, "Nothing was deleted since the start", "localrun history restore ID brings back others.")
            return
        self._list.app.clear_notifications()  # they say that it is deleted
        open_chat = self._session.chat
        if open_chat is None or not len(open_chat.tree):  # it was the open one, whose place an empty one has taken
            await self._session.open_chat(chat_id)
        else:
            toast(self._list, f"“{(await self._chat(chat_id)).title}” is back")
        await self.show()

    async def export(self, chat_id: str) -> None:
        from localrun_tui.screens.dialogs.ask import AskOne, AskText

        app = self._list.app
        suffix = await app.push_screen_wait(AskOne("Export this chat as", _FORMATS))
        if suffix is None:
            return
        title = (await self._chat(chat_id)).title
        name = re.sub(r"[^\w-]+", "-", title).strip("-").lower()[:48] or "chat"
        answer = await app.push_screen_wait(AskText("Write it to", str(Path.cwd() / f"{name}.{suffix}")))
        if answer:
            path = Path(answer).expanduser()
            await self._session.disk.run(self._write, chat_id, path, suffix)
            app.notify(str(say(f"written to {path}")), title="Exported", markup=False)

    async def _chat(self, chat_id: str) -> "Chat":
        return await self._session.disk.run(lambda: self._session.disk.store().open(chat_id))

    def _summaries(self) -> "list[ChatSummary]":
        return self._session.disk.store().summaries()

    def _rows(self, words: str) -> "list[Found]":
        if not words:
            return [(summary, None) for summary in self._summaries()]
        from localrun.chat.search import search

        store = self._session.disk.store()
        found = {hit.chat_id: hit for hit in reversed(search(store, words))}
        rows = [(summary, hit) for chat_id, hit in found.items() if (summary := store.summary(chat_id))]
        return sorted(rows, key=lambda row: row[0].updated, reverse=True)

    def _write(self, chat_id: str, path: Path, suffix: str) -> None:
        from localrun.chat.export import write_export

        write_export(self._session.disk.store().open(chat_id), path, as_json=suffix == "json")
