"""Qwen3-Next: the parent of Qwen3.5, whose checkpoints keep the matrices of linear attention together."""

from collections.abc import Mapping
from math import gcd
from typing import Any, ClassVar

from localrun.model.archs.qwen3_5 import Qwen35, Qwen35Moe
from localrun.model.config import RecurrentMixer
from localrun.model.delta_net import DeltaNet
from localrun.model.weight_ref import RowRanges


class Qwen3Next(Qwen35Moe):
    """Qwen3-Next (80B-A3B, Coder): Qwen3.5's layers, every one with experts, and its matrices fused by heads."""

    name = "qwen3_next"
    gguf: ClassVar[tuple[str, ...]] = ("qwen3next",)
    hf: ClassVar[tuple[str, ...]] = ("Qwen3NextForCausalLM",)
    gguf_names: ClassVar = {
        **Qwen35Moe.gguf_names,
        "qkvz": "blk.{}.ssm_in.weight",  # of the first files only
        "beta_alpha": "blk.{}.ssm_ba.weight",
    }
    hf_names: ClassVar = {
        **Qwen35Moe.hf_names,
        "qkvz": "layers.{}.linear_attn.in_proj_qkvz.weight",
        "beta_alpha": "layers.{}.linear_attn.in_proj_ba.weight",
    }
    defaults: ClassVar[dict[str, Any]] = Qwen35.defaults
    tiled_in_gguf = False

    def fused_rows(self, mixer: RecurrentMixer) -> Mapping[str, RowRanges]:
        """Rows of the fused matrix: for each key head its query and key, then values and gates of its value heads."""
        assert isinstance(mixer, DeltaNet)
        n, key, each = mixer.n_key_heads, mixer.key_dim, mixer.n_value_heads // mixer.n_key_heads
        values = each * mixer.value_dim
        rows, step = n * (2 * key + 2 * values), 2 * key + 2 * values

        def stretches(first: int, size: int, unit: int) -> tuple[int, ...]:
            return tuple(head + first + at for head in range(0, rows, step) for at in range(0, size, unit))

        unit = gcd(key, values)
        mixed = stretches(0, key, unit) + stretches(key, key, unit) + stretches(2 * key, values, unit)
        beta, alpha = (tuple(range(first, 2 * each * n, 2 * each)) for first in (0, each))
        return {
            "mixed": RowRanges("qkvz", mixed, rows),
            "z": RowRanges("qkvz", stretches(2 * key + values, values, values), rows),
            "beta": RowRanges("beta_alpha", beta, 2 * each * n),
            "alpha": RowRanges("beta_alpha", alpha, 2 * each * n),
        }
