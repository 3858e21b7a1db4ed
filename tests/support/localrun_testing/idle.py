"""When an app under test has done all that it was asked."""

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partialmethod
from typing import Any
from unittest import mock

from textual.app import App
from textual.pilot import Pilot

from localrun_testing.waiting import PATIENCE
from localrun_tui.keys_in_order import KeysInOrder

_STEP = 0.02  # seconds, as in Textual


class Idle:
    """Knows what `app` has left to do. Textual's own `wait_for_idle` looks at the time that this process computes: an
    app that gets no core, since others have them all, it takes for one that is done."""

    def __init__(self, app: App[Any], loop: Any) -> None:
        self._app = app
        self._loop = loop
        self._jobs: set[asyncio.Future[Any]] = set()  # that threads do for the loop
        self._run = loop.run_in_executor
        loop.run_in_executor = self._run_and_remember

    def _run_and_remember(self, *arguments: Any) -> "asyncio.Future[Any]":
        job: asyncio.Future[Any] = self._run(*arguments)
        self._jobs.add(job)
        job.add_done_callback(self._jobs.discard)
        return job

    async def wait(self, min_sleep: float = 0.0, max_sleep: float = 1.0) -> None:
        """Until nothing is left to be called or painted, not in a moment either; a job that takes longer than
        `max_sleep` seconds waits for the test."""
        give_up = time.monotonic() + max_sleep
        soon = self._loop.time() + max(min_sleep, _STEP)
        n_empty = 0
        while n_empty < 2:  # twice: a timer that is due is called in the second round
            await asyncio.sleep(self._until_due(soon))
            if self._jobs:
                _, endless = await asyncio.wait(self._jobs, timeout=max(give_up - time.monotonic(), 0.0))
                self._jobs -= endless
            is_held = self._keys_are_held() and time.monotonic() < give_up
            n_empty = 0 if self._loop._ready or self._jobs or self._paint() or is_held else n_empty + 1

    def _until_due(self, soon: float) -> float:
        """Seconds to the last timer that is due by then; 0 where there is none."""
        due = [timer.when() for timer in self._loop._scheduled if not timer.cancelled() and timer.when() <= soon]
        seconds: float = max(due, default=0.0) - self._loop.time()
        return max(seconds, 0.0)

    def _keys_are_held(self) -> bool:
        """Whether keys wait for what an earlier one asked for."""
        keys = getattr(self._app, "keys", None)
        return isinstance(keys, KeysInOrder) and keys.is_held

    def _paint(self) -> bool:
        """Paint what waits to be painted; whether there was anything."""
        screen = self._app.screen_stack[-1] if self._app.is_running and self._app.screen_stack else None
        if screen is None or not screen.is_current or self._app._batch_count:
            return False
        waits = screen._layout_required, screen._scroll_required, screen._repaint_required, screen._dirty_widgets
        if not any(waits):
            return False
        screen._on_timer_update()
        return True


@contextmanager
def patient_pilot(app: App[Any]) -> Iterator[None]:
    """Whatever Textual's pilot does to `app`, it waits for all of what that leads to, as long as other tests wait."""
    wait = Idle(app, asyncio.get_running_loop()).wait
    screen = partialmethod(Pilot._wait_for_screen, timeout=PATIENCE)
    with (
        mock.patch("textual.app.wait_for_idle", wait),
        mock.patch("textual.pilot.wait_for_idle", wait),
        mock.patch.object(Pilot, "_wait_for_screen", screen),
    ):
        yield
