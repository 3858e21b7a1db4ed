"""Chats on disk: one append-only file per chat. A user's message is stored before it is answered."""

import secrets
import time
from contextlib import suppress
from pathlib import Path

from localrun.base.errors import LocalrunError, NotFoundError, UsageError
from localrun.base.files import make_private
from localrun.base.paths import folder
from localrun.chat.conversation import Chat, Policy, SettingValue
from localrun.chat.file import JournalFile
from localrun.chat.images import IMAGES, ImageShelf, erase_images
from localrun.chat.long_text.kept_notes import erase_notes
from localrun.chat.summary import SUFFIX, ChatSummary, Summaries, is_chat_id
from localrun.storage.block_files import DISK_FOLDER
from localrun.storage.erase import erase_chats

__all__ = ["Chat", "ChatStore", "ChatSummary", "Policy"]
INDEX_NAME = "search.sqlite"


class ChatStore:
    """All chats in a folder; without one, chats live in memory only, which `notice` tells the user."""

    def __init__(self, folder: Path | None, images: ImageShelf | None = None) -> None:
        self.folder = folder
        self.images = images or ImageShelf(folder and folder / IMAGES)
        if folder:
            make_private(folder)
        self.notice = "" if folder else "chats are not kept: there is no folder to write them to"
        self._chats: dict[str, Chat] = {}
        self._summaries = Summaries()

    def create(self, title: str = "", model: str = "", **options: SettingValue) -> Chat:
        """Create a chat; `options` are those of `Chat.set`. Nothing is on disk before its first message."""
        now = time.time()
        chat_id = f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime(now))}-{secrets.token_hex(3)}"
        chat = Chat(chat_id, JournalFile(self._path(chat_id)), self.images)
        chat.begin(now, {"title": title, "model": model, **options})
        self._chats[chat_id] = chat
        return chat

    def open(self, chat_id: str) -> Chat:
        """Open a chat with everything that any program wrote to it.

        NotFoundError; a damaged record loses itself only.
        """
        path = self._path(chat_id)
        chat = self._chats.get(chat_id)
        try:
            if chat is None:
                if path is None:
                    raise FileNotFoundError
                chat = Chat(chat_id, JournalFile(path, exists=True), self.images)
                chat.read()
            elif path is not None and path.exists():
                chat.refresh()
        except FileNotFoundError:
            raise NotFoundError(f"there is no chat {chat_id}", "`localrun history list` shows them") from None
        except OSError as error:
            raise LocalrunError(f"{path} cannot be read: {error.strerror}", "check its permissions") from None
        self._chats[chat_id] = chat
        return chat

    def peek(self, chat_id: str) -> Chat:
        """Like `open`, for one look: read from disk again, and not cached."""
        held = self._chats.get(chat_id)
        if held is not None and (self.folder is None or held.problem):
            return held
        return ChatStore(self.folder).open(chat_id)

    def states(self) -> dict[str, tuple[int, int]]:
        """Size and time of change in ns of each chat's file; equal states mean equal content."""
        if self.folder is None:
            return {}
        found = self._read_summaries()
        return {chat_id: self._summaries.state(chat_id) for chat_id, one in found.items() if not one.deleted}

    def summary(self, chat_id: str) -> ChatSummary | None:
        """Summary of one chat at the last listing; None where it did not exist then."""
        chat = self._chats.get(chat_id)
        if chat is not None and (self.folder is None or chat.problem):
            return summary_of(chat)
        return self._summaries.known(chat_id)

    def summaries(self, deleted: bool = False) -> list[ChatSummary]:
        """Summaries of all chats, or of all deleted ones, the last changed first."""
        found = self._read_summaries()
        found |= {chat.id: summary_of(chat) for chat in self._unwritten()}
        shown = [summary for summary in found.values() if summary.deleted == deleted]
        return sorted(shown, key=lambda summary: (summary.updated, summary.id), reverse=True)

    def unwritten(self) -> list[ChatSummary]:
        """Summaries of the chats whose messages are lost with this program: no try to write them worked, and they are
        not exported whole."""
        self.close()
        return [summary_of(chat) for chat in self._unwritten() if not chat.deleted and not chat.is_exported]

    def _unwritten(self) -> list[Chat]:
        chats = (one for one in self._chats.values() if self.folder is None or one.problem)
        return [chat for chat in chats if len(chat.tree)]

    def _read_summaries(self) -> dict[str, ChatSummary]:
        """Summaries of all files. Chats that were deleted long ago are erased on the way."""
        found = {} if self.folder is None else self._summaries.read(self.folder)
        for chat_id in [one.id for one in found.values() if one.expired]:
            with suppress(LocalrunError):
                self.erase(chat_id)
                del found[chat_id]
        return found

    def change(self, chat_id: str, **settings: SettingValue) -> None:
        """Set what `Chat.set` takes. LocalrunError where it cannot be written."""
        chat = self.open(chat_id)
        chat.set(**settings)
        _check_written(chat)

    def duplicate(self, chat_id: str) -> Chat:
        """Copy a chat with all branches and settings. The copy is on disk when this returns."""
        original = self.open(chat_id)
        copy = self.create(**{**original.own, "title": f"{original.title} (copy)", "pinned": False, "waiting": []})
        copy.take_over(original.tree)
        _check_written(copy)
        return copy

    def delete(self, chat_id: str) -> None:
        """Mark a chat as deleted. Its file is removed after 30 days; until then `restore` brings the chat back."""
        chat = self.open(chat_id)
        chat.bury(True)
        _check_written(chat)

    def restore(self, chat_id: str) -> None:
        chat = self.open(chat_id)
        chat.bury(False)
        _check_written(chat)

    def erase(self, chat_id: str) -> None:
        """Remove a chat for good, now, and everything on disk that holds its text."""
        path = self._path(chat_id)
        self._chats.pop(chat_id, None)
        if path is None:
            return
        try:
            erase_traces(path.parent, chat_id)
            erase_images(path.parent, path)
            path.unlink(missing_ok=True)
            erase_index(path.parent)  # a search may have read the chat just before
        except OSError as error:
            what = error.filename or path
            raise LocalrunError(f"{what} cannot be removed: {error.strerror}", "check its permissions") from None

    def close(self) -> None:
        """Try once more to write what is not on disk."""
        for chat in self._chats.values():
            chat.flush()

    def _path(self, chat_id: str) -> Path | None:
        if not is_chat_id(chat_id):
            raise NotFoundError(f"there is no chat {chat_id}", "`localrun history list` shows them")
        return self.folder / f"{chat_id}{SUFFIX}" if self.folder else None


