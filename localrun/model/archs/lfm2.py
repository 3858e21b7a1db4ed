"""LFM2 and 2.5, also as the language model of LFM2-VL: gated short convolutions, with attention in between."""

from dataclasses import replace
from typing import Any, ClassVar

from localrun.base.errors import ModelFileError
from localrun.formats.source import TensorSource
from localrun.model.archs.base import Arch
from localrun.model.archs.experts import ExpertRules
from localrun.model.archs.names import GGUF_NAMES
from localrun.model.archs.reading import is_recurrent
from localrun.model.config import LayerSpec, ModelConfig
from localrun.model.fields import Fields
from localrun.model.short_conv import GatedShortConv

KINDS = {"conv": True, "full_attention": False}


class Lfm2(Arch):
    name = "lfm2"
    gguf: ClassVar[tuple[str, ...]] = ("lfm2",)
    hf: ClassVar[tuple[str, ...]] = ("Lfm2ForCausalLM", "Lfm2VlForConditionalGeneration")
    gguf_names: ClassVar = {
        "output_norm": "token_embd_norm.weight output_norm.weight",
        "in": "blk.{}.shortconv.in_proj.weight",
        "conv": "blk.{}.shortconv.conv.weight",
        "out": "blk.{}.shortconv.out_proj.weight",
    }
    hf_names: ClassVar = {
        "output_norm": "embedding_norm.weight",
        "attn_norm": "layers.{}.operator_norm.weight",
        "ffn_norm": "layers.{}.ffn_norm.weight",
        "o": "layers.{}.self_attn.out_proj.weight",
        "q_norm": "layers.{}.self_attn.q_layernorm.weight",
        "k_norm": "layers.{}.self_attn.k_layernorm.weight",
        "in": "layers.{}.conv.in_proj.weight",
        "conv": "layers.{}.conv.conv.weight",
        "out": "layers.{}.conv.out_proj.weight",
        "gate": "layers.{}.feed_forward.w1.weight",
        "up": "layers.{}.feed_forward.w3.weight",
        "down": "layers.{}.feed_forward.w2.weight",
    }
    qk_norm = "head"
    windows = "always"
    defaults: ClassVar[dict[str, Any]] = {"rope_theta": 1_000_000.0, "rms_eps": 1e-5, "short_conv_taps": 3}

    def check_supported(self, fields: Fields) -> None:
        super().check_supported(fields)
        if fields.value("conv_bias"):
            raise ModelFileError("UNSUPPORTED", "short convolutions with biases cannot be run", path=fields.path)

    def config(self, source: TensorSource) -> ModelConfig:
        """The config with the network size taken from its matrix:

        Ollama's converter wrote that of one without a gate.
        """
        config = super().config(source)
        gates = [source.tensors.get(GGUF_NAMES["gate"].format(index)) for index in range(config.n_layers)]
        if source.format != "gguf" or not any(gates):
            return config
        layers = (
            replace(spec, ffn_size=gate.shape[0]) if gate and not spec.mixture else spec
            for spec, gate in zip(config.layers, gates, strict=True)
        )
        return replace(config, layers=tuple(layers))

    def base_layer(self, fields: Fields) -> LayerSpec:
        return replace(super().base_layer(fields), ffn_size=self.ffn_size(fields))

    def ffn_size(self, fields: Fields) -> int:
        """Size of the network.

        A config.json gives that of one without a gate; one with a gate is made equally large.
        """
        size, adjusts = int(fields["ffn_size"]), fields.value("block_auto_adjust_ff_dim")
        if fields.format == "gguf" or not (adjusts is None or adjusts):
            return size
        multiple = int(fields["ffn_multiple"])
        wanted = int(fields["ffn_factor"] * int(2 * size / 3))
        return -(-wanted // multiple) * multiple

    def layer(self, fields: Fields, index: int, base: LayerSpec, windowed: bool) -> LayerSpec:
        if not self.is_recurrent(fields, index):
            return super().layer(fields, index, base, windowed)
        mixer = GatedShortConv(fields["hidden_size"], fields["short_conv_taps"])
        return replace(base, kind="recurrent", rope=None, qk_norm="none", mixer=mixer)

    def is_recurrent(self, fields: Fields, index: int) -> bool:
        """Whether a layer is recurrent: in a GGUF by missing key heads, else by the file's lists."""
        if fields.format == "gguf":
            return not fields.of_layer(index)["n_kv_heads"]
        said, attends = is_recurrent(fields, index, "layer_types", KINDS), fields.value("full_attn_idxs")
        if said is not None:
            return said
        if not isinstance(attends, list):
            raise fields.error("layer_types should give the kind of each layer")
        return index not in attends


class Lfm2Moe(Lfm2):
    """LFM2 as mixtures of experts (8B-A1B, 24B-A2B): chosen by sigmoid and bias, after two dense layers."""

    name = "lfm2_moe"
    gguf: ClassVar[tuple[str, ...]] = ("lfm2moe",)
    hf: ClassVar[tuple[str, ...]] = ("Lfm2MoeForCausalLM",)
    hf_names: ClassVar = {
        **Lfm2.hf_names,
        "router": "layers.{}.feed_forward.gate.weight",
        "choice_bias": "layers.{}.feed_forward.expert_bias",
        "expert_gate": "layers.{}.feed_forward.experts.{}.w1.weight",
        "expert_up": "layers.{}.feed_forward.experts.{}.w3.weight",
        "expert_down": "layers.{}.feed_forward.experts.{}.w2.weight",
        "experts_gate_up": "layers.{}.feed_forward.experts.gate_up_proj",
        "experts_down": "layers.{}.feed_forward.experts.down_proj layers.{}.feed_forward.switch_mlp.down_proj.weight",
        "experts_gate": "layers.{}.feed_forward.switch_mlp.gate_proj.weight",
        "experts_up": "layers.{}.feed_forward.switch_mlp.up_proj.weight",
        "gate": "layers.{}.feed_forward.w1.weight layers.{}.feed_forward.gate_proj.weight",
        "up": "layers.{}.feed_forward.w3.weight layers.{}.feed_forward.up_proj.weight",
        "down": "layers.{}.feed_forward.w2.weight layers.{}.feed_forward.down_proj.weight",
    }
    defaults: ClassVar[dict[str, Any]] = {**Lfm2.defaults, "n_dense_layers": 2}
    experts = ExpertRules("sigmoid", choice_bias=True)

    def ffn_size(self, fields: Fields) -> int:
        return int(fields["ffn_size"])
