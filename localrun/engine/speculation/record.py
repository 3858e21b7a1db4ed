"""Success of drafts, for one answer and for all. No tensors."""

from dataclasses import field

from localrun.base.dataclass import dataclass
from localrun.engine.speculation.drafter import HALF_EVIDENCE, DraftedTokens

PRIOR_WEIGHT = 2.0  # drafts that what is thought before counts as
AFTER_EDIT = 0  # key of lookups whose newest tokens match nothing
GUESSED = -1  # key of the guesses of a program with the least evidence; others count down from it
USUAL_GUESS = 0.7  # of such guesses are taken to be right until there are some
FADING = 0.9  # of what was seen, with every further draft
LASTING = 0.98  # likewise of what was seen in all answers


@dataclass(eq=False, slots=True)
class UsualGuess:
    """Success of a program's guesses in all answers, lately: an answer that begins expects the same."""

    right: float = 0.0
    tried: float = 0.0

    @property
    def likelihood(self) -> float:
        return (self.right + PRIOR_WEIGHT * USUAL_GUESS) / (self.tried + PRIOR_WEIGHT)

    def learn(self, n_tried: int, n_right: int) -> None:
        """Record a verified draft."""
        self.right, self.tried = LASTING * self.right + n_right, LASTING * self.tried + n_tried

    def fade(self) -> None:
        """Count what was seen a little less: answers in which nothing is tried are tried again some day."""
        self.learn(0, 0)


@dataclass(eq=False, slots=True)
class Record:
    """Success of the drafts for one answer, and the seconds that further ones may lose."""

    purse: float
    looking: float  # seconds that may be spent on finding some
    usual: UsualGuess = field(default_factory=UsualGuess)
    right: dict[int, float] = field(default_factory=dict)  # by kind and weight of evidence, lately
    tried: dict[int, float] = field(default_factory=dict)
    key: int = 0  # of the draft that is being verified

    def likelihood(self, draft: DraftedTokens) -> float:
        """How likely a token of a draft is right, those before it being so."""
        key, prior = key_of(draft), draft.evidence / (draft.evidence + HALF_EVIDENCE)
        return (self.right.get(key, 0.0) + PRIOR_WEIGHT * prior) / (self.tried.get(key, 0.0) + PRIOR_WEIGHT)

    @property
    def guess_likelihood(self) -> float:
        """The same of a guess of a program that is not made yet."""
        right, tried = (sum(n for key, n in one.items() if key <= GUESSED) for one in (self.right, self.tried))
        return (right + PRIOR_WEIGHT * self.usual.likelihood) / (tried + PRIOR_WEIGHT)

    def learn(self, n_drafted: int, n_accepted: int) -> None:
        """Record a verified draft: the tokens after a wrong one say nothing."""
        key = self.key
        n_tried = min(n_drafted, n_accepted + 1)
        self.right[key] = FADING * self.right.get(key, 0.0) + n_accepted
        self.tried[key] = FADING * self.tried.get(key, 0.0) + n_tried
        if key <= GUESSED:
            self.usual.learn(n_tried, n_accepted)


def key_of(draft: DraftedTokens) -> int:
    """Key that drafts are counted by: their kind, and the weight of what speaks for them."""
    if draft.after_edit:
        return AFTER_EDIT
    weight = draft.evidence.bit_length()
    return GUESSED - weight if draft.of_model else weight
