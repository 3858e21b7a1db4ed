"""Planning of a load: codec, context and blocks that fit, computed from exact bytes. Torch-free."""

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Protocol

from localrun.backends.decode_cost import DecodeCost
from localrun.backends.interface import Backend
from localrun.base.dataclass import dataclass
from localrun.base.errors import DoesNotFitError, UsageError
from localrun.base.units import gib
from localrun.fit.blocks import CacheShape, final_config
from localrun.fit.bytes import layer_codecs
from localrun.fit.codecs import ChosenCodec, choose_codec
from localrun.fit.mapped import Mappable, first_of, total_bytes
from localrun.fit.memory_plan import DraftPlan, MemoryPlan
from localrun.fit.shape import make_shape
from localrun.model.config import ModelConfig
from localrun.model.shapes import Ranks
from localrun.ops.kv import BLOCK_TOKENS, KV_CODECS, KVCodec
from localrun.storage.inventory import CodecTokens

MARGIN, MARGIN_PART = 512 << 20, 8  # left to other programs and to what is not counted: bytes, or 1 / MARGIN_PART
SMALL_CONTEXT = 4096  # tokens that a hint speaks of
FEWEST_BITS = 2.0  # a weight; below that no precision is worth naming
SPARE_SHARE = 0.5  # of memory left over that kept chats may take
MOST_SPARE = 3.0  # times the blocks of the context itself
MOST_SEQUENCES = 4096  # that are counted
USUAL_THREADS = 8  # whose scratch is counted where the number is not known


class CacheSizes(Protocol):
    """A cache whose bytes can be computed; CacheShape is the one of a supported model."""

    config: ModelConfig

    @property
    def program_bytes(self) -> int: ...
    def holds(self, codec: KVCodec) -> bool: ...
    def nbytes(self, ctx: int, codec: KVCodec, parallel: int = 1) -> int: ...
    def scratch_bytes(self, ctx: int, codec: KVCodec, threads: int) -> int: ...
    def decode_cost(self) -> DecodeCost: ...


@dataclass(frozen=True, slots=True)
class Budget:
    """Memory of a load, in bytes: free, already held by this process, and taken by program, weights and images.

    `limit` names a limit that is lower than the machine's memory.
    """

    free: int
    resident: int
    overhead: int  # the process without weights, cache and working memory; what is resident included
    weights: int
    limit: str = ""
    sight: int = 0  # kept free for images

    @property
    def total(self) -> int:
        return self.free + self.resident

    @property
    def room(self) -> int:
        """Bytes left for the cache and the working memory."""
        return self.total - margin_of(self.total) - self.overhead - self.weights - self.sight


@dataclass(frozen=True, slots=True)
class LoadRequest:
    """The model to load, the memory there is, and the user's wishes.

    `resident` bytes are already held by this process and not part of `free`. With `keep_chats` half of the remaining
    memory goes to cached chats. `limit` names a limit that is lower than the machine's memory.
    """

    config: ModelConfig
    weights_bytes: int  # in memory, if none of them stay on disk
    free: int  # bytes
    backend: Backend
    ctx: int | None = None  # tokens; None: as many as fit
    kv: str = "auto"
    window: int | None = None  # tokens
    resident: int = 0  # bytes
    threads: int = USUAL_THREADS
    keep_chats: bool = True
    limit: str = ""
    before: CodecTokens | None = None  # of the chat that is continued
    mappable: Sequence[Mappable] = ()  # matrices that may stay on disk
    adapters: tuple[Ranks, ...] = ()
    drafting: ModelConfig | None = None  # of what drafts beside it; its weights are among `weights_bytes`
    sight_bytes: int = 0  # to keep free for images


def plan_with_sight(request: LoadRequest) -> MemoryPlan:
    """Plan a load with room for images; without it where they alone would leave weights on disk, or fit nowhere.

    Raises DoesNotFitError, UsageError.
    """
    without = replace(request, sight_bytes=0)
    if not request.sight_bytes:
        return plan_load(without)
    try:
        seeing = plan_load(request)
    except DoesNotFitError:
        return plan_load(without)
    return seeing if not seeing.mapped or plan_load(without).mapped else plan_load(without)


