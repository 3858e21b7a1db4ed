"""A repository of the hub and its files."""

from localrun.base.dataclass import dataclass
from localrun.base.errors import NotFoundError
from localrun.base.sanitize import clean


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """A file of a repository. `etag` is the sha256 of a large file, and the git blob id of a small one."""

    path: str
    size: int
    etag: str


@dataclass(frozen=True, slots=True)
class RemoteRepo:
    """A repository at one commit. Files whose names are unsafe on a disk are left out."""

    name: str
    commit: str
    gated: bool
    licence: str
    files: tuple[RemoteFile, ...]

    def file(self, path: str) -> RemoteFile:
        """The file at `path`; NotFoundError where there is none."""
        found = next((file for file in self.files if file.path == path), None)
        if found is None:
            shown = clean(path, keep_newlines=False)
            raise NotFoundError(f"{self.name} has no file {shown}", f"`localrun show {self.name}` lists them")
        return found
