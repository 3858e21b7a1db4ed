"""Where prompts are read in bulk: weights decoded to bf16 and a library's products, for whole spans. Torch-free."""

from localrun.model.config import LayerSpec, ModelConfig

SPAN = 512  # tokens of a span, and rows of every product
# Reasoned, not measured (docs/cuda.md says how); `python -m benchmarks.gpu_check` says whether a GPU agrees.
PAYS = {9: "Hopper", 10: "Blackwell of data centres"}  # by the major number of sm_90, sm_100
LIBRARY_BYTES = 32 << 20  # that cuBLAS takes for products on these


def span_of(arch: int) -> int:
    """Tokens of a span on an architecture, as in sm_90: 90; 0 where the fused kernel reads prompts, too."""
    return SPAN if arch // 10 in PAYS else 0


def linear_shapes(config: ModelConfig, spec: LayerSpec) -> list[tuple[int, int]]:
    """Rows and columns of the matrices that one linear of a layer reads together."""
    queries, keys, hidden = spec.n_heads * spec.head_dim, spec.n_kv_heads * spec.head_dim, config.hidden_size
    sides = 2 if spec.has_gate else 1
    return [(queries + 2 * keys, hidden), (hidden, queries), (sides * spec.ffn_size, hidden), (hidden, spec.ffn_size)]


def memory_bytes(config: ModelConfig, rows: int, span: int) -> int:
    """What `bulk_linears.BulkMemory` takes, and the library beside it."""
    shapes = [shape for spec in set(config.layers) for shape in linear_shapes(config, spec)]
    most_in, most_out = max(n_in for _, n_in in shapes), max(n_out for n_out, _ in shapes)
    return 2 * (max(n_out * n_in for n_out, n_in in shapes) + rows * most_in + span * most_out) + LIBRARY_BYTES
