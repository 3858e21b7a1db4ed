"""Mixtral: Mistral whose feed-forward parts are mixtures of experts (GGUF files call it llama)."""

from localrun.model.archs.experts import ExpertRules
from localrun.model.archs.mistral import Mistral
from localrun.model.archs.names import HF_MIXTRAL_NAMES


class Mixtral(Mistral):
    name = "mixtral"
    gguf = ()
    hf = ("MixtralForCausalLM",)
    hf_names = HF_MIXTRAL_NAMES
    experts = ExpertRules()
