"""Erasing the text of a chat outside its file: the index of the search, and blocks of the KV cache on disk."""

from pathlib import Path

from localrun.base.paths import folder
from localrun.storage.block_files import DISK_FOLDER
from localrun.storage.erase import erase_chats

INDEX_NAME = "search.sqlite"


def erase_traces(chats: Path, chat_id: str) -> None:
    """Remove all of it. Blocks that other chats have too stay. Raises OSError."""
    cache = folder("cache")
    if cache is not None:
        erase_chats(cache / DISK_FOLDER, [chat_id])
    erase_index(chats)


def erase_index(chats: Path) -> None:
    """The whole index: SQLite leaves what is deleted in its pages. The next search makes it anew."""
    for suffix in ("", "-journal", "-wal", "-shm"):
        (chats / f"{INDEX_NAME}{suffix}").unlink(missing_ok=True)
