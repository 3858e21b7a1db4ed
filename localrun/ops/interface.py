"""The operations of a transformer step, their signatures and what they exchange. Four backends implement them.

Everything that changes from one step to the next stands in one StepInput; an op's other arguments are fixed when a
program is recorded. Shapes: R rows (one per token of the step), S sequences, L rows that want logits.
"""

import ctypes
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

from torch import Tensor

from localrun.ops.layouts import Packed
from localrun.ops.terms import Activation, Form, GatedActivation, QKNorm

MAX_CANDIDATES = 256
Value: TypeAlias = Any  # what an op returns: a Tensor when executed, a placeholder while a program is recorded


@dataclass(frozen=True, slots=True)
class SequenceInput:
    """One sequence of a step: tokens it holds after the step, and where its blocks are, one entry per layer group.

    `table[g][i]` is the pool block of positions 64·i … 64·i+63 counted from block `first[g]`; `ring[g]` names the
    blocks that keep 16-bit values beside a quantised codec (empty for codecs that are themselves 16 bit or wider).
    """

    length: int
    table: tuple[tuple[int, ...], ...]
    first: tuple[int, ...]
    ring: tuple[tuple[int, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class LogitAdjust:
    """How a request changes its logits before anything is chosen, by token id (OpenAI and CTRL penalties, bias)."""

    seen: Collection[int] = ()  # ids the repeat penalty speaks of: prompt and answer
    counts: Mapping[int, int] = field(default_factory=dict)  # how often each id stands in the answer
    repeat: float = 1.0
    presence: float = 0.0
    frequency: float = 0.0
    bias: Mapping[int, float] = field(default_factory=dict)
    temperature: float = 1.0  # of the logsumexp; 0 stands for 1


class CancelFlag:
    """Set from any thread; native code reads it at `address` as an int32."""

    def __init__(self) -> None:
        self._flag = ctypes.c_int32(0)

    @property
    def address(self) -> int:
        return ctypes.addressof(self._flag)

    def set(self) -> None:
        self._flag.value = 1

    def clear(self) -> None:
        self._flag.value = 0

    def is_set(self) -> bool:
        return self._flag.value != 0


@dataclass(slots=True)
class StepInput:
    """All that one step reads. `cancel` is looked at between ops; a step cut short commits nothing."""

    token_ids: Sequence[int]  # [R]
    positions: Sequence[int]  # [R]
    row_sequence: Sequence[int]  # [R], index into `sequences`
    sequences: Sequence[SequenceInput]  # [S]
    logits_rows: Sequence[int]  # [L]
    adjust: Sequence[LogitAdjust | None] = ()  # [L] or empty
    cos_sin: Sequence[tuple[Tensor, Tensor]] = ()  # per rope kind: cos and sin, f32 [R, dims / 2]
    cancel: CancelFlag = field(default_factory=CancelFlag)

    @property
    def n_rows(self) -> int:
        return len(self.token_ids)


class StepCancelled(Exception):
    """Raised by a program that saw `cancel`; nothing of the step counts."""


@dataclass(slots=True)
class Act:
    """A normalised activation in the forms its consumers asked for; the reference needs f32 alone."""

    f32: Tensor  # [R, n]


@dataclass(slots=True)
class Logits:
    """What a step knows of its next tokens. The full rows stay on the device."""

    rows: Tensor  # f32 [L, vocab], adjusted
    top_ids: Tensor  # int64 [L, ≤256], best first, ties by lower id
    top_values: Tensor  # f32 [L, ≤256]
    logsumexp: Tensor  # f32 [L], of rows / temperature
    finite: Tensor  # bool [L], of the logits before adjustment

    @property
    def argmax(self) -> Tensor:
        """int64 [L]"""
        return self.top_ids[:, 0]


class Ops(Protocol):
    """The operations. R rows in, R rows out; weights are Packed matrices [n_out, n_in] or f32 vectors."""

    def embed(self, weight: Packed, scale: float) -> Value:
        """Rows of `weight` by the step's token ids, times scale -> f32 [R, hidden]."""
        ...

    def norm(
        self, x: Value, weight: Tensor, eps: float, residual: Value | None = None, forms: tuple[Form, ...] = ("f32",)
    ) -> Value:
        """RMS norm times weight -> Act; with `residual` (post-norm form) residual + norm(x)·weight as f32 [R, n]."""
        ...

    def linear(
        self,
        a: Value,
        weights: Sequence[tuple[Packed, Tensor | None]],
        out_scale: float = 1.0,
        residual: Value | None = None,
        act: GatedActivation = "none",
    ) -> list[Value]:
        """a @ W.T + bias for every weight -> list of f32 [R, n_out].

        Each result is residual + out_scale·y. With `silu_mul`/`gelu_mul` the two weights are gate and up and the one
        result is act(gate)·up.
        """
        ...

    def rope_append(
        self,
        q: Value,
        k: Value,
        v: Value,
        layer: int,
        rope: int | None,
        qk_norm: QKNorm = "none",
        q_weight: Tensor | None = None,
        k_weight: Tensor | None = None,
        eps: float = 0.0,
    ) -> Value:
        """Norm q and k, turn them by rope kind `rope`, store k and v of every row -> q, f32 [R, n_heads, head_dim]."""
        ...

    def attention(
        self,
        q: Value,
        layer: int,
        scale: float,
        softcap: float | None = None,
        window: int | None = None,
        sinks: Tensor | None = None,
    ) -> Value:
        """Attention of every row over the stored keys of its sequence -> f32 [R, n_heads·head_dim].

        A query at p sees key t iff t <= p, and p - t < window where there is one. Scores are scale·q·k, then
        softcap·tanh(score/softcap). `sinks` [n_heads] are learned scores that join the softmax and add no value.
        """
        ...

    def moe(
        self,
        a: Value,
        router: Packed,
        experts: Sequence[tuple[Packed, Packed, Packed]],
        top_k: int,
        norm_weights: bool,
        activation: Activation = "silu",
    ) -> Value:
        """Sum of the top_k experts (gate, up, down) by softmax router weight, in router order -> f32 [R, hidden]."""
        ...

    def logits(self, a: Value, weight: Packed, scale: float = 1.0, softcap: float | None = None) -> Value:
        """Logits of the step's `logits_rows`, penalties and bias applied by id -> Logits."""
        ...


@dataclass(frozen=True, slots=True)
class CacheLayer:
    """Where one layer keeps its keys and values, and their shape."""

    group: int
    index: int  # within the group's pool
    n_heads: int
    n_kv_heads: int
    head_dim: int
