"""OLMo 2: norms only after each block, and one norm over the whole row of q and of k."""

from localrun.model.archs.base import HF_POST_NORM_NAMES, Arch


class Olmo2(Arch):
    name = "olmo2"
    gguf = ("olmo2",)
    hf = ("Olmo2ForCausalLM",)
    hf_names = HF_POST_NORM_NAMES
    pre_norm = False
    post_norm = True
    qk_norm = "row"
