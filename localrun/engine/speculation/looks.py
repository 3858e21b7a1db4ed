"""Cost of looks for drafts, and whether they pay. No tensors."""

from localrun.engine.speculation.draft_cost import smoothed

FIRST_LOOKS = 0.125  # of a step, that an answer may spend on looks at its start
INTERRUPTED = 8.0  # times the usual look, beyond which other work is to blame; the first after a rest takes up to five


class Looks:
    """Seconds that a look takes lately, and that the lookups of an answer gain."""

    def __init__(self) -> None:
        self.usual: float | None = None
        self.gained = 0.0  # looks included

    def took(self, seconds: float) -> float:
        """Record a look -> what it is charged: what interrupts one would leave an answer without drafts for hundreds of
        steps."""
        if self.usual is not None:
            seconds = min(seconds, INTERRUPTED * self.usual)
        self.usual = smoothed(self.usual, seconds)
        return seconds

    def first(self, step: float) -> float:
        """Seconds that an answer whose steps take so long may spend at its start. Less than none where a look takes
        more, unless that paid in the answers before: then the first one waits until it can be afforded."""
        allowed = FIRST_LOOKS * step
        is_dear = self.usual is not None and self.usual > allowed and self.gained <= 0
        return allowed - (self.usual or 0.0) if is_dear else allowed

    def ended(self, gained: float) -> None:
        """Record what the lookups of an answer gained."""
        self.gained = smoothed(self.gained, gained)
