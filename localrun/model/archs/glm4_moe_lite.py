"""GLM-4.7-Flash (30B-A3B): latent attention, and experts by sigmoid and bias after a dense layer (GGUF files call it
deepseek2). Layers that only draft are left alone."""

from typing import ClassVar

from localrun.model.archs.latent import SIGMOID, LatentArch
from localrun.model.fields import Fields

KINDS = ("dense", "sparse")


class Glm4MoeLite(LatentArch):
    name = "glm4_moe_lite"
    gguf: ClassVar[tuple[str, ...]] = ()
    hf: ClassVar[tuple[str, ...]] = ("Glm4MoeLiteForCausalLM",)
    experts = SIGMOID

    def layers_with_experts(self, fields: Fields) -> list[bool]:
        """Whether each layer has experts: as the file lists them, else all but the first."""
        n_layers, kinds = fields["n_layers"], fields.value("mlp_layer_types")
        if kinds is None:
            return [index > 0 for index in range(n_layers)]
        if not isinstance(kinds, list) or len(kinds) != n_layers or any(kind not in KINDS for kind in kinds):
            raise fields.error(f"mlp_layer_types should say {' or '.join(KINDS)} for each of {n_layers} layers")
        return [kind == "sparse" for kind in kinds]
