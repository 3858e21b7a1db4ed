"""Working memory of the largest step on a GPU, counted before anything is loaded. Torch-free."""

from collections import Counter

from localrun.backends.gpu.coverage import leaves_any
from localrun.backends.reference.scratch import step_bytes
from localrun.model.config import LayerSpec, ModelConfig
from localrun.ops.kv import KVCodec
from localrun.ops.largest_step import MAX_CANDIDATES, max_rows

UNIT_TOKENS = 512  # that attention splits a text into
SPLIT_ROWS = 32  # rows of a step whose texts are split, at most: in larger steps those that are alone
WORKSPACE_BYTES = 32 << 20  # of torch: steps, small copies, and what lies between two of its blocks


def arena_bytes(
    config: ModelConfig, ctx: int, codec: KVCodec, sequences: int, *, coded: bool, all_codecs: bool, span: int = 0
) -> int:
    """Buffers between operations, scratch memory of attention, logits; and torch's own where torch computes.

    coded: linears read quantised activations. all_codecs: attention has kernels for quantised caches, too.
    span: tokens that prompts are read in bulk by; 0: they are not.
    """
    head = plain_bytes(config.hidden_size) + coded * coded_bytes(config.hidden_size)
    candidates = 8 * MAX_CANDIDATES
    logits = power_of_two(sequences) * (4 * config.vocab_size + head + candidates)
    partial = max(partial_bytes(spec, ctx) for spec in config.layers)
    by_torch = leaves_any(config, codec, all_codecs=all_codecs)
    torch = step_bytes(config, ctx, codec) if by_torch else 0
    return buffer_bytes(config, coded=coded, span=span) + logits + partial + torch + WORKSPACE_BYTES


def buffer_bytes(config: ModelConfig, *, coded: bool, span: int = 0) -> int:
    """Of what operations leave for each other: as many buffers of a width as are ever alive at once."""
    hidden, plain, both = config.hidden_size, Counter[int](), Counter[int]()
    for spec in set(config.layers):
        queries, keys = spec.n_heads * spec.head_dim, spec.n_kv_heads * spec.head_dim
        attention = Counter({hidden: 1}) + Counter({queries: 2}) + Counter({keys: 2})
        plain |= attention | Counter({hidden: 3 if spec.post_norm else 2})
        both |= Counter([queries] if spec.mixture else {queries, spec.ffn_size})  # read by linears
    if not coded:  # then all of a width are alike
        return max_rows(span) * sum(n * plain_bytes(width) for width, n in (plain | both).items())
    both |= Counter([hidden] if span else ())  # in bulk as numbers, too
    row = sum(n * plain_bytes(width) for width, n in plain.items()) + (0 if span else coded_bytes(hidden))
    row += sum(n * (plain_bytes(width) + coded_bytes(width)) for width, n in both.items())
    return max_rows(span) * row


def plain_bytes(width: int) -> int:
    return 4 * width


def coded_bytes(width: int) -> int:
    """Codes, and for 32 of them a scale and a sum, of whole tiles of 64 columns."""
    n_codes = -(-width // 64) * 64
    return n_codes + n_codes // 32 * 8


def partial_bytes(spec: LayerSpec, ctx: int) -> int:
    """What the units of a text leave to be merged, for the rows of small steps."""
    if spec.mixer:
        return 0
    return 4 * partial_numbers(SPLIT_ROWS, bucket_units(ctx), spec.n_heads, spec.head_dim)


def partial_numbers(rows: int, n_units: int, n_heads: int, head_dim: int) -> int:
    """f32 numbers that the units of so many rows leave, of texts of at most n_units · 512 tokens."""
    return min(rows, SPLIT_ROWS) * n_heads * n_units * (head_dim + 2)


def bucket_units(n_tokens: int) -> int:
    """Units of the longest text of a step, rounded up to a power of two."""
    return power_of_two(-(-n_tokens // UNIT_TOKENS))


def power_of_two(n: int) -> int:
    """The smallest that is no less than n; 1 for 0."""
    return 1 << max(n - 1, 0).bit_length()
