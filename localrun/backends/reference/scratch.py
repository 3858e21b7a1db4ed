"""The working memory of the largest step in plain torch, counted before anything is loaded."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from localrun.base.dataclass import dataclass
from localrun.ops.instructions import Linear, LogitsOf, Moe
from localrun.ops.kv import KVCodec
from localrun.ops.largest_step import MAX_ROWS
from localrun.ops.recording import Recording
from localrun.ops.widths import most_alive, slot_widths

if TYPE_CHECKING:
    from localrun.ops.encoder_program import EncoderRecording

SCORE_TILE = 64 << 20  # bytes of attention scores that are held at a time
SCORE_COPIES, CODED_COPIES = 8, 4  # of them at a time; rows of coded layers are taken a block at a time


@dataclass(frozen=True, slots=True)
class LargestWidths:
    """The largest of a program: numbers of a row of activations, of logits, of keys; and heads."""

    activations: int
    logits: int
    keys: int
    n_heads: int


@lru_cache(maxsize=8)
def sizes_of(model: Recording) -> LargestWidths:
    """Six rows of the residual stream, four within the widest network, what experts give of a row, and of latent
    attention a query and its result, each in two forms."""
    ops = [each.instruction for each in model.instructions]
    head, moes = ops[-1], [op for op in ops if isinstance(op, Moe)]
    assert isinstance(head, LogitsOf)
    networks = [op.experts for op in moes] + [op.shared.expert for op in moes if op.shared]
    inner = [network.down.packed.n_cols for network in networks]
    inner += [op.weights[0].packed.n_rows for op in ops if isinstance(op, Linear) and op.act != "none"]
    absorbed = (place.n_heads * (place.head_dim + place.value_dim) for place in model.layers if place.value_dim)
    hidden, most_used = head.weight.n_cols, max((op.router.routing.n_used for op in moes), default=1)
    return LargestWidths(
        activations=(6 + most_used - 1) * hidden + 4 * max(inner, default=0) + 2 * max(absorbed, default=0),
        logits=head.weight.n_rows,
        keys=max(place.n_kv_heads * place.head_dim for place in model.layers),
        n_heads=max(model.layers, key=lambda place: place.n_heads * place.head_dim).n_heads,
    )


def encoder_bytes(recording: EncoderRecording, n_rows: int) -> int:
    """Values that are alive at once, those of an instruction's operands and results twice, and a tile of scores."""
    body = list(recording.instructions)
    widths = slot_widths(body, (), recording.given)
    alive = most_alive(body, widths, given=range(len(recording.given)))
    numbers = sum(width * n for width, n in alive.items()) + 2 * max(widths.values())
    return 4 * n_rows * numbers + SCORE_COPIES * SCORE_TILE


def step_bytes(model: Recording, ctx: int, codecs: tuple[KVCodec, ...]) -> int:
    """Activations, scores and gathered keys of one layer, logits."""
    sizes, rows = sizes_of(model), min(MAX_ROWS, ctx)
    copies = SCORE_COPIES if all(codec.native for codec in codecs) else CODED_COPIES
    scores = copies * min(SCORE_TILE, rows * sizes.n_heads * ctx * 4)
    return 4 * (rows * sizes.activations + 4 * ctx * sizes.keys + 4 * sizes.logits) + scores
