"""The thread that verifies packed weights on disk while the engine is idle."""

import threading
from collections.abc import Callable
from contextlib import suppress

from localrun.base.processors import let_others_go_first
from localrun.storage.mapped_files import MappedFiles

CLOSE_SECONDS = 1.0  # for what was found to be noted


class IdleCheck:
    """Verify packed weights while `resting` is set: a request waits for one piece at most.

    `on_damage` is called when damage was found; the problem of `files` describes it.
    """

    def __init__(self, files: MappedFiles, resting: threading.Event, on_damage: Callable[[], None]) -> None:
        self.files, self.resting, self.on_damage = files, resting, on_damage
        self._stopped = threading.Event()
        self.thread = threading.Thread(target=self._check, name="localrun-check", daemon=True)

    def start(self) -> None:
        """Start, for weights that memory holds, so that the disk is otherwise idle."""
        self.thread.start()

    def close(self) -> None:
        """Stop; the next start verifies the rest. The engine has ended."""
        self._stopped.set()
        self.resting.set()
        if self.thread.is_alive() and threading.current_thread() is not self.thread:
            self.thread.join(CLOSE_SECONDS)

    def _check(self) -> None:
        let_others_go_first()
        with suppress(_Stopped):
            self._wait()
            if self.files.verify(self._wait) is not None:
                self.on_damage()

    def _wait(self) -> None:
        """Wait until the engine rests."""
        self.resting.wait()
        if self._stopped.is_set():
            raise _Stopped


class _Stopped(Exception):
    pass
