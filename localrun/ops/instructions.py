"""Instructions: every operation of a step with its operands. Those with a state are in `recurrent.py`, those of
latent attention in `latent.py`, those of encoders in `encoder.py`.

The decoder gives them to a recorder once; the reference executes them as they are, the native library translates them
into its own. An operand that changes from step to step is a Slot while a program is recorded and what a backend
computes with when it is executed. Shapes: R rows (one per token of the step), L rows that want logits.
"""

from __future__ import annotations

from typing import ClassVar, TypeAlias, get_args

from localrun.base.dataclass import dataclass
from localrun.ops.encoder import Clamp, LayerNorm, SelfAttention
from localrun.ops.latent import HeadLinear, LatentAppend
from localrun.ops.layouts import Packed, Vector
from localrun.ops.linear_weight import LinearWeight as LinearWeight
from localrun.ops.linear_weight import LowRank as LowRank
from localrun.ops.recurrent import GatedDeltaRule, SelectiveScan, ShortConv
from localrun.ops.types import LinearActivation, QKNorm, Routing, Value


@dataclass(frozen=True, slots=True)
class Slot:
    """The future result of a recorded operation."""

    index: int


@dataclass(frozen=True, slots=True)
class Embed:
    """Rows of `weight` by the step's token ids, times `scale` -> f32 [R, hidden].

    Rows of images are those of the step's buffer, unscaled; with an `image_id` they are read like that token.
    """

    name: ClassVar = "embed"
    n_results: ClassVar = 1
    weight: Packed  # [vocab, hidden]
    scale: float = 1.0
    image_id: int | None = None


@dataclass(frozen=True, slots=True)
class AddImageRows:
    """x, plus what the step has to add to rows of images in `place` -> f32 [R, n]."""

    name: ClassVar = "add_image_rows"
    n_results: ClassVar = 1
    x: Value
    place: int


@dataclass(frozen=True, slots=True)
class Norm:
    """RMS norm of every `size` numbers of `x` times `weight`, plus `residual` where there is one -> f32 [R, n]."""

    name: ClassVar = "norm"
    n_results: ClassVar = 1
    x: Value  # [R, n]
    weight: Vector  # [size]
    eps: float
    residual: Value | None = None  # [R, n]


@dataclass(frozen=True, slots=True)
class Linear:
    """residual + out_scale · (scale · (a @ W.T) + adapters + bias) for every weight -> as many f32 [R, n_out].

    With a gated activation the two weights are gate and up, and the one result is act(gate) · up. The others have one
    weight.
    """

    name: ClassVar = "linear"
    a: Value  # [R, n_in]
    weights: tuple[LinearWeight, ...]
    out_scale: float = 1.0
    residual: Value | None = None  # [R, n_out]
    act: LinearActivation = "none"

    @property
    def n_results(self) -> int:
        return len(self.weights) if self.act == "none" else 1


@dataclass(frozen=True, slots=True)
class RopeAppend:
    """Norm q and k, turn them by rope kind `rope`, store k and v of every row -> q, f32 [R, n_heads, head_dim].

    With `v_norm` heads of v have the norm of k, without a weight. Without k and v nothing is stored: the keys and
    values in `layer` are another's.
    With `sink_query` a second result: the same q turned by `sink_cos_sin`, for the keys of block 0. A codec that
    rotates has all of them rotated: the stored k and v, and both queries.
    """

    name: ClassVar = "rope_append"
    q: Value  # [R, n_heads · head_dim]
    k: Value | None  # [R, n_kv_heads · head_dim]
    v: Value | None  # [R, n_kv_heads · head_dim]
    layer: int
    rope: int | None  # None: positions are not encoded
    qk_norm: QKNorm = "none"
    q_weight: Vector = None  # with a norm: of a head or of the whole row
    k_weight: Vector = None  # likewise
    eps: float = 0.0  # of the norm
    v_norm: bool = False
    sink_query: bool = False

    @property
    def n_results(self) -> int:
        return 1 + self.sink_query


@dataclass(frozen=True, slots=True)
class Attention:
    """Attention of every row over the stored keys of its sequence -> f32 [R, n_heads · head_dim], or [R, n_heads ·
    value_dim] where a layer's values are the first dims of its keys.

    A query at p sees key t iff t <= p, and p - t < window where there is one. Scores are scale · q·k, then
    softcap · tanh(score / softcap). `sinks` [n_heads] are learned scores that join the softmax and add no value.
    With `spans` it sees t <= the row's `reach` in the step, in the place of t <= p: rows of an image see each other.
    With `sink_window` W (never beside `window`) it sees t iff t <= p and (p - t < W or t < 64), and the keys of
    block 0 are scored with `sink_query` where there is one (Xiao et al. 2023, with keys left where they are).
    """

    name: ClassVar = "attention"
    n_results: ClassVar = 1
    q: Value  # [R, n_heads, head_dim]
    layer: int
    scale: float
    softcap: float | None = None
    window: int | None = None  # tokens
    sinks: Vector | None = None  # [n_heads]
    sink_query: Value | None = None  # [R, n_heads, head_dim]
    sink_window: int | None = None  # tokens
    spans: bool = False


