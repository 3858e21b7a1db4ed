"""Gemma 2: norms before and after each block, soft-capped scores and logits, every second layer windowed."""

from typing import ClassVar

from localrun.model.archs.gemma import Gemma
from localrun.model.archs.names import HF_POST_NORM_NAMES
from localrun.model.fields import Fields


class Gemma2(Gemma):
    name = "gemma2"
    gguf: ClassVar[tuple[str, ...]] = ("gemma2",)
    hf: ClassVar[tuple[str, ...]] = ("Gemma2ForCausalLM",)
    hf_names = HF_POST_NORM_NAMES
    post_norm = True
    windows = "always"
    full_every = 2
    defaults: ClassVar = {
        "window": 4096,
        "attn_softcap": 50.0,
        "logit_softcap": 30.0,
        "query_pre_attn_scalar": 256.0,
    }
    n_layers_27b = 46  # the one size whose GGUF needs another attention scale

    def attn_scale(self, fields: Fields, head_dim: int) -> float:
        if fields.format != "gguf":
            return float(fields.required("query_pre_attn_scalar") ** -0.5)
        if fields["n_layers"] == self.n_layers_27b:
            return float((fields["hidden_size"] / fields["n_heads"]) ** -0.5)
        return float(head_dim**-0.5)
