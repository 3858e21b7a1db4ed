"""Figures of the drafts of an answer."""

from localrun.base.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class DraftFigures:
    """Tokens of an answer that were guessed, to be verified several in a step."""

    drafted_tokens: int = 0
    accepted_tokens: int = 0  # of these, the right ones: each saved a step
    draft_searches: int = 0  # times that such tokens were looked for
    draft_gain: float | None = None  # times as fast as without, estimated from what steps took; None: nothing drafted
    drafts_off: str = ""  # why none are guessed by this model
