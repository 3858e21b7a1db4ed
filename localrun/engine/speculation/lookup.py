"""Drafts by lookup: an answer that repeats its prompt, itself or an earlier text goes on as that did. No weights; token
ids only.

Saxena, "Prompt lookup decoding" (2023), with the longest match of several: a chain of earlier places leads from every
three tokens to the last ones that were the same. Where a quotation is left for a few tokens, as in an edit, it is
thought to go on beside them.
"""

from array import array
from collections.abc import Sequence

from localrun.cache.branches import BEFORE, BREAK, other_branches
from localrun.cache.node import common_prefix
from localrun.cache.prefix import PrefixTree
from localrun.engine.generation import GenerationState
from localrun.engine.speculation.drafter import DraftedTokens

GRAM = 3  # tokens that have to be the same
LONGEST = 32  # tokens of a match that count
PLACES = 8  # earlier places that are compared
TOKEN_BITS = 18  # of a token in the key of three; tokens of larger vocabularies share keys, which costs a comparison
NOWHERE = -1
QUOTED = 6  # tokens of a match that make a quotation
MOST_CHANGED = 16  # tokens in a row that match nothing, after which it is over
MOST_EARLIER = 16384  # tokens of other branches
MOST_KEPT = 4  # chats
MOST_READ = 256  # tokens that a look notes, which takes a tenth of a millisecond


