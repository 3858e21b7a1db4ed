"""Files that the model has read in this chat, with their contents' digests."""

from pathlib import Path


class FilesRead:
    """Digests by path. A file that has changed must be read again before it is edited."""

    def __init__(self) -> None:
        self._digests: dict[Path, str] = {}

    def note(self, path: Path, digest: str) -> None:
        """Note that a file was read, or written, with this content."""
        self._digests[path] = digest

    def known(self, path: Path) -> str | None:
        """The digest of a file when it was read; None for one that was not."""
        return self._digests.get(path)
