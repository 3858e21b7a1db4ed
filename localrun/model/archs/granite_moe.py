"""Granite 3 as mixtures of experts (1B-A400M, 3B-A800M), with an expert that all tokens use or without one."""

from typing import ClassVar

from localrun.model.archs.experts import ExpertRules
from localrun.model.archs.granite import Granite


class GraniteMoe(Granite):
    name = "granite_moe"
    gguf: ClassVar[tuple[str, ...]] = ("granitemoe",)
    hf: ClassVar[tuple[str, ...]] = ("GraniteMoeForCausalLM", "GraniteMoeSharedForCausalLM")
    hf_names: ClassVar = {
        "router": "layers.{}.block_sparse_moe.router.layer.weight",
        "experts_gate_up": "layers.{}.block_sparse_moe.input_linear.weight",
        "experts_down": "layers.{}.block_sparse_moe.output_linear.weight "
        "layers.{}.block_sparse_moe.switch_mlp.down_proj.weight",
        "experts_gate": "layers.{}.block_sparse_moe.switch_mlp.gate_proj.weight",
        "experts_up": "layers.{}.block_sparse_moe.switch_mlp.up_proj.weight",
        "shared_gate_up": "layers.{}.shared_mlp.input_linear.weight",
        "shared_down": "layers.{}.shared_mlp.output_linear.weight",
    }
    experts = ExpertRules()