class Lookup:
    """The earlier places of a text that its end is compared with: some 130 bytes a token.

    It is kept step by step: a text that grows is read on, and one that begins like the one before is read from there.
    """

    def __init__(self, earlier: Sequence[int] = ()) -> None:
        """`earlier`: tokens of texts that this one may repeat, with a BREAK between two; no draft goes over it."""
        self.is_open = True  # an answer is drafted for
        self._ids = array("i", earlier)
        self._text = array("i")  # that is drafted for, as it was when it began
        self._start = len(earlier)  # place of its first token; the first ones may stand in an earlier text instead
        self._forget_places()
        self._end_quotation()

    def begin(self, token_ids: Sequence[int]) -> None:
        """Go on with the text of another answer, and keep the one before as an earlier one where this is no longer."""
        self.is_open, text = True, array("i", token_ids)
        before = self._text + self._ids[self._start + len(self._text) :]
        if text[: len(before)] == before:
            return
        known = common_prefix(before, text)
        first = max(0, known - BEFORE)
        if len(self._ids) - known > MOST_EARLIER:  # the oldest are left out, many at once
            self._ids, first = self._ids[-MOST_EARLIER // 2 :], 0
            self._forget_places()
        self._ids.append(BREAK)
        self._text, self._start = text, len(self._ids) - first
        self._end_quotation()

    def close(self) -> None:
        self.is_open = False

    def read(self, token_ids: Sequence[int], most: int) -> bool:
        """Note `most` tokens at most of what is not noted yet -> whether that was all.

        In Python, and in one piece: between two steps nothing of it is in the caches, so that numpy's code or another
        function takes longer than what it does.
        """
        ids, before, newest = self._ids, self._before, self._newest
        ids.extend(token_ids[len(ids) - self._start :])
        known, end = len(before), min(len(ids), len(before) + most)
        a, b = ids[known - 2] if known > 1 else BREAK, ids[known - 1] if known else BREAK
        for place in range(known + 1, end + 1):
            c = ids[place - 1]
            key = (((a << TOKEN_BITS) + b) << TOKEN_BITS) + c
            before.append(newest.get(key, NOWHERE))
            newest[key] = place
            a, b = b, c
        return end == len(ids)

    def may_draft(self, token_ids: Sequence[int]) -> bool:
        """Whether the last three tokens stood in the text before, or a quotation goes on, once all is noted."""
        if not self.read(token_ids, MOST_READ):
            return False
        return self._before[-1] != NOWHERE or self._resumed(self._beside()) != NOWHERE

    def draft(self, token_ids: Sequence[int], most: int) -> DraftedTokens:
        """The tokens after the place whose tokens before it are the same for longest: of equal ones that where a
        quotation goes on, then the latest. Where there is none, the tokens with which a quotation goes on."""
        if not self.read(token_ids, MOST_READ):
            return DraftedTokens()
        end, beside = len(self._ids), self._beside()
        place, length, others = self._longest(beside)
        if length >= QUOTED:
            self._n_alike, self._quoted_until = length, end
        is_edit = place == NOWHERE
        if is_edit:
            place, length = self._resumed(beside), self._n_alike
        if place == NOWHERE:
            return DraftedTokens()
        self._distance = period = end - place
        tokens = self._ids[place : place + most]
        if period < most:  # the draft goes on into itself
            tokens = (tokens * (1 + most // period))[:most]
        agreed = min([common_prefix(tokens, self._ids[one : one + most]) for one in others], default=0)
        draft = DraftedTokens(
            tuple(tokens),
            length,
            after_edit=is_edit,
            resumed=is_edit and self._ids[place - 1] == self._ids[-1],
            agreed=agreed,
            is_fork=bool(others),
            distance=period,
        )
        return draft.until(BREAK) if BREAK in draft.tokens else draft

    def _longest(self, beside: int) -> tuple[int, int, list[int]]:
        """The place whose tokens before it are the same for longest, how many these are, and other places after three
        such tokens; NOWHERE where there is none."""
        ids, end, best, length = self._ids, len(self._ids), NOWHERE, GRAM - 1
        place, found = self._before[-1] if end >= GRAM else NOWHERE, list[int]()
        newest = ids[max(0, end - LONGEST) : end]
        if beside != NOWHERE and (alike := self._n_before(beside, newest)) > length:
            best, length = beside, alike
        for _ in range(PLACES):
            if place == NOWHERE or length == LONGEST:
                break
            alike = self._n_before(place, newest)
            if alike >= GRAM:
                found.append(place)
            if alike > length:
                best, length = place, alike
            place = self._before[place - 1]
        return best, length, [one for one in found if one != best]

    def _n_before(self, place: int, newest: Sequence[int]) -> int:
        return n_alike(self._ids[max(0, place - LONGEST) : place], newest)

    def _beside(self) -> int:
        """The place beside the end of the text where it quotes one, but for its newest tokens; else NOWHERE."""
        end = len(self._ids)
        return end - self._distance if end - self._quoted_until <= MOST_CHANGED else NOWHERE

    def _resumed(self, beside: int) -> int:
        """The place where a quotation goes on: after the same token as at the end, beside that or next to it; and after
        a single token that differs, beside that. Later than that such guesses are right one time in twenty."""
        if beside == NOWHERE:
            return NOWHERE
        ids, end = self._ids, len(self._ids)
        near = (place for place in (beside, beside + 1, beside - 1) if 0 < place < end and ids[place - 1] == ids[-1])
        return next(near, beside if end - self._quoted_until == 1 else NOWHERE)

    def _end_quotation(self) -> None:
        self._quoted_until = -MOST_CHANGED - 1  # end of the text when a match of many tokens was found last
        self._n_alike = self._distance = 0  # those tokens, and how far from the end the place of the newest draft is

    def _forget_places(self) -> None:
        self._newest: dict[int, int] = {}  # by key: where three such tokens ended
        self._before = array("i")  # by place: the one before it with the same key


class Lookups:
    """The lookups of the chats that were answered last, each of which goes on with the next answer in its chat."""

    def __init__(self, tree: PrefixTree, are_kept: bool = True) -> None:
        """`are_kept`: from one answer to the next."""
        self.tree, self.are_kept = tree, are_kept
        self._kept: dict[str, Lookup] = {}  # by chat, the latest last

    def __call__(self, sequence: GenerationState) -> Lookup:
        """The lookup of an answer; of a chat that is new here, with its other branches that are in memory."""
        chat = sequence.request.chat
        if not chat:
            return Lookup()
        lookup = self._kept.pop(chat, None)
        if lookup is None or lookup.is_open:  # two answers at once have one each
            lookup = Lookup(other_branches(self.tree, sequence.keys, chat, MOST_EARLIER))
        lookup.begin(sequence.token_ids)
        if self.are_kept:
            self._kept[chat] = lookup
        if len(self._kept) > MOST_KEPT:
            del self._kept[next(iter(self._kept))]
        return lookup


def n_alike(a: Sequence[int], b: Sequence[int]) -> int:
    """How many tokens at the ends of two texts are the same."""
    if a == b:
        return len(a)
    n = 0
    for one, other in zip(reversed(a), reversed(b), strict=False):
        if one != other:
            break
        n += 1
    return n
