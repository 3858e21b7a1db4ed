"""Clock of drafts: the seconds of engines in this process that go into drafting, and into rejected rows."""

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from localrun.engine.speculation.depth import Depths
from localrun.engine.speculation.speculation import Speculation
from localrun.engine.step_plan import StepWork


@dataclass
class DraftClock:
    """Seconds since the start or `reset`: of drafting, and of rejected rows."""

    drafting: float = 0.0
    rejected: float = 0.0

    def start(self) -> None:
        """Take the time of every engine of this process from now on."""
        for name in ("propose", "observe", "settle", "follow"):
            setattr(Speculation, name, self._timed(getattr(Speculation, name)))
        settle = Depths.settle

        def counted(depths: Depths, work: StepWork, n_accepted: int) -> float:
            n_rejected = len(work.drafts) - n_accepted
            self.rejected += (depths.seconds - depths.plain_seconds) * n_rejected / depths.n_drafted
            return settle(depths, work, n_accepted)

        setattr(Depths, "settle", counted)  # noqa: B010

    def reset(self) -> None:
        self.drafting = self.rejected = 0.0

    def shares(self, seconds: float) -> str:
        """Words for the shares of so many seconds of decoding."""
        return f"drafting {self.drafting / seconds:.2%}, rejected rows {self.rejected / seconds:.2%} of decoding"

    def _timed(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*arguments: Any) -> Any:
            start = perf_counter()
            try:
                return call(*arguments)
            finally:
                self.drafting += perf_counter() - start

        return timed
