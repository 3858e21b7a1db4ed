"""Success of drafts, for one answer and for all. No tensors."""

from dataclasses import field

from localrun.base.dataclass import dataclass
from localrun.engine.speculation.drafter import HALF_EVIDENCE, DraftedTokens

PRIOR_WEIGHT = 2.0  # drafts that what is thought before counts as
GUESS_WEIGHT = 8.0  # likewise of what guesses of a program were right by in all answers
AFTER_EDIT, RESUMED = 0, 1 << 13  # keys of lookups whose newest tokens match nothing, or but the newest one
AGREED = 1 << 12  # key of tokens that several places go on with
FORK = 1 << 14  # key of those after which they part, with the least evidence; others count on from it
USUAL_AGREED = 0.8  # of such tokens are taken to be right until there are some
GUESSED = -1  # key of the guesses of a program with the least evidence; others count down from it
USUAL_GUESS = 0.7  # of such guesses are taken to be right until there are some
FADING = 0.9  # of what was seen, with every further draft
DOUBT = 0.95  # likewise of guesses, with every step that none is worth a try in: it may have been bad luck
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
    usual: UsualGuess = field(default_factory=UsualGuess)
    right: dict[int, float] = field(default_factory=dict)  # by kind and weight of evidence, lately
    tried: dict[int, float] = field(default_factory=dict)
    key: int = 0  # of the draft that is being verified
    n_agreed: int = 0  # its first tokens that are counted by themselves

    def verify(self, draft: DraftedTokens) -> list[float]:
        """How likely each token of a draft that is to be verified is right, those before it being so."""
        self.key, self.n_agreed = key_of(draft), draft.agreed
        n, usual = len(draft.tokens), self.likelihood(draft)
        agreed = max(usual, self._share(AGREED, USUAL_AGREED))
        return [agreed] * min(n, draft.agreed) + [usual] * (n - draft.agreed)

    def likelihood(self, draft: DraftedTokens) -> float:
        """The same of tokens that nothing else speaks for."""
        half = 2 * HALF_EVIDENCE if draft.is_fork or draft.after_edit else HALF_EVIDENCE
        return self._share(key_of(draft), draft.evidence / (draft.evidence + half))

    @property
    def guess_likelihood(self) -> float:
        """The same of a guess of a program that is not made yet."""
        right, tried = (sum(n for key, n in one.items() if key <= GUESSED) for one in (self.right, self.tried))
        return (right + GUESS_WEIGHT * self.usual.likelihood) / (tried + GUESS_WEIGHT)

    def doubt(self) -> None:
        """Let what was seen of guesses count less, as it says that none is worth a try."""
        for key in self.tried:
            if key <= GUESSED:
                self.right[key], self.tried[key] = DOUBT * self.right[key], DOUBT * self.tried[key]

    def learn(self, n_drafted: int, n_accepted: int) -> None:
        """Record a verified draft: the tokens after a wrong one say nothing."""
        n_tried = min(n_drafted, n_accepted + 1)
        agreed_tried, agreed_right = min(n_tried, self.n_agreed), min(n_accepted, self.n_agreed)
        if agreed_tried:
            self._count(AGREED, agreed_tried, agreed_right)
        if n_tried > agreed_tried:
            self._count(self.key, n_tried - agreed_tried, n_accepted - agreed_right)
        if self.key <= GUESSED:
            self.usual.learn(n_tried, n_accepted)

    def _count(self, key: int, n_tried: int, n_right: int) -> None:
        self.right[key] = FADING * self.right.get(key, 0.0) + n_right
        self.tried[key] = FADING * self.tried.get(key, 0.0) + n_tried

    def _share(self, key: int, usual: float) -> float:
        """The share of tokens of a kind that were right, lately, with what is usual."""
        return (self.right.get(key, 0.0) + PRIOR_WEIGHT * usual) / (self.tried.get(key, 0.0) + PRIOR_WEIGHT)


def key_of(draft: DraftedTokens) -> int:
    """Key that drafts are counted by: their kind, and the weight of what speaks for them."""
    if draft.after_edit:
        return RESUMED if draft.resumed else AFTER_EDIT
    weight = draft.evidence.bit_length()
    if draft.of_model:
        return GUESSED - weight
    return FORK + weight if draft.is_fork else weight
