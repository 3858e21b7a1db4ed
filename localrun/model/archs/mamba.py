"""Mamba-2 layers, shared by architectures: their keys and weights in files. Torch-free."""

from collections.abc import Mapping
from math import inf
from typing import ClassVar

from localrun.base.errors import ModelFileError
from localrun.model.archs.base import Arch
from localrun.model.config import RecurrentMixer
from localrun.model.fields import Fields
from localrun.model.mamba2 import Mamba2
from localrun.model.weight_ref import RowRanges

NO_LIMITS = (None, [0.0, inf])
BIASES = ("mamba_proj_bias", "use_bias")
CONV_BIASES = ("mamba_conv_bias", "use_conv_bias")
GGUF_IN = "blk.{}.ssm_in.weight"


def mamba_names(block: str) -> dict[str, str]:
    """The tensors of a Mamba-2 layer in a checkpoint that calls it `block`."""
    prefix = f"layers.{{}}.{block}."
    return {
        **dict.fromkeys(("z", "xbc", "dt"), prefix + "in_proj.weight"),
        "conv": prefix + "conv1d.weight",
        "conv_bias": prefix + "conv1d.bias",
        "decay": prefix + "A_log",
        "dt_bias": prefix + "dt_bias",
        "skip": prefix + "D",
        "gated_norm": prefix + "norm.weight",
        "out": prefix + "out_proj.weight",
    }


class MambaArch(Arch):
    gguf_names: ClassVar = {"z": GGUF_IN, "xbc": GGUF_IN, "dt": GGUF_IN}

    def check_supported(self, fields: Fields) -> None:
        super().check_supported(fields)
        if any(fields.value(key) for key in BIASES) or any(fields.value(key) is False for key in CONV_BIASES):
            raise ModelFileError("UNSUPPORTED", "Mamba-2 with such biases cannot be run", path=fields.path)
        if fields.values_by_key.get("time_step_limit") not in NO_LIMITS:
            message = f"Mamba-2 with limited time steps ({fields.spelled('time_step_limit')}) cannot be run"
            raise ModelFileError("UNSUPPORTED", message, path=fields.path)

    def mamba(self, fields: Fields) -> Mamba2:
        names = ("n_value_heads", "n_key_heads", "state_key_dim", "conv_taps")
        n_heads, n_groups, state_dim, taps = (fields.required(name) for name in names)
        width = self.state_width(fields, n_heads)
        if width % n_heads or n_heads % n_groups:
            raise fields.error(f"a state of {width:,} cannot be split into {n_heads} heads of {n_groups} groups")
        return Mamba2(n_heads, width // n_heads, n_groups, state_dim, taps, fields["rms_eps"])

    def state_width(self, fields: Fields, n_heads: int) -> int:
        """Width of the state, of all heads together."""
        if fields.format == "gguf":
            return int(fields.required("state_width"))
        return int(fields["state_expand"] * fields["hidden_size"])

    def fused_rows(self, mixer: RecurrentMixer) -> Mapping[str, RowRanges]:
        assert isinstance(mixer, Mamba2)
        n_rows, starts = mixer.width + mixer.channels + mixer.n_heads, (0, mixer.width, mixer.width + mixer.channels)
        return {name: RowRanges(name, (start,), n_rows) for name, start in zip(("z", "xbc", "dt"), starts, strict=True)}

    def vector_in_gguf(self, mixer: RecurrentMixer, name: str, sizes: tuple[int, ...]) -> tuple[int, ...]:
        assert isinstance(mixer, Mamba2)
        if name == "gated_norm":
            return (mixer.n_groups, mixer.width // mixer.n_groups)
        return (*sizes, 1) if name in ("decay", "skip") else sizes
