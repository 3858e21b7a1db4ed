"""Layer groups: layers whose blocks are allocated, shared and freed together. Ints only, no tensors."""

from collections.abc import Sequence
from math import lcm

from localrun.base.dataclass import dataclass
from localrun.cache.kinds.interface import CacheKind, PoolRules
from localrun.cache.kinds.shared import Shared
from localrun.ops.kv import BLOCK_TOKENS, KV_CODECS, KVCodec


@dataclass(frozen=True, slots=True)
class Group:
    """Layers that store the same kind of cache in the same codec.

    A block holds `block_tokens` tokens of all of them.
    """

    layers: tuple[int, ...]
    kind: CacheKind
    codec: KVCodec = KV_CODECS["f16"]
    block_tokens: int = BLOCK_TOKENS
    device: str = ""  # that has the blocks, where the layers of a model are shared out among several

    @property
    def window(self) -> int | None:
        """Tokens that a query sees, itself included; None: all."""
        return self.kind.window

    @property
    def sink(self) -> bool:
        """Whether block 0 is seen in addition to the window."""
        return self.kind.sink

    @property
    def replayable(self) -> bool:
        """Whether lost blocks can be computed again from a bounded number of tokens: the window is the model's own."""
        return self.window is not None and not self.sink

    @property
    def has_ring(self) -> bool:
        """Whether the last blocks also exist in a second form: 16-bit beside codes, tokens beside entries."""
        return has_ring(self.kind, self.codec)


def has_ring(kind: CacheKind, codec: KVCodec) -> bool:
    """Whether the end of a sequence is stored in a second form, from which it can continue."""
    return not codec.native or kind.entry_tokens > 1


def make_groups(
    kinds: Sequence[CacheKind], codecs: Sequence[KVCodec], devices: Sequence[str] | None = None
) -> tuple[Group, ...]:
    """Group layers by kind, codec and device, in order of first appearance.

    Layers that store nothing are in no group. `devices`: of every layer, where there are several.
    """
    members: dict[tuple[CacheKind, KVCodec, str], list[int]] = {}
    for layer, key in enumerate(zip(kinds, codecs, devices or [""] * len(kinds), strict=True)):
        if not isinstance(key[0], Shared):
            members.setdefault(key, []).append(layer)
    block_tokens = lcm(BLOCK_TOKENS, *(kind.entry_tokens for kind in kinds))
    return tuple(
        Group(tuple(layers), kind, codec, block_tokens, device) for (kind, codec, device), layers in members.items()
    )


def block_tokens_of(groups: Sequence[Group]) -> int:
    """Tokens per block: the same in all groups of a model, which share a prefix tree."""
    (block_tokens,) = {group.block_tokens for group in groups}
    return block_tokens


def ring_pools(groups: Sequence[Group]) -> list[int | None]:
    """Number of each group's pool of 16-bit blocks, counted after all others; None where it has none."""
    numbers = iter(range(len(groups), 2 * len(groups)))
    return [next(numbers) if group.has_ring else None for group in groups]


def pool_rules(groups: Sequence[Group]) -> tuple[PoolRules, ...]:
    """Rules of every pool: one per group, then those of 16-bit blocks."""
    rules = [
        rule
        for number, (group, ring) in enumerate(zip(groups, ring_pools(groups), strict=True))
        for rule in group.kind.rules(group.block_tokens, number, ring)
    ]
    return tuple(sorted(rules, key=lambda rule: rule.pool))
