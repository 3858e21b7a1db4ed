"""Nemotron-H and Nemotron Nano 2 and 3: a layer is one block, Mamba-2, attention without positions, or a network."""

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar, Literal

from localrun.base.errors import ModelFileError
from localrun.base.sanitize import clean
from localrun.model.archs.experts import ExpertRules
from localrun.model.archs.hf_classes import LAYER_LISTS
from localrun.model.archs.mamba import MambaArch, mamba_names
from localrun.model.config import LayerSpec
from localrun.model.fields import Fields
from localrun.ops.types import Activation

BlockKind = Literal["mamba", "attention", "dense", "experts"]
BLOCKS: dict[str, BlockKind] = {
    **dict.fromkeys(("M", "mamba", "linear_attention"), "mamba"),
    **dict.fromkeys(("*", "attention", "full_attention"), "attention"),
    **dict.fromkeys(("-", "mlp"), "dense"),
    **dict.fromkeys(("E", "moe"), "experts"),
}
NORM = {"gguf": "blk.{}.attn_norm.weight", "hf": "layers.{}.norm.weight"}


class NemotronH(MambaArch):
    name = "nemotron_h"
    gguf: ClassVar[tuple[str, ...]] = ("nemotron_h", "nemotron_h_moe", "nemotron_h_omni")
    hf: ClassVar[tuple[str, ...]] = ("NemotronHForCausalLM",)
    gguf_names: ClassVar = {**MambaArch.gguf_names, "attn_norm": NORM["gguf"], "ffn_norm": NORM["gguf"]}
    hf_names: ClassVar = {
        **mamba_names("mixer"),
        "embed": "embeddings.weight",
        "output_norm": "norm_f.weight",
        "attn_norm": NORM["hf"],
        "ffn_norm": NORM["hf"],
        **{name: f"layers.{{}}.mixer.{name}_proj.weight" for name in ("q", "k", "v", "o", "up", "down")},
        **{f"{name}_bias": f"layers.{{}}.mixer.{name}_proj.bias" for name in ("q", "k", "v", "o", "up", "down")},
        "router": "layers.{}.mixer.gate.weight",
        "choice_bias": "layers.{}.mixer.gate.e_score_correction_bias",
        "expert_up": "layers.{}.mixer.experts.{}.up_proj.weight",
        "expert_down": "layers.{}.mixer.experts.{}.down_proj.weight",
        "experts_up": "layers.{}.mixer.switch_mlp.fc1.weight",
        "experts_down": "layers.{}.mixer.switch_mlp.fc2.weight",
        "shared_up": "layers.{}.mixer.shared_experts.up_proj.weight",
        "shared_down": "layers.{}.mixer.shared_experts.down_proj.weight",
    }
    activation = "relu_squared"
    experts = ExpertRules(score="sigmoid", choice_bias=True)

    def check_supported(self, fields: Fields) -> None:
        super().check_supported(fields)
        latent = f"{fields.prefix}.moe_latent_size" if fields.format == "gguf" else "moe_latent_size"
        if size := fields.value(latent):
            what = f"its experts read a latent of {clean(str(size)[:20])} numbers (moe_latent_size, Nemotron 3 Super)"
            raise ModelFileError("UNSUPPORTED", f"{what}, which cannot be run", path=fields.path)

    def layers(self, fields: Fields) -> tuple[LayerSpec, ...]:
        n_layers = fields["n_layers"] - fields["n_draft_layers"]
        blocks = self.blocks(fields)[:n_layers]
        if not {"mamba", "attention"} & set(blocks):
            raise fields.error("no layer has attention or a state")
        return tuple(self.block(fields.of_layer(index), block) for index, block in enumerate(blocks))

    def block(self, fields: Fields, block: BlockKind) -> LayerSpec:
        """The layer of one block, with the other parts empty."""
        base = replace(self.base_layer(fields), rope=None)
        if block in ("dense", "experts"):
            if not base.ffn_size:
                raise fields.error("a layer has a network of no size")
            spec = replace(base, kind="none")
            return self.experts.layer(spec, fields) if block == "experts" else spec
        if block == "mamba":
            return replace(base, kind="recurrent", mixer=self.mamba(fields), ffn_size=0)
        if not base.n_kv_heads:
            raise fields.error("a layer with attention has no heads of keys and values")
        return replace(base, ffn_size=0)

    def blocks(self, fields: Fields) -> Sequence[BlockKind]:
        """The block of each layer: in a GGUF by its sizes, else as the file says."""
        if fields.format == "gguf":
            return [self.block_of_sizes(fields.of_layer(index)) for index in range(fields["n_layers"])]
        key = next((key for key in LAYER_LISTS if fields.value(key)), LAYER_LISTS[0])
        said = fields.value(key)
        if not isinstance(said, (list, str)) or len(said) != fields["n_layers"]:
            raise fields.error(f"{fields.spelled(key)} should give the kind of each layer")
        unknown = next((str(word) for word in said if not isinstance(word, str) or word not in BLOCKS), None)
        if unknown is not None:
            raise ModelFileError("UNSUPPORTED", f"unknown layer type {clean(unknown[:40])!r}", path=fields.path)
        return [BLOCKS[word] for word in said]

    def block_of_sizes(self, fields: Fields) -> BlockKind:
        if fields["ffn_size"]:
            return "experts" if fields["n_experts"] else "dense"
        return "attention" if fields["n_kv_heads"] else "mamba"

    def state_width(self, fields: Fields, n_heads: int) -> int:
        return (
            super().state_width(fields, n_heads)
            if fields.format == "gguf"
            else (n_heads * int(fields.required("state_value_dim")))
        )

    def read_activation(self, fields: Fields) -> Activation:
        name = None if fields.format == "gguf" else fields.value("mlp_hidden_act")
        if name not in (None, "relu2"):
            raise ModelFileError("UNSUPPORTED", f"unknown activation {clean(str(name))!r}", path=fields.path)
        return self.activation
