"""Cost of looks for drafts, and whether they pay. No tensors."""

from localrun.engine.speculation.draft_cost import smoothed

USUAL = 5e-5  # seconds, that a look is thought to take until some are measured
COLD = 4  # looks of an engine that run code for the first time, which takes milliseconds: they tell no cost
FIRST_LOOKS = 0.125  # of a step, that an answer may spend on looks at its start
INTERRUPTED = 3.0  # times the usual look, beyond which other work is to blame, as a thread that has the interpreter
DOUBT = 0.9  # of a cost that keeps an answer from looking: it may have been measured beside other work


class Looks:
    """Seconds that a look takes lately, and that the lookups of an answer gain."""

    def __init__(self) -> None:
        self.usual, self.n_cold = USUAL, COLD
        self.gained = 0.0  # looks included

    def took(self, seconds: float) -> float:
        """Record a look -> what it is charged: what interrupts one would leave an answer without drafts for hundreds of
        steps."""
        if self.n_cold:
            self.n_cold -= 1
            return min(seconds, self.usual)
        seconds = min(seconds, INTERRUPTED * self.usual)
        self.usual = smoothed(self.usual, seconds)
        return seconds

    def first(self, step: float) -> float:
        """Seconds that an answer whose steps take so long may spend at its start. Less than none where a look takes
        more, unless that paid in the answers before: then the first one waits until it can be afforded."""
        allowed = FIRST_LOOKS * step
        if self.usual <= allowed or self.gained > 0:
            return allowed
        self.usual *= DOUBT
        return allowed - self.usual

    def ended(self, gained: float) -> None:
        """Record what the lookups of an answer gained."""
        self.gained = smoothed(self.gained, gained)
