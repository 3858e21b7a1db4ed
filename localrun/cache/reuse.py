"""How much of a known prefix a new sequence can take over, and where it has to start computing. Ints only."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from localrun.cache.blocks import NO_BLOCK
from localrun.cache.groups import BLOCK_TOKENS, Group, ring_pools
from localrun.cache.prefix import Match

Held = Sequence[int]  # what holds the tokens of one logical block: a block of every pool, NO_BLOCK where there is none


@dataclass(frozen=True, slots=True)
class Reuse:
    """The first `n_tokens` tokens are known; computing starts at `start`.

    When `start` is less, the tokens between are replayed: they rebuild what windowed layers lost, and write nothing
    that is stored already. `note` says what was in the way of reusing more, in words for the user.
    """

    n_tokens: int
    start: int
    note: str = ""

    @property
    def replays(self) -> bool:
        return self.start < self.n_tokens


class ReusePlanner:
    """Knows the layers of a model as the cache sees them: `layer_groups[i]` is the group of layer i."""

    def __init__(self, groups: Sequence[Group]) -> None:
        self.groups, self.ring_of = tuple(groups), ring_pools(groups)
        layers = sorted((layer, number) for number, group in enumerate(groups) for layer in group.layers)
        self.layer_groups = [number for _, number in layers]

    def plan(self, match: Match, n_prompt: int) -> Reuse:
        """The best use of a match for a sequence of `n_prompt` tokens, the last of which is always computed."""
        known = min(match.n_tokens, n_prompt - 1)
        held = [node.blocks for node in (*match.path, *([match.tail] if match.tail else ()))]
        notes = [self.why_not_longer(match, n_prompt)]
        stored = self.stored(held, known)
        if stored < known // BLOCK_TOKENS * BLOCK_TOKENS:
            notes = [f"evicted from memory from token {stored:,} on"]
        elif stored < known:
            notes.append("its 16-bit block is gone: cut to whole blocks")
        reuse = self.rebuild(held, stored)
        if reuse.replays:
            notes.append(f"the sliding window had moved on: replayed {stored - reuse.start:,} tokens")
        elif reuse.n_tokens < stored:
            notes.append(f"the sliding window had moved on: cut to {reuse.n_tokens:,} tokens")
        return replace(reuse, note=joined(notes))

    def stored(self, held: Sequence[Held], n_tokens: int) -> int:
        """How many of the first `n_tokens` tokens the groups that are not replayed can give."""
        return self.fixpoint(held, n_tokens, [g for g in range(len(self.groups)) if not self.groups[g].replayable])

    def rebuild(self, held: Sequence[Held], stored: int) -> Reuse:
        """The best use of `stored` tokens: all, all after a replay of lost windows, or those up to lost windows."""
        everything = self.fixpoint(held, stored, range(len(self.groups)))
        start = self.replay_start(stored)
        if everything >= max(start, 0) or not self.sees_all(held, start, stored):
            return Reuse(everything, everything)
        return Reuse(stored, start)

    def fixpoint(self, held: Sequence[Held], n_tokens: int, groups: Sequence[int]) -> int:
        """The most tokens, at most `n_tokens`, for which every one of these groups has all that a query then reads."""
        while True:
            least = min((self.reusable(g, held, n_tokens) for g in groups), default=n_tokens)
            if least == n_tokens:
                return n_tokens
            n_tokens = least

    def reusable(self, number: int, held: Sequence[Held], n_tokens: int) -> int:
        """How many of the first `n_tokens` tokens of these blocks one group can give a new sequence."""
        group, ring = self.groups[number], self.ring_of[number]
        if n_tokens == 0 or (group.sinks and held[0][number] == NO_BLOCK):
            return 0
        reads_block_0 = group.sinks or group.first_block(n_tokens) == 0
        if ring is not None and reads_block_0 and held[0][ring] == NO_BLOCK:
            return 0
        if ring is not None and n_tokens % BLOCK_TOKENS and held[n_tokens // BLOCK_TOKENS][ring] == NO_BLOCK:
            n_tokens -= n_tokens % BLOCK_TOKENS
        block = (n_tokens - 1) // BLOCK_TOKENS
        while block >= group.first_block(n_tokens):
            if held[block][number] == NO_BLOCK:
                n_tokens = block * BLOCK_TOKENS
            block -= 1
        return n_tokens

    def sees_all(self, held: Sequence[Held], start: int, n_tokens: int) -> bool:
        """Whether tokens start … n_tokens-1, computed again, find what they read: in groups that are not replayed, and
        of block 0 in 16 bits."""
        return all(
            held[0][ring] != NO_BLOCK
            for group, ring in zip(self.groups, self.ring_of, strict=True)
            if ring is not None and group.first_block(start) == 0 < start
        ) and all(
            held[block][number] != NO_BLOCK
            for number, group in enumerate(self.groups)
            if not group.replayable
            for block in range(group.first_block(start), group.first_block(n_tokens))
        )

    def replay_start(self, n_tokens: int) -> int:
        """Where to start so that all windowed layers are exact from token `n_tokens` on.

        From the last layer to the first: a windowed one needs the W - 1 tokens before those that matter above it, a
        full one with a quantised codec reads its own block in 16 bits and needs that from its beginning. So that the
        rebuilt window can be kept, its oldest block is rebuilt whole.
        """
        start = n_tokens
        for number in reversed(self.layer_groups):
            group = self.groups[number]
            if group.replayable and group.window is not None:
                start = min(start - group.window + 1, group.first_block(n_tokens) * BLOCK_TOKENS)
            elif not group.codec.native:
                start = start // BLOCK_TOKENS * BLOCK_TOKENS
        return start // BLOCK_TOKENS * BLOCK_TOKENS

    def why_not_longer(self, match: Match, n_prompt: int) -> str:
        """What a reader of `--stats` wants to know when tokens that might have been known are not."""
        if match.n_tokens >= n_prompt - 1:
            return ""
        if match.evicted:
            return f"evicted from memory from token {match.n_tokens:,} on"
        if match.n_tokens == 0:
            return "never seen before"
        if match.differs:
            return f"differs at token {match.n_tokens:,} from what was kept"
        return ""


def joined(notes: Sequence[str]) -> str:
    return "; ".join(note for note in notes if note)
