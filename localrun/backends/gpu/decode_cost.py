"""Cost of a decode step on a GPU: launches of our kernels, and operations of torch for the rest. Torch-free.

The operations were counted as torch dispatches them, views left out, in a step of one row of tiny models;
`tests/backends/test_decode_cost.py` counts them again.
"""

from functools import lru_cache

from localrun.backends.decode_cost import DecodeCost, experts_read
from localrun.backends.gpu.supports import SUPPORTS, has_kernels, place_of
from localrun.ops.instructions import Attention, Embed, Moe
from localrun.ops.kv import BLOCK_TOKENS
from localrun.ops.latent import HeadLinear, LatentAppend
from localrun.ops.recording import Recording

SEEN = 4096  # tokens of the text that a step is counted for
ATTENTION_OPS, BLOCK_OPS = 50, 1  # of attention, and for every block of keys
ROUTER_OPS, EXPERT_OPS, DECODE_OPS = 35, 30, 35  # of a mixture, for every expert, and to decode one of its matrices
HEAD_OPS, LATENT_OPS = 5, 23  # of head_linear beside decoding its matrix, and of latent_append
DECODE_BYTES = 60  # a number that torch decodes, all its intermediate results written and read


@lru_cache(maxsize=32)
def decode_cost(model: Recording, backend: str, has_graphs: bool) -> DecodeCost:
    """Cost of a step of one row that sees 4096 tokens. has_graphs: the device records what torch has no part in."""
    launches, torch_ops, torch_bytes, of_tables = 0.0, 0, 0.0, 0
    for each in model.instructions:
        op, place = each.instruction, place_of(each.instruction, model.layers)
        if has_kernels(op, model.layers, backend):
            launches += SUPPORTS[type(op)].launches
        elif isinstance(op, Moe):
            n_experts = op.router.routing.n_used + (op.shared is not None)
            torch_ops += ROUTER_OPS + n_experts * (EXPERT_OPS + DECODE_OPS * (len(op.experts.widening) + 1))
            torch_bytes += DECODE_BYTES * experts_read(op)
        elif isinstance(op, Embed):
            of_tables += DECODE_OPS  # of one row, before the graph
        elif isinstance(op, Attention):
            seen = min(SEEN, op.window or SEEN)
            torch_ops += ATTENTION_OPS + BLOCK_OPS * (seen // BLOCK_TOKENS)
            n_stored = 1 if place.value_dim else 2  # keys alone, or values, too
            torch_bytes += DECODE_BYTES * seen * n_stored * place.n_kv_heads * place.head_dim
        elif isinstance(op, HeadLinear):
            torch_ops += DECODE_OPS + HEAD_OPS
            torch_bytes += DECODE_BYTES * op.weight.packed.n_rows * op.weight.packed.n_cols
        elif isinstance(op, LatentAppend):
            torch_ops += LATENT_OPS
        else:
            torch_ops += 1
    is_graph = has_graphs and not torch_ops
    return DecodeCost(round(launches), torch_ops + of_tables, torch_bytes, is_graph, is_graph and not of_tables)
