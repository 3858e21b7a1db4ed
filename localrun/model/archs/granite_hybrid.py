"""Granite 4 and 4 H: layers with Mamba-2 and some with attention, each followed by experts or a dense part."""

from dataclasses import replace
from typing import ClassVar

from localrun.model.archs.granite_moe import GraniteMoe
from localrun.model.archs.mamba import MambaArch, mamba_names
from localrun.model.archs.reading import is_recurrent
from localrun.model.config import LayerSpec
from localrun.model.fields import Fields

KINDS = {"mamba": True, "linear_attention": True, "attention": False, "full_attention": False}


class GraniteHybrid(MambaArch, GraniteMoe):
    name = "granite_hybrid"
    gguf: ClassVar[tuple[str, ...]] = ("granitehybrid",)
    hf: ClassVar[tuple[str, ...]] = ("GraniteMoeHybridForCausalLM",)
    hf_names: ClassVar = {
        **GraniteMoe.hf_names,
        **mamba_names("mamba"),
        "gate_up": "layers.{}.shared_mlp.input_linear.weight",
        "down": "layers.{}.shared_mlp.output_linear.weight layers.{}.mlp.down_proj.weight",
    }

    def base_layer(self, fields: Fields) -> LayerSpec:
        """A layer without what depends on its position; without experts the dense part is named a shared one."""
        base = super().base_layer(fields)
        if fields.format == "gguf" or fields["n_experts"]:
            return base
        return replace(base, ffn_size=fields.required("shared_ffn_size"))

    def layer(self, fields: Fields, index: int, base: LayerSpec, windowed: bool) -> LayerSpec:
        if self.is_recurrent(fields, index):
            return replace(base, kind="recurrent", rope=None, mixer=self.mamba(fields))
        return super().layer(fields, index, base, windowed)

    def is_recurrent(self, fields: Fields, index: int) -> bool:
        """Whether a layer is recurrent: in a GGUF by missing key heads, else by the file's list."""
        if fields.format == "gguf":
            return not fields.of_layer(index)["n_kv_heads"]
        said = is_recurrent(fields, index, "layer_types", KINDS)
        if said is None:
            raise fields.error("layer_types should give the kind of each layer")
        return said

    def uses_rope(self, fields: Fields) -> bool:
        if fields.format == "gguf":
            return super().uses_rope(fields)
        return bool(fields.value("position_embedding_type") == "rope")
