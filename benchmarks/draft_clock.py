"""Clock of drafts: the seconds of engines in this process that go into drafting, and into rejected rows."""

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from localrun.engine.speculation.depth import Depths
from localrun.engine.speculation.lookup import Lookup
from localrun.engine.speculation.speculation import Speculation
from localrun.engine.step_plan import StepWork


@dataclass(frozen=True)
class Spent:
    """Seconds of drafting, of the lookup in it, and of rejected rows."""

    drafting: float = 0.0
    lookup: float = 0.0
    rejected: float = 0.0

    def __add__(self, other: "Spent") -> "Spent":
        return Spent(self.drafting + other.drafting, self.lookup + other.lookup, self.rejected + other.rejected)

    def shares(self, seconds: float) -> str:
        """Words for the shares of so many seconds of decoding."""
        return f"drafting {self.drafting / seconds:.2%}, rejected rows {self.rejected / seconds:.2%} of decoding"


class DraftClock:
    """What engines of this process spend."""

    def __init__(self) -> None:
        self._spent = Spent()

    def start(self) -> None:
        """Take the time of every engine of this process from now on."""
        for name in ("propose", "observe", "settle", "follow"):
            setattr(Speculation, name, self._timed(getattr(Speculation, name), lambda seconds: Spent(drafting=seconds)))
        for name in ("may_draft", "draft"):
            setattr(Lookup, name, self._timed(getattr(Lookup, name), lambda seconds: Spent(lookup=seconds)))
        settle = Depths.settle

        def counted(depths: Depths, work: StepWork, n_accepted: int) -> float:
            n_rejected = len(work.drafts) - n_accepted
            rejected = (depths.seconds - depths.plain_seconds) * n_rejected / depths.n_drafted
            self._spent += Spent(rejected=rejected)
            return settle(depths, work, n_accepted)

        setattr(Depths, "settle", counted)  # noqa: B010

    def take(self) -> Spent:
        """What was spent since the last call."""
        spent, self._spent = self._spent, Spent()
        return spent

    def _timed(self, call: Callable[..., Any], spent: Callable[[float], Spent]) -> Callable[..., Any]:
        def timed(*arguments: Any) -> Any:
            start = perf_counter()
            try:
                return call(*arguments)
            finally:
                self._spent += spent(perf_counter() - start)

        return timed
