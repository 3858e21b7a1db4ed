"""The working memory of the largest step in plain torch, counted before anything is loaded."""

from localrun.model.config import ModelConfig
from localrun.ops.kv import KVCodec
from localrun.ops.largest_step import MAX_ROWS

SCORE_TILE = 64 << 20  # bytes of attention scores that are held at a time
SCORE_COPIES, CODED_COPIES = 8, 4  # of them at a time; rows of coded layers are taken a block at a time


def step_bytes(config: ModelConfig, ctx: int, codec: KVCodec) -> int:
    """Activations, scores and gathered keys of one layer, logits."""
    widest = max(config.layers, key=lambda spec: spec.n_heads * spec.head_dim)
    rows = min(MAX_ROWS, ctx)
    most_used = max(spec.mixture.routing.n_used if spec.mixture else 1 for spec in config.layers)
    shared = max(spec.mixture.shared_size if spec.mixture else 0 for spec in config.layers)
    widths = 6 * config.hidden_size + 4 * max(shared, *(spec.ffn_size for spec in config.layers))
    activations = rows * (widths + (most_used - 1) * config.hidden_size) * 4
    scores = (SCORE_COPIES if codec.native else CODED_COPIES) * min(SCORE_TILE, rows * widest.n_heads * ctx * 4)
    gathered = 4 * ctx * max(spec.n_kv_heads * spec.head_dim for spec in config.layers) * 4
    return activations + scores + gathered + 4 * config.vocab_size * 4
