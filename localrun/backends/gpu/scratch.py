"""Working memory of the largest step on a GPU, counted before anything is loaded. Torch-free."""

from functools import lru_cache

from localrun.backends.gpu.forms import Form, plain_bytes, slot_forms
from localrun.backends.gpu.mixture_memory import mixture_bytes
from localrun.backends.gpu.supports import has_kernels, ops_of_torch
from localrun.backends.reference.scratch import step_bytes
from localrun.ops.cache_layer import CacheLayer
from localrun.ops.instructions import Embed, LogitsOf
from localrun.ops.kv import KVCodec
from localrun.ops.largest_step import MAX_CANDIDATES, MAX_ROWS, max_rows
from localrun.ops.recording import Recording
from localrun.ops.widths import most_alive

UNIT_TOKENS = 512  # that attention splits a text into
SPLIT_ROWS = 32  # rows of a step whose texts are split, at most: in larger steps those that are alone
WORKSPACE_BYTES = 32 << 20  # of torch: steps, small copies, and what lies between two of its blocks
TABLE_COPIES = 3  # of the rows of a table that torch decodes


def arena_bytes(
    model: Recording,
    ctx: int,
    codecs: tuple[KVCodec, ...],
    sequences: int,
    *,
    backend: str,
    coded: bool,
    span: int = 0,
) -> int:
    """Buffers between operations, memory of attention and mixtures, logits; and torch's own where torch computes.

    coded: linears read quantised activations. span: tokens that prompts are read in bulk by; 0: they are not.
    """
    last = model.instructions[-1].instruction
    assert isinstance(last, LogitsOf)
    head = Form(last.weight.n_cols, plain=True, coded=coded).nbytes(1)
    logits = power_of_two(sequences) * (4 * last.weight.n_rows + head + 4 * (2 * MAX_CANDIDATES + 3))
    partial = max(partial_bytes(place, ctx) for place in {*model.layers})
    buffers = buffer_bytes(model, coded=coded, span=span) + largest_mixture(model, backend, max_rows(span))
    return buffers + logits + partial + torch_bytes(model, ctx, codecs, backend) + WORKSPACE_BYTES


def torch_bytes(model: Recording, ctx: int, codecs: tuple[KVCodec, ...], backend: str) -> int:
    """Bytes that torch takes for what has no kernels: those of a whole step, but for the rows of tables."""
    left = ops_of_torch(model, backend)
    tables = [op.weight.n_cols for op in left if isinstance(op, Embed)]
    if len(tables) < len(left):
        return step_bytes(model, ctx, codecs)
    return TABLE_COPIES * MAX_ROWS * max(map(plain_bytes, tables), default=0)


@lru_cache(maxsize=8)
def buffer_bytes(model: Recording, *, coded: bool, span: int = 0) -> int:
    """Bytes of the buffers between operations: as many of a form as are ever alive at once."""
    forms = slot_forms(model.instructions, model.layers, lambda weight: coded, in_bulk=bool(span))
    buffers = most_alive(model.instructions, forms)
    return sum(n * form.nbytes(max_rows(span)) for form, n in buffers.items())


@lru_cache(maxsize=8)
def largest_mixture(model: Recording, backend: str, rows: int) -> int:
    """Bytes for the mixtures of a model that kernels compute."""
    ops = (each.instruction for each in model.instructions)
    return mixture_bytes((op for op in ops if has_kernels(op, model.layers, backend)), rows)


def partial_bytes(place: CacheLayer, ctx: int) -> int:
    """Bytes of partial results that the units of a text leave to be merged, for the rows of small steps."""
    return 4 * partial_numbers(SPLIT_ROWS, bucket_units(ctx), place.n_heads, place.head_dim)


def partial_numbers(rows: int, n_units: int, n_heads: int, head_dim: int) -> int:
    """Number of f32 values that the units of these rows leave, for texts of at most n_units · 512 tokens."""
    return min(rows, SPLIT_ROWS) * n_heads * n_units * (head_dim + 2)


def bucket_units(n_tokens: int) -> int:
    """Units of the longest text of a step, rounded up to a power of two."""
    return power_of_two(-(-n_tokens // UNIT_TOKENS))


def power_of_two(n: int) -> int:
    """The smallest that is no less than n; 1 for 0."""
    return 1 << max(n - 1, 0).bit_length()
