"""What fits: how the weights are held and how many tokens of context the rest of memory takes. Torch-free."""

from dataclasses import dataclass

from localrun.base.errors import DoesNotFitError, UsageError
from localrun.base.units import gib
from localrun.cache.groups import BLOCK_TOKENS
from localrun.fit.bytes import kv_bytes_per_token
from localrun.model.config import ModelConfig
from localrun.ops.kv import KVCodec

OVERHEAD = 400 << 20  # torch, the tokenizer and the program itself
MARGIN = 512 << 20  # left to the rest of the machine
PREFILL_ROWS = 512  # the largest prefill chunk
SCORE_TILE = 64 << 20  # attention scores held at a time


@dataclass(frozen=True, slots=True)
class Plan:
    """A context and what it costs, in bytes."""

    ctx: int
    weights_bytes: int
    kv_bytes: int
    scratch_bytes: int
    budget_bytes: int

    @property
    def n_blocks(self) -> int:
        """Blocks a group: the context, and one to copy a shared block into."""
        return -(-self.ctx // BLOCK_TOKENS) + 1


def plan_context(config: ModelConfig, weights_bytes: int, codec: KVCodec, budget: int, ctx: int | None) -> Plan:
    """The wanted context, else the largest that fits `budget` bytes. Raises DoesNotFitError, UsageError."""
    if ctx is not None and ctx < 1:
        raise UsageError(f"a context of {ctx} tokens is not possible", "try --ctx 4096")
    if ctx is not None and ctx > config.max_context:
        raise UsageError(
            f"a context of {ctx:,} tokens is more than the {config.max_context:,} this model was made for",
            f"try --ctx {config.max_context}",
        )
    per_block = kv_bytes_per_token(config, codec) * BLOCK_TOKENS
    free = budget - MARGIN - OVERHEAD - weights_bytes
    if ctx is None:
        ctx = largest_context(config, per_block, free)
    plan = Plan(ctx, weights_bytes, (-(-ctx // BLOCK_TOKENS) + 1) * per_block, scratch_bytes(config, ctx), budget)
    if ctx < 1 or plan.kv_bytes + plan.scratch_bytes > free:
        raise DoesNotFitError(
            f"weights {gib(weights_bytes)}, cache {gib(plan.kv_bytes)} and working memory do not fit "
            f"the {gib(budget)} that are free",
            "try a smaller context (--ctx 4096) or a smaller precision",
        )
    return plan


def largest_context(config: ModelConfig, per_block: int, free: int) -> int:
    """The most tokens, in whole blocks, whose cache and working memory take at most `free` bytes; 0 when none do."""
    low, high = 0, -(-config.max_context // BLOCK_TOKENS)
    while low < high:
        blocks = (low + high + 1) // 2
        fits = (blocks + 1) * per_block + scratch_bytes(config, blocks * BLOCK_TOKENS) <= free
        low, high = (blocks, high) if fits else (low, blocks - 1)
    return min(low * BLOCK_TOKENS, config.max_context)


def scratch_bytes(config: ModelConfig, ctx: int) -> int:
    """Working memory of a full prefill chunk: activations, scores and gathered keys of one layer, logits."""
    widest = max(config.layers, key=lambda spec: spec.n_heads * spec.head_dim)
    rows = min(PREFILL_ROWS, ctx)
    activations = rows * (6 * config.hidden_size + 4 * max(spec.ffn_size for spec in config.layers)) * 4
    scores = 4 * min(SCORE_TILE, rows * widest.n_heads * ctx * 4)
    gathered = 4 * ctx * widest.n_kv_heads * widest.head_dim * 4
    return activations + scores + gathered + 4 * config.vocab_size * 4
