"""Apertus: Llama with norms of q and k heads, and networks without a gate, whose activation has learned numbers."""

from dataclasses import replace
from typing import Any, ClassVar

from localrun.base.errors import ModelFileError
from localrun.base.sanitize import clean
from localrun.model.archs.base import Arch
from localrun.model.config import LayerSpec
from localrun.model.fields import Fields
from localrun.model.xielu import XieluNumbers
from localrun.ops.types import Activation

NUMBERS = ("alpha_p", "alpha_n", "beta", "eps")  # of XieluNumbers, in its order
LARGEST = 1e4  # that any of them may be


class Apertus(Arch):
    name = "apertus"
    gguf = ("apertus",)
    hf = ("ApertusForCausalLM",)
    hf_names: ClassVar = {
        "attn_norm": "layers.{}.attention_layernorm.weight",
        "ffn_norm": "layers.{}.feedforward_layernorm.weight",
        **{f"xielu_{name}": f"layers.{{}}.mlp.act_fn.{name}" for name in NUMBERS},
    }
    qk_norm = "head"
    activation = "xielu"

    def layer(self, fields: Fields, index: int, base: LayerSpec, windowed: bool) -> LayerSpec:
        spec = super().layer(fields, index, base, windowed)
        if fields.format != "gguf":
            return spec
        return replace(spec, xielu=XieluNumbers(*(number_of(fields, name, index) for name in NUMBERS)))

    def read_activation(self, fields: Fields) -> Activation:
        name = "xielu" if fields.format == "gguf" else fields.value("hidden_act")
        if name not in (None, "xielu"):
            raise ModelFileError("UNSUPPORTED", f"unknown activation {clean(str(name))!r}", path=fields.path)
        return self.activation


def number_of(fields: Fields, name: str, index: int) -> float:
    """A number of a layer's activation, from a list of a GGUF or its one for all. Raises ModelFileError."""
    key = f"xielu.{name}"  # not after the architecture, unlike other keys
    value: Any = fields.value(key)
    if isinstance(value, list):
        if len(value) != fields["n_layers"]:
            raise fields.error(f"{clean(key)} has {len(value)} numbers for {fields['n_layers']} layers")
        value = value[index]
    if isinstance(value, bool) or not isinstance(value, (int, float)) or abs(value) > LARGEST:
        raise fields.error(f"{clean(key)} should be a number, or one for each layer")
    return float(value)
