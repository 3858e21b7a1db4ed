"""Files of a folder or a glob that are not attached, and why."""

from collections.abc import Sequence
from pathlib import Path

from localrun.base.content import Attachment
from localrun.base.dataclass import dataclass
from localrun.base.errors import UsageError
from localrun.base.sanitize import clean

_NAMED = 5  # are named; of more, how many there are


class UnreadError(UsageError):
    """A file that cannot be attached. `why` completes a sentence after its name; `more` says it in full."""

    def __init__(self, name: str, why: str, hint: str, more: str = "") -> None:
        super().__init__(f"{name} {why}" + (f": {more}" if more else ""), hint)
        self.why = why


class TooLongError(UnreadError):
    """A file at `path`, or `part` of it as it is typed, with more text than a message may have: a smaller part can be
    attached, or it is read in parts."""

    def __init__(self, path: Path, name: str, hint: str, more: str, part: str = "") -> None:
        super().__init__(name, "is too long", hint, more)
        self.path, self.part = path, part


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A file or a folder that is not attached, by its name."""

    name: str
    why: str

    def __str__(self) -> str:
        return f"{clean(self.name, keep_newlines=False)} {self.why}"


@dataclass(frozen=True, slots=True)
class Attached:
    """Files and images attached to a message. `left_out` is a sentence about what is not; empty where all is."""

    files: list[Attachment]
    left_out: str = ""


def left_out_words(left_out: Sequence[LeftOut], n_files: int) -> str:
    """A sentence about those of `n_files` that are not attached."""
    if not left_out:
        return ""
    named = ", ".join(map(str, left_out[:_NAMED]))
    more = f", and {len(left_out) - _NAMED:,} more" if len(left_out) > _NAMED else ""
    return f"{len(left_out):,} of {n_files:,} left out: {named}{more}"
