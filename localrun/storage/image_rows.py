"""Encoded images on disk: each a file among the blocks of the KV cache, with their claims and budget, trimmed as they.

The fingerprint is that of a projector instead of a model. A file lists the digest of its image, and a hit compares it.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from localrun.base.image_ids import image_id
from localrun.storage.block_file import BlockKey
from localrun.storage.block_files import BlockFiles
from localrun.storage.block_writer import BlockWriter, Unwritten
from localrun.storage.label import IMAGES, Label


class ImageRowFiles:
    """Rows of images of one projector. `load` and `save` are called by one thread at a time, not the engine's.

    `notes` are for the user: files that were damaged, and computed again.
    """

    def __init__(self, root: Path, identity: str, label: Label, n_parts: int, width: int, writer: BlockWriter) -> None:
        """`identity`: names the projector, its weights and its arithmetic. An image has `n_parts` parts of rows of
        `width` f32 numbers. `writer` writes them within the budget."""
        self.root, self.identity, self.label = root, f"images {identity}", replace(label, codec=IMAGES)
        self.n_parts, self.width, self.writer = n_parts, width, writer
        self.notes: tuple[str, ...] = ()
        self._saved: set[tuple[bytes, str]] = set()

    def load(self, digest: bytes, n_rows: int) -> list[memoryview] | None:
        """The parts of an encoded image; None where it is not on disk as it was written."""
        files, ids, key = self._place(digest, n_rows)
        was_there = files.path(key).exists()
        found = files.load(key, ids)
        if found is None or not all(found):
            if was_there:
                self.notes = ("an encoded image on the disk was damaged: encoded again",)
            return None
        files.touch(key)
        return found

    def has(self, digest: bytes, n_rows: int) -> bool:
        """Whether an encoded image is on disk, perhaps damaged."""
        files, _, key = self._place(digest, n_rows)
        return files.path(key).exists()

    def save(self, digest: bytes, n_rows: int, parts: Sequence[bytes], chat: str) -> None:
        """Write an image that a stored chat has, unless that was done; waits while the disk makes progress."""
        if (digest, chat) not in self._saved:
            files, ids, key = self._place(digest, n_rows)
            self._saved.add((digest, chat))
            self.writer.give_patiently(Unwritten(key, ids, list(parts), (chat,), files))

    def _place(self, digest: bytes, n_rows: int) -> tuple[BlockFiles, tuple[int, ...], BlockKey]:
        files = BlockFiles(self.root, self.identity, (4 * n_rows * self.width,) * self.n_parts, self.label)
        ids = (image_id(digest, n_rows),)
        return files, ids, files.key(None, ids)
