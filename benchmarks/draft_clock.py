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
    """What engines of this process spend; itself it takes a microsecond a step, which drafts are charged with."""

    def __init__(self) -> None:
        self._seconds = {"drafting": 0.0, "lookup": 0.0, "rejected": 0.0}

    def start(self) -> None:
        """Take the time of every engine of this process from now on."""
        for name in ("propose", "observe", "settle", "follow"):
            setattr(Speculation, name, self._timed(getattr(Speculation, name), "drafting"))
        for name in ("may_draft", "draft"):
            setattr(Lookup, name, self._timed(getattr(Lookup, name), "lookup"))
        settle, seconds = Depths.settle, self._seconds

        def counted(depths: Depths, work: StepWork, n_accepted: int) -> float:
            n_rejected = len(work.drafts) - n_accepted
            seconds["rejected"] += (depths.seconds - depths.plain_seconds) * n_rejected / depths.n_drafted
            return settle(depths, work, n_accepted)

        setattr(Depths, "settle", counted)  # noqa: B010

    def take(self) -> Spent:
        """What was spent since the last call."""
        spent = Spent(**self._seconds)
        self._seconds.update(dict.fromkeys(self._seconds, 0.0))
        return spent

    def _timed(self, call: Callable[..., Any], name: str) -> Callable[..., Any]:
        seconds = self._seconds

        def timed(*arguments: Any) -> Any:
            start = perf_counter()
            found = call(*arguments)
            seconds[name] += perf_counter() - start
            return found

        return timed
