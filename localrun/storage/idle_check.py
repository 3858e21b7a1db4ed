"""The thread that reads packed weights back from the disk, while the engine is idle and its core is free."""

import threading
from collections.abc import Callable
from contextlib import suppress

from localrun.base.processors import let_others_go_first
from localrun.storage.mapped_files import MappedFiles

CLOSE_SECONDS = 1.0  # for what was found to be noted


class IdleCheck:
    """`resting` is set while the engine has nothing to do: a request waits for one piece at most. `on_damage` is told
    when something was found; the problem of `files` says what."""

    def __init__(self, files: MappedFiles, resting: threading.Event, on_damage: Callable[[], None]) -> None:
        self.files, self.resting, self.on_damage = files, resting, on_damage
        self._stopped = threading.Event()
        self.thread = threading.Thread(target=self._check, name="localrun-check", daemon=True)

    def start(self) -> None:
        """Begin: for weights that memory holds, and for which the disk is not needed otherwise."""
        self.thread.start()

    def close(self) -> None:
        """Leave what is left to the next start. The engine has ended."""
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
        """Until the engine rests."""
        self.resting.wait()
        if self._stopped.is_set():
            raise _Stopped


class _Stopped(Exception):
    pass
