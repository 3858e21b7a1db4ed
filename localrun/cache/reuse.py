"""How much of a known prefix a new sequence reuses, and where it starts computing. Ints only."""

from collections.abc import Sequence
from dataclasses import replace

from localrun.cache.groups import Group, block_tokens_of, pool_rules, ring_pools
from localrun.cache.kinds.interface import HeldBlocks, PoolRules, Reuse
from localrun.cache.prefix import Match

WHY_AGAIN = "whole spans of a prompt are read in bulk, its end and answers token by token"


class ReusePlanner:
    """Plan the reuse of a prefix, for the layers of a model as the cache sees them.

    `layer_groups` are the groups of the layers that store something, in layer order.
    """

    def __init__(self, groups: Sequence[Group]) -> None:
        self.groups, self.rules, self.ring_of = tuple(groups), pool_rules(groups), ring_pools(groups)
        self.block_tokens = block_tokens_of(groups)
        layers = sorted((layer, number) for number, group in enumerate(groups) for layer in group.layers)
        self.layer_groups = [number for _, number in layers]

    def plan(self, match: Match, held: HeldBlocks, n_prompt: int) -> Reuse:
        """The best use of a match for a sequence of `n_prompt` tokens, the last of which is always computed.

        `held`: the blocks of the match in the tree.
        """
        known = min(match.n_tokens, n_prompt - 1)
        stored = self.stored(held, known)
        is_evicted = stored < known // self.block_tokens * self.block_tokens
        if is_evicted:
            notes, difference = [f"evicted from memory from token {stored:,} on"], ""
        else:
            note, difference = self.why_not_longer(match, n_prompt)
            notes = [note, "its 16-bit block is gone: cut to whole blocks" if stored < known else ""]
        reuse = self.rebuild(held, stored)
        if reuse.replays:
            notes.append(f"the sliding window had moved on: replayed {stored - reuse.start:,} tokens")
        elif reuse.n_tokens < stored and self.accumulates:
            where = f"at token {reuse.n_tokens:,}" if reuse.n_tokens else "at the beginning"
            notes.append(f"the nearest state of recurrent layers is {where}: computed from there")
        elif reuse.n_tokens < stored:
            notes.append(f"the sliding window had moved on: cut to {reuse.n_tokens:,} tokens")
        return replace(reuse, difference=difference, note=joined(notes), evicted=match.evicted or is_evicted)

    def held(self, match: Match) -> HeldBlocks:
        """The blocks of a match that the tree still has."""
        nodes = [*match.path, *([match.tail] if match.tail else ())]
        ends = [number * self.block_tokens + len(node.ids) for number, node in enumerate(nodes)]
        return HeldBlocks([node.blocks for node in nodes], ends)

    @property
    def accumulates(self) -> bool:
        return any(rules.accumulates for rules in self.rules)

    def stored(self, held: HeldBlocks, n_tokens: int) -> int:
        """Number of leading tokens that the groups can supply which neither a replay nor a state rebuilds."""
        lasting = [g for g, rules in enumerate(self.rules[: len(self.groups)]) if not rules.is_rebuilt]
        rings = [self.ring_of[g] for g in lasting]
        return self.fixpoint(held, n_tokens, [self.rules[pool] for pool in (*lasting, *rings) if pool is not None])

    def rebuild(self, held: HeldBlocks, stored: int) -> Reuse:
        """The best use of `stored` tokens: all, all after a replay of lost windows, or those up to lost windows."""
        everything = self.fixpoint(held, stored, self.rules)
        start = self.replay_start(stored)
        if self.accumulates or everything >= max(start, 0) or not self.sees_all(held, start, stored):
            return Reuse(everything, everything)
        return Reuse(stored, start)

    def fixpoint(self, held: HeldBlocks, n_tokens: int, rules: Sequence[PoolRules]) -> int:
        """The most tokens, at most `n_tokens`, for which all these pools have what a query then reads."""
        while True:
            least = min((one.reusable(held, n_tokens) for one in rules), default=n_tokens)
            if least == n_tokens:
                return n_tokens
            n_tokens = least

    def sees_all(self, held: HeldBlocks, start: int, n_tokens: int) -> bool:
        """Whether tokens start … n_tokens-1, computed again, find everything they read."""
        return all(rules.replays(held, start, n_tokens) for rules in self.rules)

    def replay_start(self, n_tokens: int) -> int:
        """Position to start from so that all windowed layers are exact from token `n_tokens` on.

        From the last layer to the first: a windowed one needs the W - 1 tokens before those that matter above it, a
        full one with a quantised codec reads its own block in 16 bits and needs that from its beginning. The oldest
        block of the rebuilt window is rebuilt whole, so that it can be stored.
        """
        start, size = n_tokens, self.block_tokens
        for number in reversed(self.layer_groups):
            group = self.groups[number]
            if group.replayable and group.window is not None:
                start = min(start - group.window + 1, self.rules[number].reads(n_tokens).start * size)
            elif group.has_ring:
                start = start // size * size
        return start // size * size

    def why_not_longer(self, match: Match, n_prompt: int) -> tuple[str, str]:
        """Why no more tokens were reused, as a note, or as the place where the prompt differs from what was kept."""
        if match.n_tokens >= n_prompt - 1:
            return "", ""
        if match.evicted:
            return f"evicted from memory from token {match.n_tokens:,} on", ""
        if match.otherwise:
            return f"read again from token {match.n_tokens:,} on: {WHY_AGAIN}", ""
        if match.n_tokens == 0:
            return "never seen before", ""
        return "", f"differs at token {match.n_tokens:,} from what was kept" if match.differs else ""


def joined(notes: Sequence[str]) -> str:
    return "; ".join(note for note in notes if note)
