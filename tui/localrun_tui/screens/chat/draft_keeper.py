"""The draft in the composer, on disk within a moment after a key."""

from collections.abc import Awaitable, Callable
from typing import Any

from textual.timer import Timer

from localrun_tui.screens.chat.composer import Composer
from localrun_tui.state.draft import keep_draft
from localrun_tui.state.store_thread import StoreThread

SECONDS = 1.0  # after which what is typed is on disk


class DraftKeeper:
    """Whatever ends the app, the draft is kept. `run` runs what touches the disk."""

    def __init__(self, composer: Composer, disk: StoreThread, run: Callable[[Awaitable[Any]], None]) -> None:
        self._composer, self._disk, self._run = composer, disk, run
        self._timer: Timer | None = None  # until it is on disk

    def keep_soon(self) -> None:
        """Have it on disk within a moment."""
        if self._timer is None:
            self._timer = self._composer.set_timer(SECONDS, self._keep)

    def _keep(self) -> None:
        self._timer = None
        self._run(self._disk.run(keep_draft, self._composer.unsent))
