"""DeepSeek-V2 and V3: latent attention, and experts chosen by softmax (V2) or by sigmoid and bias (V3)."""

from typing import ClassVar, Literal

from localrun.base.sanitize import clean
from localrun.model.archs.experts import ExpertRules
from localrun.model.archs.latent import SIGMOID, SOFTMAX, LatentArch, unsupported
from localrun.model.fields import Fields

GLM_FLASH = ((47, 48), 154_880)  # layers, with the one that drafts or without it, and vocabulary of GLM-4.7-Flash


class DeepSeekV2(LatentArch):
    """DeepSeek-V2 and V2-Lite: latent attention, experts by softmax; GGUF files of V3, Kimi K2, Moonlight and
    GLM-4.7-Flash are of this name, too. Layers that only draft are left alone."""

    name = "deepseek2"
    gguf: ClassVar[tuple[str, ...]] = ("deepseek2",)
    hf: ClassVar[tuple[str, ...]] = ("DeepseekV2ForCausalLM",)
    experts = SOFTMAX

    def check_supported(self, fields: Fields) -> None:
        super().check_supported(fields)
        if fields.format == "gguf":
            return
        method = fields.value("topk_method")
        if method not in ("greedy", "group_limited_greedy"):
            raise unsupported(fields, f"experts chosen by {clean(str(method)[:40])!r} (topk_method)")
        if method == "greedy" and (fields["n_expert_groups"] or 1) > 1:
            raise unsupported(fields, "experts in groups that are all chosen from (topk_method, n_group)")
        if fields["normalize_experts"]:
            raise unsupported(fields, "experts whose weights sum to one beside this architecture's (norm_topk_prob)")
        if fields.value("mlp_bias"):
            raise unsupported(fields, "biases of networks (mlp_bias)")

    def expert_rules(self, fields: Fields) -> ExpertRules:
        """Rules of V2; a GGUF says by how experts are scored whose it has."""
        if fields.format != "gguf":
            return SOFTMAX
        return SIGMOID if self.score(fields) == "sigmoid" else SOFTMAX

    def score(self, fields: Fields) -> Literal["softmax", "sigmoid"]:
        """How experts are scored; the first files of GLM-4.7-Flash do not say so, nor do those of V2."""
        layers, vocabulary = GLM_FLASH
        is_flash = fields["n_layers"] in layers and fields["vocab_size"] == vocabulary
        return (SIGMOID if is_flash else SOFTMAX).read_score(fields)


class DeepSeekV3(LatentArch):
    """DeepSeek-V3, R1 and V3.1, Kimi K2 and Moonlight: V2 with experts by sigmoid and bias, of the best groups (GGUF
    files call it deepseek2). Layers that only draft are left alone."""

    name = "deepseek3"
    gguf: ClassVar[tuple[str, ...]] = ()
    hf: ClassVar[tuple[str, ...]] = ("DeepseekV3ForCausalLM",)
    experts = SIGMOID
