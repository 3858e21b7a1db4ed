"""The words that models and operations share. Torch-free."""

from typing import Literal

QKNorm = Literal["none", "head", "row"]  # of q and k: none, each head by itself, the whole row
Activation = Literal["silu", "gelu"]  # gelu is its tanh approximation
GatedActivation = Literal["none", "silu_mul", "gelu_mul"]
Form = Literal["f32", "q8", "bf16"]  # in which a norm hands its result on
