"""Detect a process that is silent and does not work any more."""

from localrun.client.worker import process_stats

STOPPED_SECONDS = 2.0  # of silence, for a stopped process
STUCK_SECONDS = 30.0  # of silence, for one that does not compute either


class Watchdog:
    """Counts silence in our own waits, not by the clock, so that time in which we were suspended does not count."""

    def __init__(self, pid: int | None, n_heard: int) -> None:
        self._pid = pid
        self._n_heard = n_heard
        self._silent = 0.0  # seconds
        self._was_stopped = False  # when we last looked
        self._computed: float | None = None  # seconds of CPU when we last looked

    def waited(self, seconds: float, n_heard: int) -> str:
        """Note a wait, with the number of messages so far; gives the reason to end the process, or nothing."""
        if self._computed is None:  # not before there is silence: asking the system takes longer than most answers
            self._computed = process_stats.cpu_seconds(self._pid)
        self._silent += seconds
        if n_heard != self._n_heard:
            self._silent, self._n_heard = 0.0, n_heard
        elif self._silent >= STOPPED_SECONDS and process_stats.is_stopped(self._pid):
            if self._was_stopped:  # else it may go on as we do, where both were stopped
                return "the engine's process was stopped, and did not go on"
            self._was_stopped = True
            return ""
        elif self._silent >= STUCK_SECONDS:
            self._silent, before = 0.0, self._computed
            self._computed = process_stats.cpu_seconds(self._pid)
            if self._computed == before:
                return f"the engine did nothing for {STUCK_SECONDS:.0f} seconds, and was ended"
        self._was_stopped = False
        return ""
