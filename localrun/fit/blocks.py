"""Number and bytes of the blocks of each layer group for a context. Torch-free."""

from collections import Counter
from dataclasses import replace
from functools import cache, partial

from localrun.backends.decode_cost import DecodeCost
from localrun.backends.interface import Backend
from localrun.base.dataclass import dataclass
from localrun.cache.groups import has_ring
from localrun.cache.kinds.interface import CacheKind
from localrun.fit.bytes import layer_codecs
from localrun.model.config import ModelConfig, group_layers
from localrun.model.recording import record_context, record_shapes
from localrun.model.shapes import Ranks
from localrun.ops.kv import BLOCK_TOKENS, KV_CODECS, KVCodec
from localrun.ops.largest_step import MAX_ROWS, max_sequences

CHUNK_BLOCKS = MAX_ROWS // BLOCK_TOKENS
RING_BLOCKS = CHUNK_BLOCKS + 4  # 16-bit: a chunk, the two blocks before it, block 0, and one at the end of a prompt
RING_MORE = 3  # for every further sequence: two and its block 0


@dataclass(frozen=True, slots=True)
class GroupBlocks:
    """Blocks of one layer group: number and bytes of those for coded tokens and of those for the 16-bit ring.

    `per_chat`: coded blocks that a chat which fills the context leaves behind. With `is_whole` these are all of the
    chat: when another chat takes them, its blocks in other groups go too.
    """

    count: int
    per_chat: int
    is_whole: bool
    block_bytes: int
    ring_count: int
    ring_bytes: int

    @property
    def nbytes(self) -> int:
        return self.count * self.block_bytes + self.ring_count * self.ring_bytes

    @property
    def chats(self) -> float:
        """Number of chats that fill the context and fit into the blocks."""
        return (self.count - 1) / self.per_chat

    def used(self, chats: float, ring_blocks: int) -> int:
        """Bytes of the blocks of `chats` chats, a spare block and `ring_blocks` 16-bit blocks, as far as they exist."""
        blocks = min(int(chats * self.per_chat) + 1, self.count)
        return blocks * self.block_bytes + min(ring_blocks, self.ring_count) * self.ring_bytes

    def grown(self, share: float) -> "GroupBlocks":
        """The same group with `share` times as many blocks added."""
        return GroupBlocks(
            self.count + int(share * self.count),
            self.per_chat,
            self.is_whole,
            self.block_bytes,
            self.ring_count + int(share * self.ring_count),
            self.ring_bytes,
        )


class CacheShape:
    """Everything that decides the size of a cache, except context and codec: model, backend, window, adapters, and
    what drafts beside the model, whose cache holds the same texts."""

    def __init__(
        self,
        config: ModelConfig,
        backend: Backend,
        window: int | None = None,
        adapters: tuple[Ranks, ...] = (),
        drafting: ModelConfig | None = None,
    ) -> None:
        self.config, self.backend, self.window = config, backend, window
        self.drafting = None if drafting is None else CacheShape(drafting, backend, window)
        kinds = Counter(config.layers)
        self._kinds = replace(config, layers=tuple(kinds))  # each layer once: sums are asked for often
        self._n_layers = tuple(kinds.values())
        self.recording = record_shapes(config, adapters)
        self._block_bytes = cache(backend.block_bytes)
        self._layer_codecs = cache(partial(layer_codecs, config))
        self._beside = None if config.block is None else record_context(config)  # a second program
        # Asked for again with every precision, by the searches for the longest context and for the most sequences.
        self._nbytes, self._scratch_bytes = cache(self._count), cache(partial(backend.scratch_bytes, self.recording))

    @property
    def program_bytes(self) -> int:
        return self.backend.program_bytes

    def holds(self, codec: KVCodec) -> bool:
        """Whether the backend can hold every layer in `codec`."""
        kinds = (spec.cache for spec in self._kinds.layers)
        held = all(self._block_bytes(kind.codec(codec), kind) is not None for kind in kinds)
        return held and (self.drafting is None or self.drafting.holds(codec))

    def groups(self, ctx: int, codec: KVCodec, parallel: int = 1) -> tuple[GroupBlocks, ...]:
        """Blocks for `parallel` sequences of `ctx` tokens, by layer group; the backend must hold `codec`."""
        config = final_config(self.config, ctx, self.window)
        groups = group_layers(config.layers, layer_codecs(config, codec))
        return tuple(self._group(ctx, parallel, g.kind, g.codec, len(g.layers)) for g in groups)

    def nbytes(self, ctx: int, codec: KVCodec, parallel: int = 1) -> int:
        """Bytes of all blocks for `parallel` sequences of `ctx` tokens."""
        beside = 0 if self.drafting is None else self.drafting.nbytes(ctx, codec, parallel)
        return self._nbytes(ctx, codec, parallel) + beside

    def _count(self, ctx: int, codec: KVCodec, parallel: int) -> int:
        config = final_config(self._kinds, ctx, self.window)
        kinds = zip((spec.cache for spec in config.layers), self._n_layers, strict=True)
        return sum(self._group(ctx, parallel, kind, kind.codec(codec), n).nbytes for kind, n in kinds)

    def scratch_bytes(self, ctx: int, codec: KVCodec, threads: int, sequences: int = 0) -> int:
        """Bytes of working memory for the largest step of `sequences` sequences; 0: as many as may run at once."""
        n = sequences or max_sequences(ctx)
        if self.config.block is not None:  # whose every row is one of logits
            n = max(n, self.config.block.size)
        beside = 0 if self.drafting is None else self.drafting.scratch_bytes(ctx, codec, threads, n)
        if self._beside is not None:
            beside += self.backend.scratch_bytes(self._beside, ctx, self._layer_codecs(codec), threads, n)
        return self._scratch_bytes(ctx, self._layer_codecs(codec), threads, n) + beside

    def decode_cost(self) -> DecodeCost:
        """Cost of a step of one row, beside reading the matrices."""
        return self.backend.decode_cost(self.recording)

    def _group(self, ctx: int, parallel: int, kind: CacheKind, codec: KVCodec, n_layers: int) -> GroupBlocks:
        block, wide = self._block_bytes(codec, kind), self._block_bytes(KV_CODECS["f16"], kind)
        assert block is not None
        assert wide is not None
        n, per_chat = kind.n_blocks(ctx, parallel, MAX_ROWS), kind.n_left(ctx)
        rules = kind.rules(BLOCK_TOKENS, 0, None)
        sees_all = kind.window is None or kind.window >= ctx - BLOCK_TOKENS
        is_whole = sees_all and any(rule.required for rule in rules)
        if not has_ring(kind, codec):
            return GroupBlocks(n, per_chat, is_whole, n_layers * block, 0, 0)
        n_ring = min(n, RING_BLOCKS + (parallel - 1) * RING_MORE)
        return GroupBlocks(n, per_chat, is_whole, n_layers * block, n_ring, n_layers * wide)


def final_config(config: ModelConfig, ctx: int, window: int | None) -> ModelConfig:
    """The config after the choices that depend on the context, with the user's window.

    Without a window of the user the window is the context less its first block. It hides nothing until a chat grows
    past the context, which a rope that depends on the context does not allow.
    """
    config, endless = config.for_context(ctx), all(rope.endless for rope in config.ropes)
    if window is not None:
        return config.for_window(window)
    return config.for_window(ctx - BLOCK_TOKENS) if endless and ctx >= 2 * BLOCK_TOKENS else config