def _check_written(chat: Chat) -> None:
    if chat.problem:
        raise LocalrunError(chat.problem, "check the folder's permissions and the free space")


def summary_of(chat: Chat) -> ChatSummary:
    """Summary of a chat in memory, for a list."""
    return ChatSummary(
        chat.id,
        chat.title,
        chat.model,
        chat.created,
        chat.updated,
        len(chat.tree),
        chat.deleted,
        chat.pinned,
        chat.folder,
    )


def find_chat(store: ChatStore, wanted: str) -> ChatSummary:
    """Find one chat by what a user calls it.

    By number in the list from 1 on, by id, or by the beginning or end of an id if only one chat has it.
    """
    chats = store.summaries()
    if wanted == "last" and chats:
        return chats[0]
    if wanted.isdecimal() and 1 <= int(wanted[:9]) <= len(chats):
        return chats[int(wanted[:9]) - 1]
    found = [chat for chat in chats if chat.id == wanted] or [
        chat for chat in chats if len(wanted) >= 4 and (chat.id.startswith(wanted) or chat.id.endswith(wanted))
    ]
    if not found:
        raise NotFoundError(f"there is no chat {wanted}", "`localrun history list` shows them")
    if len(found) > 1:
        raise UsageError(f"{len(found)} chats are called {wanted}", "type more of the id")
    return found[0]


def erase_traces(chats: Path, chat_id: str) -> None:
    """Erase a chat's text outside its file: in the search index and in blocks of the KV cache on disk.

    Blocks that other chats share stay. Notes of readings in parts that were not ended name no chat, so that all go.
    Raises OSError.
    """
    cache = folder("cache")
    if cache is not None:
        erase_chats(cache / DISK_FOLDER, [chat_id])
    erase_notes(chats)
    erase_index(chats)


def erase_index(chats: Path) -> None:
    """Remove the whole index, since SQLite leaves deleted text in its pages; the next search builds it again."""
    for suffix in ("", "-journal", "-wal", "-shm"):
        (chats / f"{INDEX_NAME}{suffix}").unlink(missing_ok=True)