@dataclass(frozen=True, slots=True)
class SigmoidMul:
    """x · sigmoid(gate), element by element -> f32 [R, n]."""

    name: ClassVar = "sigmoid_mul"
    n_results: ClassVar = 1
    x: Value
    gate: Value


@dataclass(frozen=True, slots=True)
class GeluMul:
    """gelu(gate) · the n numbers of x from number `first` on, element by element -> f32 [R, n]."""

    name: ClassVar = "gelu_mul"
    n_results: ClassVar = 1
    gate: Value  # [R, n]
    x: Value  # [R, first + n or more]
    first: int = 0


@dataclass(frozen=True, slots=True)
class Scale:
    """factor · x -> f32 [R, n]."""

    name: ClassVar = "scale"
    n_results: ClassVar = 1
    x: Value
    factor: float


@dataclass(frozen=True, slots=True)
class Xielu:
    """Where x > 0 positive · x² + linear · x, else negative · (e^min(x, limit) - 1 - x) + linear · x -> f32 [R, n].

    xIELU (Huang and Schlag 2024, arXiv 2411.13010) with its learned numbers.
    """

    name: ClassVar = "xielu"
    n_results: ClassVar = 1
    x: Value
    positive: float
    negative: float
    linear: float
    limit: float


@dataclass(frozen=True, slots=True)
class Router:
    """Chooses experts for a row by a @ weight.T + bias, as its `routing` says. What an expert gives counts as much more
    as its `scale` says."""

    weight: Packed  # [n_experts, hidden]
    routing: Routing
    bias: Vector | None = None  # [n_experts]
    choice_bias: Vector | None = None  # [n_experts]
    scale: Vector | None = None  # [n_experts]

    @property
    def n_experts(self) -> int:
        return self.weight.n_rows


@dataclass(frozen=True, slots=True)
class Experts:
    """Networks of one shape, one after the other: gate and up [n · ffn, hidden], down [n · hidden, ffn]."""

    gate: LinearWeight | None  # None: the activation has none
    up: LinearWeight
    down: LinearWeight
    act: LinearActivation = "silu_mul"

    @property
    def widening(self) -> tuple[LinearWeight, ...]:
        """Gate and up, or up alone."""
        return (self.up,) if self.gate is None else (self.gate, self.up)


@dataclass(frozen=True, slots=True)
class SharedExpert:
    """A network that every row goes through, too, weighted by the sigmoid of a @ gate.T; by 1 without a gate."""

    expert: Experts
    gate: Packed | None = None  # [1, hidden]


@dataclass(frozen=True, slots=True)
class Moe:
    """residual + out_scale · (each row's chosen experts, weighted, summed best first, + the shared one)

    -> f32 [R, hidden]. The router reads `a`, or `chosen_by` where there is one.
    """

    name: ClassVar = "moe"
    n_results: ClassVar = 1
    a: Value  # [R, hidden]
    router: Router
    experts: Experts
    shared: SharedExpert | None = None
    out_scale: float = 1.0
    residual: Value | None = None  # [R, hidden]
    chosen_by: Value | None = None  # [R, hidden]


@dataclass(frozen=True, slots=True)
class LogitsOf:
    """Logits of the step's `logits_rows`, scaled, softcapped, penalties and bias applied by id

    -> Logits: the rows, f32 [L, vocab], and the best of each. With them a step gives `a` and the rows `beside`.
    """

    name: ClassVar = "logits"
    n_results: ClassVar = 1
    a: Value  # [R, hidden]
    weight: Packed  # [vocab, hidden]
    scale: float = 1.0
    softcap: float | None = None
    beside: Value | None = None  # [R, n]


Instruction: TypeAlias = (
    Embed
    | AddImageRows
    | Norm
    | Linear
    | RopeAppend
    | Attention
    | HeadLinear
    | LatentAppend
    | SigmoidMul
    | GeluMul
    | Scale
    | Xielu
    | ShortConv
    | GatedDeltaRule
    | SelectiveScan
    | Moe
    | LayerNorm
    | Clamp
    | SelfAttention
    | LogitsOf
)
INSTRUCTIONS: tuple[type[Instruction], ...] = get_args(Instruction)
