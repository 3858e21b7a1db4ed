"""Types and constants that models and operations share. Torch-free."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from localrun.base.dataclass import dataclass

Value: TypeAlias = Any  # of a step: a Slot while a program is recorded, a Tensor when the reference executes it
QKNorm = Literal["none", "head", "row"]  # of q and k: none, each head by itself, the whole row
Activation = Literal["silu", "gelu", "clamped_silu", "relu_squared", "xielu"]  # gelu is its tanh approximation
# What a linear ends with: act(gate) · up of two products (clamped: see CLAMP), or an activation of one: max(0, y)²
# (So et al. 2021), GELU by tanh, as y · Φ(y), or as y · sigmoid(1.702 · y) (Hendrycks and Gimpel 2016).
GatedActivation = Literal["silu_mul", "gelu_mul", "clamped_silu_mul"]
SingleActivation = Literal["relu_squared", "gelu", "gelu_erf", "gelu_quick"]
LinearActivation = Literal["none"] | GatedActivation | SingleActivation

# gpt-oss: gate and up are clamped to CLAMP, up on both sides; then gate · sigmoid(SLOPE · gate) · (up + 1)
CLAMP, SLOPE = 7.0, 1.702


# How results are rounded, by number: what is kept on disk was computed with the rounding of one version. The arithmetic
# of an instruction set counts by its name (`NativeLibrary.arithmetic`), so others keep their blocks.
NUMERICS_VERSION = 5  # LR_NUMERICS_VERSION of kernels/cpu/localrun_cpu.h
ENCODER_NUMERICS = 2  # goes up where towers alone are rounded otherwise
ADAPTER_NUMERICS = 2  # likewise products of adapters


@dataclass(frozen=True, slots=True)
class Routing:
    """Which experts of a mixture a row goes to, and how much each counts, given the router's output for the row.

    Its softmax or sigmoid are the scores. The `n_used` experts with the highest score + choice bias are chosen, only of
    the `n_groups_used` best groups where there are groups; a group is as good as its best expert, or as the sum of its
    two best (`group_rank` 1 or 2). Their scores are the weights, which sum to one with `normalize`, times `scale`.
    (DeepSeek-V3, arXiv 2412.19437; gpt-oss and Qwen3 have neither groups nor a choice bias.)
    """

    n_used: int
    score: Literal["softmax", "sigmoid"] = "softmax"
    normalize: bool = True
    scale: float = 1.0
    n_groups: int = 1
    n_groups_used: int = 1
    group_rank: Literal[1, 2] = 2
