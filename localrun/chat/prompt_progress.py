"""How far a prompt is read, how fast, and what is left."""

from localrun.base.dataclass import dataclass
from localrun.base.events import Prefill


@dataclass(frozen=True, slots=True)
class PromptProgress:
    """The last word of a reading, and when the first and this one came: seconds of a monotonic clock."""

    last: Prefill
    began: float
    told: float

    @property
    def tps(self) -> float:
        """Tokens a second of what was not cached; 0 before anything was computed."""
        n_computed, seconds = self.last.done - self.last.cached, self.told - self.began
        return n_computed / seconds if n_computed > 0 and seconds > 0 else 0.0

    def seconds_left(self, now: float) -> float | None:
        """Seconds until all is read; None where that cannot be told, or nothing is left."""
        n_left, rate = self.last.total - self.last.done, self.tps
        return max(n_left / rate - (now - self.told), 0.0) if rate and n_left > 0 else None