def plan_load(request: LoadRequest) -> MemoryPlan:
    """Plan the wanted context, else the largest that fits, with the best codec that holds it.

    Where none fits beside all the weights, as many matrices as necessary stay on disk; a context that was not asked for
    is then a small one. Raises DoesNotFitError, UsageError.
    """
    config, ctx, threads = request.config, request.ctx, request.threads
    check_context(config, ctx, request.window)
    shape = CacheShape(config, request.backend, request.window, request.adapters, request.drafting)
    overhead = request.resident + request.backend.growth_bytes if request.resident else shape.program_bytes
    budget = Budget(request.free, request.resident, overhead, request.weights_bytes, request.limit, request.sight_bytes)

    def choose(budget: Budget, ctx: int | None) -> ChosenCodec:
        longest = partial(longest_context, shape, room=budget.room, threads=threads)
        return choose_codec(request.kv, config, ctx, longest, request.before)

    def planned(choice: ChosenCodec, budget: Budget) -> MemoryPlan:
        return _planned(choice, budget, shape, threads, request.keep_chats)

    try:
        return planned(choose(budget, ctx), budget)
    except DoesNotFitError as error:
        refusal = error
    with suppress(DoesNotFitError):
        least = replace(budget, weights=budget.weights - total_bytes(request.mappable))
        choice = choose(least, ctx or min(SMALL_CONTEXT, config.max_context))
        needed = shape.nbytes(choice.ctx, choice.codec) + shape.scratch_bytes(choice.ctx, choice.codec, threads)
        mapped = first_of(request.mappable, needed - budget.room)
        rest = replace(budget, weights=budget.weights - total_bytes(mapped))
        return replace(planned(choice, rest), mapped=mapped)
    raise _refusal(refusal, budget, shape, threads)


def _planned(choice: ChosenCodec, budget: Budget, shape: CacheShape, threads: int, keep_chats: bool) -> MemoryPlan:
    """Build the plan for a context and its codec."""
    ctx, codec = choice.ctx, choice.codec
    config = final_config(shape.config, ctx, shape.window)
    groups, scratch = shape.groups(ctx, codec), shape.scratch_bytes(ctx, codec, threads)
    needed = shape.nbytes(ctx, codec)
    spare = spare_share(budget.room - scratch, needed) if keep_chats else 0.0
    return MemoryPlan(
        ctx=ctx,
        config=config,
        codec=codec,
        codecs=layer_codecs(config, codec),
        groups=tuple(group.grown(spare) for group in groups),
        weights_bytes=budget.weights,
        needed_kv_bytes=needed,
        scratch_bytes=scratch,
        needed_scratch_bytes=shape.scratch_bytes(ctx, codec, threads, sequences=1),
        overhead_bytes=budget.overhead,
        budget_bytes=budget.total,
        sight_bytes=budget.sight,
        grows=shape.backend.grows,
        notes=(choice.note,) if choice.note else (),
        draft=None if shape.drafting is None else _draft_planned(shape.drafting, choice, spare),
    )


def _draft_planned(shape: CacheShape, choice: ChosenCodec, spare: float) -> DraftPlan:
    """The cache of what drafts, for the same texts."""
    config = final_config(shape.config, choice.ctx, shape.window)
    groups = tuple(group.grown(spare) for group in shape.groups(choice.ctx, choice.codec))
    return DraftPlan(config, layer_codecs(config, choice.codec), groups)


