"""Drafts by lookup: an answer that repeats its prompt, itself or an earlier text goes on as that did. No weights; token
ids only.

Saxena, "Prompt lookup decoding" (2023), with the longest match of several: a chain of earlier places leads from every
three tokens to the last ones that were the same.
"""

from array import array
from collections.abc import Sequence

import numpy as np

from localrun.cache.branches import BREAK, other_branches
from localrun.cache.prefix import PrefixTree
from localrun.engine.generation import GenerationState
from localrun.engine.speculation.drafter import DraftedTokens

GRAM = 3  # tokens that have to be the same
LONGEST = 32  # tokens of a match that count
PLACES = 8  # earlier places that are compared
SLOT_BITS = 16  # places of a text begin in 2^16 slots, by hash
MULTIPLIER = 0x9E3779B1  # Knuth's, of the golden ratio
NOWHERE = -1
MOST_EARLIER = 16384  # tokens of other branches
MANY = 32  # tokens of a text that begins, which numpy is faster for


class Lookup:
    """The earlier places of a text that its end is compared with: 8 bytes a token, and 256 KiB."""

    def __init__(self, earlier: Sequence[int] = ()) -> None:
        """`earlier`: tokens of texts that this one may repeat, with a BREAK between two; no draft goes over it."""
        self._ids = array("i", earlier)
        self._newest = array("i", [NOWHERE]) * (1 << SLOT_BITS)  # by slot: where three such tokens ended
        self._before = array("i")  # by place: the one before it in the same slot
        self._n_earlier = len(earlier)

    def draft(self, token_ids: Sequence[int], most: int) -> DraftedTokens:
        """The tokens after the place whose tokens before it are the same for longest, the latest of equal ones."""
        self._ids.extend(token_ids[len(self._ids) - self._n_earlier :])
        self._add()
        ids, end, best, length = self._ids, len(self._ids), NOWHERE, GRAM - 1
        place = self._before[-1] if end >= GRAM else NOWHERE
        newest = ids[max(0, end - LONGEST) : end]
        for _ in range(PLACES):
            if place == NOWHERE:
                break
            if (alike := n_alike(ids[max(0, place - LONGEST) : place], newest)) > length:
                best, length = place, alike
                if alike == LONGEST:
                    break
            place = self._before[place - 1]
        if best == NOWHERE:
            return DraftedTokens()
        period = end - best  # the draft may go on into itself
        return DraftedTokens(tuple([ids[best + n % period] for n in range(most)]), length).until(BREAK)

    def _add(self) -> None:
        """Note the places after the tokens that are new."""
        ids, known, end = self._ids, len(self._before), len(self._ids)
        if not known and end > MANY:
            self._add_many()
            return
        for place in range(known + 1, end + 1):
            if place < GRAM:
                self._before.append(NOWHERE)
                continue
            slot = slot_of(*ids[place - GRAM : place])
            self._before.append(self._newest[slot])
            self._newest[slot] = place

    def _add_many(self) -> None:
        """Likewise for a whole prompt, which takes a millisecond for 16,000 tokens."""
        ids = np.array(self._ids, np.uint64)
        slots = slots_of(ids)
        places = np.arange(GRAM, len(ids) + 1, dtype=np.int32)
        order = np.argsort(slots, kind="stable")
        by_slot, places = slots[order], places[order]
        before = np.full(len(ids), NOWHERE, np.int32)
        same = by_slot[1:] == by_slot[:-1]
        before[places[1:][same] - 1] = places[:-1][same]
        self._before = array("i", before.tobytes())
        newest = np.frombuffer(self._newest, np.int32)
        last = np.append(~same, True) if len(by_slot) else np.zeros(0, bool)
        newest[by_slot[last]] = places[last]


def lookup_in(tree: PrefixTree, sequence: GenerationState) -> Lookup:
    """The lookup of an answer, and of the other branches of its chat that are in memory."""
    chat = sequence.request.chat
    return Lookup(other_branches(tree, sequence.keys, chat, MOST_EARLIER) if chat else ())


def slot_of(a: int, b: int, c: int) -> int:
    """The slot of three tokens."""
    return (((a * MULTIPLIER + b) * MULTIPLIER + c) * MULTIPLIER & 0xFFFFFFFF) >> (32 - SLOT_BITS)


def slots_of(ids: np.ndarray) -> np.ndarray:
    """The slot of every three tokens of ids, u64 [n] -> u16 [n - 2], which sort fastest; sums wrap around, which
    leaves the low bits right."""
    multiplier = np.uint64(MULTIPLIER)
    mixed = ((ids[:-2] * multiplier + ids[1:-1]) * multiplier + ids[2:]) * multiplier
    slots: np.ndarray = (mixed.astype(np.uint32) >> np.uint32(32 - SLOT_BITS)).astype(np.uint16)
    return slots


def n_alike(a: Sequence[int], b: Sequence[int]) -> int:
    """How many tokens at the ends of two texts are the same."""
    if a == b:
        return len(a)
    most = min(len(a), len(b))
    return next((n for n in range(most) if a[-1 - n] != b[-1 - n]), most)
