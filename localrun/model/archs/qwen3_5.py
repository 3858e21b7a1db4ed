"""Qwen3.5, 3.6 and 3.8: three layers with Gated DeltaNet to each one with gated attention."""

from dataclasses import replace
from typing import ClassVar

from localrun.formats.source import TensorSource
from localrun.model.archs.base import Arch
from localrun.model.archs.experts import ExpertRules
from localrun.model.archs.names import HF_EXPERT_NAMES, HF_FUSED_EXPERTS, HF_SHARED_EXPERT
from localrun.model.archs.reading import draft_place, is_recurrent
from localrun.model.archs.rope_axes import AxisRule
from localrun.model.config import LayerSpec
from localrun.model.delta_net import DeltaNet
from localrun.model.fields import Fields

KINDS = {"linear_attention": True, "full_attention": False}


class Qwen35(Arch):
    name = "qwen3_5"
    gguf: ClassVar[tuple[str, ...]] = ("qwen35",)
    hf: ClassVar[tuple[str, ...]] = ("Qwen3_5ForCausalLM", "Qwen3_5ForConditionalGeneration")
    gguf_names: ClassVar = {"ffn_norm": "blk.{}.post_attention_norm.weight"}
    hf_norm_offset = 1.0
    qk_norm = "head"
    axes = AxisRule(interleaved=True, sections=(11, 11, 10))
    tiled_in_gguf: ClassVar[bool] = True  # heads of values lie in the order in which ggml repeats those of keys
    defaults: ClassVar = {"partial_rotary_factor": 0.25, "rms_eps": 1e-6}

    def layer(self, fields: Fields, index: int, base: LayerSpec, windowed: bool) -> LayerSpec:
        if self.is_recurrent(fields, index):
            return replace(base, kind="recurrent", rope=None, qk_norm="none", mixer=self.delta_net(fields))
        return replace(base, gated=True)

    def draft_layer(self, source: TensorSource, fields: Fields) -> LayerSpec | None:
        """A layer with gated attention (multi-token prediction), which a GGUF has after all others."""
        index = fields["n_layers"] - fields["n_draft_layers"]
        if draft_place(source, index) is None:
            return None
        base = self.base_layer(fields.of_layer(index) if fields.listed() else fields)
        spec = replace(base, gated=True)
        return self.experts.layer(spec, fields) if self.experts is not None else spec

    def is_recurrent(self, fields: Fields, index: int) -> bool:
        """Whether a layer is recurrent: by the file's list, or all but every n-th. Some have no key heads."""
        if fields.format == "gguf" and "n_kv_heads" in fields.listed():
            return not fields.of_layer(index)["n_kv_heads"]
        if fields.format == "gguf":
            said = is_recurrent(fields, index, f"{fields.prefix}.attention.recurrent_layers")
        else:
            said = is_recurrent(fields, index, "layer_types", KINDS)
        return (index + 1) % int(fields["full_every"]) != 0 if said is None else said

    def delta_net(self, fields: Fields) -> DeltaNet:
        names = ("conv_taps", "n_key_heads", "n_value_heads", "state_key_dim")
        taps, n_keys, n_values, key_dim = (fields.required(name) for name in names)
        gguf = fields.format == "gguf"
        value_dim = fields.required("state_width") // n_values if gguf else fields.required("state_value_dim")
        if n_values % n_keys or not value_dim:
            raise fields.error(f"{n_values} heads of values cannot share {n_keys} heads of keys")
        said = fields.value(f"{fields.prefix}.ssm.v_head_reordered") if gguf else False
        tiled = self.tiled_in_gguf if said is None else bool(said)
        return DeltaNet(n_keys, n_values, key_dim, value_dim, taps, fields["rms_eps"], tiled)


class Qwen35Moe(Qwen35):
    """Qwen3.5 and 3.6 as mixtures of experts (35B-A3B): every layer has some, and a shared one with a gate."""

    name = "qwen3_5_moe"
    gguf: ClassVar[tuple[str, ...]] = ("qwen35moe",)
    hf: ClassVar[tuple[str, ...]] = ("Qwen3_5MoeForCausalLM", "Qwen3_5MoeForConditionalGeneration")
    hf_names: ClassVar = {**HF_EXPERT_NAMES, **HF_FUSED_EXPERTS, **HF_SHARED_EXPERT}
    defaults: ClassVar = {**Qwen35.defaults, "ffn_size": 0}  # no layer is dense
    experts = ExpertRules(shared_gate=True)
