"""One download as the user sees it."""

from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Literal

from localrun.base.dataclass import dataclass
from localrun.base.errors import LocalrunError
from localrun.base.request import KVCodecName
from localrun.client.choice import ModelChoice
from localrun.formats.gguf_names import is_gguf
from localrun.hub.catalogue import shown_name
from localrun.hub.names import parse_file_name

if TYPE_CHECKING:
    from localrun.hub.disk.stored import StoredModel

ShownState = Literal["queued", "running", "paused", "done", "failed", "cancelled", "unfinished", "starting"]


@dataclass(frozen=True, slots=True)
class Download:
    """Bytes and bytes a second; `stored` is the model once it is there. `unfinished`: left behind by an earlier run.

    `silent_seconds`: since the last byte, where none comes.
    """

    key: str
    name: str
    repo: str
    precision: str
    state: ShownState
    done: int
    total: int
    rate: float = 0.0
    silent_seconds: float = 0.0
    error: LocalrunError | None = None
    note: str = ""
    stored: "StoredModel | None" = None
    ctx: int | None = None
    kv: KVCodecName = "auto"
    file: str = ""  # one of its files
    then_load: bool = False  # once it is there, unless another model is in use then

    @property
    def active(self) -> bool:
        return self.state in ("queued", "running", "starting")

    @property
    def short_name(self) -> str:
        """Name in the catalogue, else the name without the owner of the repository."""
        return shown_name(self.name)

    @property
    def share(self) -> float:
        return self.done / self.total if self.total else 0.0

    @property
    def seconds_left(self) -> float | None:
        return (self.total - self.done) / self.rate if self.rate > 0 else None

    @property
    def silence(self) -> str:
        """Words for a time without a byte; empty while some come."""
        return f"no bytes for {self.silent_seconds:.0f} s" if self.state == "running" and self.silent_seconds else ""

    @property
    def choice(self) -> ModelChoice | None:
        """The model to load once it is there."""
        return ModelChoice(self.stored, self.stored.precision, self.ctx, self.kv) if self.stored else None


def download_key(repo: str, file: str) -> str:
    """One for all files of a precision."""
    path = PurePosixPath(file)
    if not is_gguf(path.name):
        return f"{repo} safetensors"
    parts = parse_file_name(path.name)
    return f"{repo} {path.parent / parts.model} {parts.precision}"