def margin_of(budget: int) -> int:
    """Bytes of `budget` that a plan leaves free: fewer in a small container than on a large machine."""
    return min(MARGIN, budget // MARGIN_PART)


def spare_share(room: int, needed: int) -> float:
    """Share of a chat's cache to reserve again for cached chats, where the cache may take `room` bytes."""
    return min(MOST_SPARE, max(0.0, SPARE_SHARE * (room - needed) / needed))


def check_context(config: ModelConfig, ctx: int | None, window: int | None) -> None:
    """Raise UsageError for a context or window that no memory would make possible."""
    if ctx is not None and ctx < 1:
        raise UsageError(f"a context of {ctx} tokens is not possible", "try --ctx 4096")
    if ctx is not None and ctx > config.max_context:
        raise UsageError(
            f"a context of {ctx:,} tokens is more than the {config.max_context:,} this model was made for",
            f"try --ctx {config.max_context}",
        )
    if window is not None and window < BLOCK_TOKENS:
        raise UsageError(f"a window of {window} tokens is too small", f"try --window 1024; {BLOCK_TOKENS} is the least")
    if window is not None and config.latents:
        told = "leave it out: a token's latents are small, and --ctx says how many are kept"
        raise UsageError("no window can be put on layers with latent attention", told)


def longest_context(
    shape: CacheSizes, codec: KVCodec, room: int, threads: int = USUAL_THREADS, parallel: int = 1
) -> int | None:
    """The most tokens, in whole blocks, whose cache and working memory fit into `room` bytes; 0 for none.

    None where the backend does not hold the codec. The need grows with the context, so bisection is exact.
    """
    if not shape.holds(codec):
        return None
    most = shape.config.max_context
    low, high = 0, -(-most // BLOCK_TOKENS)
    blocks = high  # the whole context, which mostly fits
    while low < high:
        ctx = min(blocks * BLOCK_TOKENS, most)
        need = shape.nbytes(ctx, codec, parallel) + shape.scratch_bytes(ctx, codec, threads)
        low, high = (blocks, high) if need <= room else (low, blocks - 1)
        blocks = (low + high + 1) // 2
    return min(low * BLOCK_TOKENS, most)


def most_sequences(sizes: CacheSizes, ctx: int, codec: KVCodec, room: int) -> int:
    """Largest number of sequences of `ctx` tokens whose cache takes at most `room` bytes."""
    low, high = 0, MOST_SEQUENCES
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if sizes.nbytes(ctx, codec, middle) <= room else (low, middle - 1)
    return low


def _refusal(error: DoesNotFitError, budget: Budget, shape: CacheShape, threads: int) -> DoesNotFitError:
    """Add to `error` where the memory goes, and what to do."""
    program = budget.overhead - budget.resident + _least(shape, threads)
    free = f"{gib(budget.free)} are free{budget.limit and f' under {budget.limit}'}"
    needs = (
        f"{free}; weights take {gib(budget.weights)}, cache and program {gib(program)},"
        f" and {gib(margin_of(budget.total))} are left for other programs"
    )
    return DoesNotFitError(f"{error.message}: {needs}", error.hint or _precision_hint(budget, shape, threads))


def _precision_hint(budget: Budget, shape: CacheShape, threads: int) -> str:
    """Hint at a precision that fits, where nothing fits beside these weights."""
    for_weights = budget.room + budget.weights - _least(shape, threads)
    bits = 8 * for_weights / make_shape(shape.config, tied=True).n_params
    if bits < FEWEST_BITS:
        return f"choose a smaller model, or {'raise that limit' if budget.limit else 'close other programs'}"
    ctx, bits = min(SMALL_CONTEXT, shape.config.max_context), math.floor(10 * bits) / 10
    return f"a precision of at most {bits} bits a weight fits with {ctx:,} tokens; `localrun fit` lists them"


def _least(shape: CacheShape, threads: int) -> int:
    """Bytes of the smallest useful cache and its working memory."""
    ctx = min(SMALL_CONTEXT, shape.config.max_context)
    held = [codec for codec in KV_CODECS.values() if shape.holds(codec)]
    return min(shape.nbytes(ctx, codec) + shape.scratch_bytes(ctx, codec, threads) for codec in held)
