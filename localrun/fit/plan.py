"""What fits: the codec, the context and the blocks of a load, solved from exact bytes. Torch-free."""

import math
from dataclasses import dataclass
from typing import Protocol

from localrun.backends.interface import Backend
from localrun.base.errors import DoesNotFitError, UsageError
from localrun.base.units import gib
from localrun.cache.chat_codec import ChatCodec
from localrun.fit.blocks import RING_BLOCKS, RING_MORE, CacheShape, GroupBlocks, final_config
from localrun.fit.bytes import layer_codecs
from localrun.fit.codecs import choose_codec
from localrun.fit.shape import make_shape
from localrun.model.config import ModelConfig
from localrun.ops.kv import BLOCK_TOKENS, KV_CODECS, KVCodec, KVPlan

MARGIN, MARGIN_PART = 512 << 20, 8  # left to other programs and to what is not counted: so much, or one part of so many
SMALL_CONTEXT = 4096  # tokens that a hint speaks of
FEWEST_BITS = 2.0  # a weight; below that no precision is worth naming
SPARE_SHARE = 0.5  # of memory left over that kept chats may take
MOST_SPARE = 3.0  # times the blocks of the context itself
USUAL_THREADS = 8  # whose scratch is counted where the number is not known


class Sizes(Protocol):
    """A cache whose bytes can be asked for: CacheShape for a model that we run."""

    config: ModelConfig

    @property
    def program_bytes(self) -> int: ...
    def holds(self, codec: KVCodec) -> bool: ...
    def nbytes(self, ctx: int, codec: KVCodec, parallel: int = 1) -> int: ...
    def scratch_bytes(self, ctx: int, codec: KVCodec, threads: int) -> int: ...


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """A context and what it costs, in bytes. `groups` are the blocks to reserve, in the order of `group_layers`.

    Whatever is said of the memory of a load is read from here: what one chat needs, what chats kept beside it may
    take, and the most that the process will hold.
    """

    ctx: int
    config: ModelConfig  # with every choice made that depends on the context and the user's window
    codec: KVCodec  # of the layers that see everything
    codecs: tuple[KVCodec, ...]  # [n_layers]
    groups: tuple[GroupBlocks, ...]
    weights_bytes: int
    needed_kv_bytes: int  # for one chat that fills the context
    scratch_bytes: int  # of the largest step
    needed_scratch_bytes: int  # of the largest step while one chat answers
    overhead_bytes: int
    budget_bytes: int
    grows: bool  # blocks take memory when they are first used, not all at once
    notes: tuple[str, ...] = ()

    @property
    def kv_plan(self) -> KVPlan:
        """The codecs as an executor takes them."""
        return KVPlan(self.codecs)

    @property
    def blocks(self) -> tuple[int, ...]:
        """Blocks of each group."""
        return tuple(group.count for group in self.groups)

    @property
    def ring_blocks(self) -> tuple[int, ...]:
        """16-bit blocks of each group, beside those of a quantised codec."""
        return tuple(group.ring_count for group in self.groups)

    @property
    def kv_bytes(self) -> int:
        """What keys and values may take in all: those of one chat and of chats that are kept."""
        return sum(group.nbytes for group in self.groups)

    @property
    def kept_kv_bytes(self) -> int:
        """Of these, what one chat does not need: earlier chats and branches stay in it, to be gone on with at once."""
        return self.kv_bytes - self.needed_kv_bytes

    @property
    def needed_bytes(self) -> int:
        """What one chat that fills the context needs of the memory."""
        return self._beside_cache + self.needed_kv_bytes

    @property
    def peak_bytes(self) -> int:
        """The most memory the process will ever hold: all that is set aside, in use."""
        return self._beside_cache + self.kv_bytes

    def peak_after(self, chats: int) -> int:
        """The most memory the process has held once that many chats have filled the context, one after another."""
        return self.overhead_bytes + self.weights_bytes + self.needed_scratch_bytes + self.kv_after(chats)

    def kv_after(self, chats: int) -> int:
        """Of these, the cache: a block of one takes memory as long as the process lives."""
        if not self.grows:
            return self.kv_bytes
        of_one = -(-self.ctx // BLOCK_TOKENS)
        ring = min(RING_BLOCKS, of_one) + (chats - 1) * RING_MORE
        return sum(group.used(chats * of_one + 1, ring) for group in self.groups)

    @property
    def _beside_cache(self) -> int:
        return self.overhead_bytes + self.weights_bytes + self.scratch_bytes


def plan_load(
    config: ModelConfig,
    weights_bytes: int,
    free: int,
    *,
    backend: Backend,
    ctx: int | None = None,
    kv: str = "auto",
    window: int | None = None,
    resident: int = 0,
    threads: int = USUAL_THREADS,
    keep_chats: bool = True,
    limit: str = "",
    before: ChatCodec | None = None,
) -> MemoryPlan:
    """The wanted context, else the largest that fits `free` bytes, with the best codec that holds it.

    `resident` is what this process holds already and `free` no longer counts; with `keep_chats` half of what is left
    over goes to chats that are kept in memory. `limit` names what makes memory less than the machine has, `before` what
    the chat is kept in that is gone on with. Raises DoesNotFitError, UsageError.
    """
    check_context(config, ctx, window)
    shape = CacheShape(config, backend, window)
    budget = free + resident
    overhead = resident + backend.growth_bytes if resident else shape.program_bytes
    room = budget - margin_of(budget) - overhead - weights_bytes
    try:
        choice = choose_codec(kv, config, ctx, lambda codec: longest_context(shape, codec, room, threads), before)
    except DoesNotFitError as error:
        program = overhead - resident + _least(shape, threads)
        needs = (
            f"weights take {gib(weights_bytes)} of the {gib(free)} that are free{limit and f' under {limit}'},"
            f" cache and program {gib(program)}, and {gib(margin_of(budget))} are left to others"
        )
        others = "raise that limit" if limit else "close other programs"
        hint = error.hint or _precision_hint(shape, room + weights_bytes, threads, others)
        raise DoesNotFitError(f"{error.message}: {needs}", hint) from None
    final = final_config(config, choice.ctx, window)
    groups = shape.groups(choice.ctx, choice.codec)
    needed = sum(group.nbytes for group in groups)
    scratch = shape.scratch_bytes(choice.ctx, choice.codec, threads)
    spare = spare_share(room - scratch, needed) if keep_chats else 0.0
    return MemoryPlan(
        ctx=choice.ctx,
        config=final,
        codec=choice.codec,
        codecs=layer_codecs(final, choice.codec),
        groups=tuple(group.grown(spare) for group in groups),
        weights_bytes=weights_bytes,
        needed_kv_bytes=needed,
        scratch_bytes=scratch,
        needed_scratch_bytes=backend.scratch_bytes(final, choice.ctx, choice.codec, threads, sequences=1),
        overhead_bytes=overhead,
        budget_bytes=budget,
        grows=backend.grows,
        notes=(choice.note,) if choice.note else (),
    )


def margin_of(budget: int) -> int:
    """What a plan leaves of so many bytes: less of a small container than of a large machine."""
    return min(MARGIN, budget // MARGIN_PART)


def spare_share(room: int, needed: int) -> float:
    """How much of a chat's cache is set aside once more for kept chats, where cache may take `room` bytes."""
    return min(MOST_SPARE, max(0.0, SPARE_SHARE * (room - needed) / needed))


def check_context(config: ModelConfig, ctx: int | None, window: int | None) -> None:
    """UsageError for what no memory would make possible."""
    if ctx is not None and ctx < 1:
        raise UsageError(f"a context of {ctx} tokens is not possible", "try --ctx 4096")
    if ctx is not None and ctx > config.max_context:
        raise UsageError(
            f"a context of {ctx:,} tokens is more than the {config.max_context:,} this model was made for",
            f"try --ctx {config.max_context}",
        )
    if window is not None and window < BLOCK_TOKENS:
        raise UsageError(f"a window of {window} tokens is too small", f"try --window 1024; {BLOCK_TOKENS} is the least")


def longest_context(
    shape: Sizes, codec: KVCodec, room: int, threads: int = USUAL_THREADS, parallel: int = 1
) -> int | None:
    """The most tokens, in whole blocks, whose cache and working memory take at most `room` bytes; 0 when none do.

    None where the backend does not hold the codec. Need grows with the context, so halving finds the exact answer.
    """
    if not shape.holds(codec):
        return None
    most = shape.config.max_context
    low, high = 0, -(-most // BLOCK_TOKENS)
    while low < high:
        blocks = (low + high + 1) // 2
        ctx = min(blocks * BLOCK_TOKENS, most)
        need = shape.nbytes(ctx, codec, parallel) + shape.scratch_bytes(ctx, codec, threads)
        low, high = (blocks, high) if need <= room else (low, blocks - 1)
    return min(low * BLOCK_TOKENS, most)


def _precision_hint(shape: CacheShape, for_weights: int, threads: int, others: str) -> str:
    """What would fit where nothing does beside these weights; `for_weights` is all that is free for anything."""
    bits = 8 * (for_weights - _least(shape, threads)) / make_shape(shape.config, tied=True).n_params
    if bits < FEWEST_BITS:
        return f"choose a smaller model, or {others}"
    ctx, bits = min(SMALL_CONTEXT, shape.config.max_context), math.floor(10 * bits) / 10
    return f"a precision of at most {bits} bits a weight fits with {ctx:,} tokens; `localrun fit` lists them"


def _least(shape: CacheShape, threads: int) -> int:
    """Bytes of the smallest cache and working memory that are worth having."""
    ctx = min(SMALL_CONTEXT, shape.config.max_context)
    held = [codec for codec in KV_CODECS.values() if shape.holds(codec)]
    return min(shape.nbytes(ctx, codec) + shape.scratch_bytes(ctx, codec, threads) for codec in held)
