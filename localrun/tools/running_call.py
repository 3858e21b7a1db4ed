"""A running call of a tool, and its result."""

import threading
import time
from collections.abc import Sequence
from pathlib import Path

from localrun.base.dataclass import dataclass
from localrun.base.errors import LocalrunError
from localrun.base.sanitize import clean

SECONDS = 60.0  # that a call may take, unless its tool says otherwise
LIMIT = 48_000  # characters of a result, about 16k tokens


class ToolError(LocalrunError):
    """A call that failed: the model is told, and may continue."""

    kind = "tool"


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The text that a model gets for a call: plain data, limited and without control characters.

    `bytes` are those of the whole result, of which `cut` are left out of `text`.
    """

    text: str
    is_error: bool = False
    bytes: int = 0
    cut: int = 0
    seconds: float = 0.0


class RunningCall:
    """One running call: its permissions, and whether to stop.

    `folders` are those that a person has allowed it to read, `shown` the accepted preview. A tool that works for longer
    than a moment calls `check` or `wait` now and then.
    """

    def __init__(
        self, seconds: float = SECONDS, limit: int = LIMIT, folders: Sequence[Path] = (), shown: str = ""
    ) -> None:
        self.folders = tuple(folders)
        self.shown = shown
        self.limit = limit  # characters of the result
        self._ends = time.monotonic() + seconds
        self._seconds = seconds
        self._stopped = threading.Event()

    @property
    def seconds_left(self) -> float:
        """Seconds until its time is up; never less than 0."""
        return max(0.0, self._ends - time.monotonic())

    @property
    def is_cancelled(self) -> bool:
        """Whether a person stopped the call."""
        return self._stopped.is_set()

    def cancel(self) -> None:
        """Stop the call; from any thread, or a signal handler."""
        self._stopped.set()

    def wait(self, seconds: float) -> bool:
        """Wait for `seconds`, or until cancelled; returns whether it is."""
        return self._stopped.wait(min(seconds, self.seconds_left))

    def check(self) -> None:
        """Raise ToolError once it is cancelled, or its time is up."""
        if not self.seconds_left:
            raise ToolError(f"the call took longer than {self._seconds:g} seconds and was ended")
        if self.is_cancelled:
            raise ToolError("the call was stopped by the user")

    def error(self, error: ToolError) -> ToolResult:
        """The result of a failed call, in words for the model."""
        return self.result(f"{error.message}: {error.hint}" if error.hint else error.message, is_error=True)

    def result(self, text: str, is_error: bool = False, more_bytes: int = 0) -> ToolResult:
        """A result with this text, cut to the limit with a note; `more_bytes` were left out before."""
        size = len(text.encode("utf-8", "replace")) + more_bytes
        kept = clean(text[: self.limit])[: self.limit]
        cut = more_bytes + len(text[self.limit :].encode("utf-8", "replace"))
        if cut:
            kept += f"\n[{cut:,} of {size:,} bytes were left out here]"
        return ToolResult(kept, is_error, size, cut)
