"""The words that models and operations share. Torch-free."""

from typing import Literal

QKNorm = Literal["none", "head", "row"]  # of q and k: none, each head by itself, the whole row
Activation = Literal["silu", "gelu", "clamped_silu"]  # gelu is its tanh approximation
GatedActivation = Literal["none", "silu_mul", "gelu_mul", "clamped_silu_mul"]  # the last: see CLAMP

# gpt-oss: gate and up are clamped to CLAMP, up on both sides; then gate · sigmoid(SLOPE · gate) · (up + 1)
CLAMP, SLOPE = 7.0, 1.702
