"""A topic being measured on a thread: progress, result, cancellation."""

import time
from collections.abc import Callable

from textual.message_pump import MessagePump

from localrun.base.errors import EngineError, LocalrunError
from localrun.diagnose.explain.topic_report import TopicReport
from localrun.diagnose.explain.words import WORDS
from localrun_tui.state.background import Task, run_in_background

MeasureTopic = Callable[[str, Callable[[int], None]], TopicReport]


class Measurement:
    """A running measurement: calls `done` or `failed` on the UI's thread, neither once it is cancelled."""

    def __init__(
        self,
        owner: MessagePump,
        explain: MeasureTopic,
        topic: str,
        done: Callable[[TopicReport], None],
        failed: Callable[[LocalrunError], None],
    ) -> None:
        self._topic, self._began, self._steps = topic, time.monotonic(), 0
        self._task = run_in_background(owner, lambda task: explain(topic, lambda n: self._watch(task, n)), done, failed)

    @property
    def words(self) -> str:
        steps = f"{self._steps:,} steps, " if self._steps else ""
        seconds = time.monotonic() - self._began
        return f"Measuring {WORDS[self._topic].name} here: {steps}{seconds:.0f} s · Esc cancels"

    def cancel(self) -> None:
        self._task.cancel()

    def _watch(self, task: Task, steps: int) -> None:
        self._steps = steps
        if task.cancelled:
            raise EngineError("the measurement was cancelled")
