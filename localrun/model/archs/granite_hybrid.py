"""Granite 4 and 4 H: layers with Mamba-2 and some with attention, each followed by experts or a dense part."""

from collections.abc import Mapping
from dataclasses import replace
from math import inf
from typing import ClassVar

from localrun.base.errors import ModelFileError
from localrun.model.archs.experts import ExpertRules
from localrun.model.archs.granite import Granite
from localrun.model.archs.reading import is_recurrent
from localrun.model.config import LayerSpec, RecurrentMixer
from localrun.model.fields import Fields
from localrun.model.mamba2 import Mamba2
from localrun.model.weight_ref import Stretches

KINDS = {"mamba": True, "linear_attention": True, "attention": False, "full_attention": False}
NO_LIMITS = (None, [0.0, inf], [0.0, {"__float__": "Infinity"}])
GGUF_IN, HF_IN = "blk.{}.ssm_in.weight", "layers.{}.mamba.in_proj.weight"


class GraniteHybrid(Granite):
    name = "granite_hybrid"
    gguf: ClassVar[tuple[str, ...]] = ("granitehybrid",)
    hf: ClassVar[tuple[str, ...]] = ("GraniteMoeHybridForCausalLM",)
    gguf_names: ClassVar = {"z": GGUF_IN, "xbc": GGUF_IN, "dt": GGUF_IN}
    hf_names: ClassVar = {
        **dict.fromkeys(("z", "xbc", "dt"), HF_IN),
        "conv": "layers.{}.mamba.conv1d.weight",
        "conv_bias": "layers.{}.mamba.conv1d.bias",
        "decay": "layers.{}.mamba.A_log",
        "dt_bias": "layers.{}.mamba.dt_bias",
        "skip": "layers.{}.mamba.D",
        "gated_norm": "layers.{}.mamba.norm.weight",
        "out": "layers.{}.mamba.out_proj.weight",
        "gate_up": "layers.{}.shared_mlp.input_linear.weight",
        "down": "layers.{}.shared_mlp.output_linear.weight",
        "router": "layers.{}.block_sparse_moe.router.layer.weight",
        "experts_gate_up": "layers.{}.block_sparse_moe.input_linear.weight",
        "experts_down": "layers.{}.block_sparse_moe.output_linear.weight",
        "shared_gate_up": "layers.{}.shared_mlp.input_linear.weight",
        "shared_down": "layers.{}.shared_mlp.output_linear.weight",
    }
    experts = ExpertRules()

    def check_supported(self, fields: Fields) -> None:
        super().check_supported(fields)
        values = fields.values_by_key
        if values.get("mamba_proj_bias") or values.get("mamba_conv_bias") is False:
            raise ModelFileError("UNSUPPORTED", "Mamba-2 with such biases cannot be run", path=fields.path)
        if values.get("time_step_limit") not in NO_LIMITS:
            raise ModelFileError("UNSUPPORTED", "Mamba-2 with limited time steps cannot be run", path=fields.path)

    def base_layer(self, fields: Fields) -> LayerSpec:
        """Without experts a checkpoint calls the dense part a shared one."""
        base = super().base_layer(fields)
        if fields.format == "gguf" or fields["n_experts"]:
            return base
        return replace(base, ffn_size=fields.required("shared_ffn_size"))

    def layer(self, fields: Fields, index: int, base: LayerSpec, windowed: bool) -> LayerSpec:
        if self.is_recurrent(fields, index):
            return replace(base, kind="recurrent", rope=None, mixer=self.mamba(fields))
        return base if self.uses_rope(fields) else replace(base, rope=None)

    def is_recurrent(self, fields: Fields, index: int) -> bool:
        """In a GGUF, layers without heads of keys; else as the file says it of each."""
        if fields.format == "gguf":
            return not fields.of_layer(index)["n_kv_heads"]
        said = is_recurrent(fields, index, "layer_types", KINDS)
        if said is None:
            raise fields.error("layer_types should say of each layer what it is")
        return said

    def uses_rope(self, fields: Fields) -> bool:
        if fields.format == "gguf":
            return fields.values_by_key.get(f"{fields.prefix}.rope.scaling.finetuned") is not False
        return fields.values_by_key.get("position_embedding_type") == "rope"

    def mamba(self, fields: Fields) -> Mamba2:
        names = ("n_value_heads", "n_key_heads", "state_key_dim", "conv_taps")
        n_heads, n_groups, state_dim, taps = (fields.required(name) for name in names)
        gguf = fields.format == "gguf"
        width = fields.required("state_width") if gguf else fields["state_expand"] * fields["hidden_size"]
        if width % n_heads or n_heads % n_groups:
            raise fields.error(f"a state of {width:,} cannot be split into {n_heads} heads of {n_groups} groups")
        return Mamba2(n_heads, width // n_heads, n_groups, state_dim, taps, fields["rms_eps"])

    def fused_rows(self, mixer: RecurrentMixer) -> Mapping[str, Stretches]:
        assert isinstance(mixer, Mamba2)
        n_rows, starts = mixer.width + mixer.channels + mixer.n_heads, (0, mixer.width, mixer.width + mixer.channels)
        return {name: Stretches(name, (start,), n_rows) for name, start in zip(("z", "xbc", "dt"), starts, strict=True)}

    def vector_in_gguf(self, mixer: RecurrentMixer, name: str, sizes: tuple[int, ...]) -> tuple[int, ...]:
        assert isinstance(mixer, Mamba2)
        if name == "gated_norm":
            return (mixer.n_groups, mixer.width // mixer.n_groups)
        return (*sizes, 1) if name in ("decay", "skip") else sizes
