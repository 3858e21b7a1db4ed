"""Interference with an answer: other programs, memory that ran out, a container's limit, heat, other answers."""

import sys

import psutil

from localrun.base.cgroup import stopped_seconds
from localrun.base.events import Meanwhile
from localrun.base.processors import throttled_seconds
from localrun.engine.figures import GenerationFigures
from localrun.fit.probe import Clock, others

LEAST_SECONDS = 0.5  # below which the system's clocks, which count in hundredths, say nothing


class InterferenceWatch:
    """Measures from its making on."""

    def __init__(self) -> None:
        self.clock, self.faults = Clock.now(), page_faults()
        self.stopped, self.hot = stopped_seconds(), throttled_seconds()

    def meanwhile(self, figures: GenerationFigures, changed: tuple[int, int] | None) -> Meanwhile:
        """The interference since the start; `changed` is that of PromptIds."""
        now, faults = Clock.now(), page_faults()
        seconds = now.wall - self.clock.wall
        tells = seconds >= LEAST_SECONDS
        n_processors = psutil.cpu_count() or 1
        busy = (now.busy - self.clock.busy) / (seconds * n_processors) if tells else 0.0
        at, turn = changed or (None, 0)
        return Meanwhile(
            changed_at=at,
            changed_turn=turn,
            evicted=figures.evicted,
            ahead=figures.n_ahead,
            beside_tokens=figures.n_beside,
            others_share=min(1.0, others(self.clock, now, n_processors)) if tells else None,
            idle_share=max(0.0, 1.0 - busy) if tells else None,
            page_faults=None if faults is None or self.faults is None else faults - self.faults,
            stopped_ms=1000 * max(0.0, stopped_seconds() - self.stopped),
            hot_ms=1000 * max(0.0, throttled_seconds() - self.hot),
        )


def page_faults() -> int | None:
    """Major page faults of this process so far; None where the system does not count them."""
    if sys.platform == "win32":
        return None
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_majflt
