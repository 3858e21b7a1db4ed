"""Files that the model has read in this chat, each as it was then."""

from pathlib import Path


class FilesRead:
    """Digests by path. A file that is another one now is not to be changed before it is read again."""

    def __init__(self) -> None:
        self._digests: dict[Path, str] = {}

    def note(self, path: Path, digest: str) -> None:
        """It was read, or written, with this content."""
        self._digests[path] = digest

    def known(self, path: Path) -> str | None:
        """The digest it had; None for a file that was not read."""
        return self._digests.get(path)
