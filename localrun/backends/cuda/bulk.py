"""Prompts read in bulk: weights are decoded to bf16 and multiplied by cuBLAS, span by span. Torch-free."""

from collections.abc import Sequence

from localrun.ops.instructions import Linear
from localrun.ops.recording import Recording

SPAN = 512  # tokens of a span, and rows of every product
# Reasoned, not measured (docs/cuda.md says how); `python -m benchmarks.gpu_check` says whether a GPU agrees.
PAYS = {9: "Hopper", 10: "Blackwell of data centres"}  # by the major number of sm_90, sm_100
LIBRARY_BYTES = 32 << 20  # that cuBLAS takes for products on these


def span_of(arch: int) -> int:
    """Tokens of a span on an architecture, as in sm_90: 90; 0 where the fused kernel reads prompts, too."""
    return SPAN if arch // 10 in PAYS else 0


def bulk_numbers(linears: Sequence[Linear], rows: int, span: int) -> tuple[int, int, int]:
    """bf16 numbers of all rows, of all matrices of a linear, and of a span of sums: room for the largest of these."""
    shapes = [(sum(weight.packed.n_rows for weight in op.weights), op.weights[0].packed.n_cols) for op in linears]
    most_in, most_out = max(n_in for _, n_in in shapes), max(n_out for n_out, _ in shapes)
    return rows * most_in, max(n_out * n_in for n_out, n_in in shapes), span * most_out


def memory_bytes(model: Recording, rows: int, span: int) -> int:
    """Bytes of `bulk_linears.BulkMemory` and of the library beside it."""
    linears = [each.instruction for each in model.instructions if isinstance(each.instruction, Linear)]
    return 2 * sum(bulk_numbers(linears, rows, span)) + LIBRARY_BYTES
