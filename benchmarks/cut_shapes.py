"""Files of the catalogue's models cut to a few layers, with random weights: small, but as wide as the real ones."""

import json
from pathlib import Path
from typing import Any

from benchmarks.published_shapes import write_config
from localrun.hub.catalogue import read_catalogue

KINDS = {  # what transformers calls the text model of each
    "Qwen3_5ForConditionalGeneration": "qwen3_5_text",
    "Qwen3_5MoeForConditionalGeneration": "qwen3_5_moe_text",
    "Gemma4ForConditionalGeneration": "gemma4_text",
    "Qwen3MoeForCausalLM": "qwen3_moe",
    "MixtralForCausalLM": "mixtral",
    "GraniteMoeHybridForCausalLM": "granitemoehybrid",
    "Lfm2ForCausalLM": "lfm2",
    "Lfm2MoeForCausalLM": "lfm2_moe",
    "SmolLM3ForCausalLM": "smollm3",
}
CUT = (
    "qwen3.5-0.8b",
    "qwen3.6-35b-a3b",
    "gemma-4-e2b",
    "gemma-4-26b-a4b",
    "qwen3-30b-a3b",
    "granite-4-h-tiny",
    "lfm2.5-1.2b",
    "lfm2-8b-a1b",
    "smollm3-3b",
)
LAYERS, EXPERTS, VOCABULARY, CONTEXT = 8, 8, 32_000, 32_768


def write_cut(path: Path, name: str) -> None:
    """The model of the catalogue, with matrices in f16."""
    write_config(path, cut(json.loads(json.dumps(read_catalogue()[name]["config"]))))


def cut(values: dict[str, Any]) -> dict[str, Any]:
    """Its config, with fewer layers, experts and words."""
    values["model_type"] = KINDS[values.pop("architectures")[0]]
    values |= {"vocab_size": VOCABULARY, "max_position_embeddings": CONTEXT, "bos_token_id": 0, "eos_token_id": 1}
    values |= {"pad_token_id": None, "num_hidden_layers": LAYERS}
    if values["model_type"] == "gemma4_text":
        values |= {"final_logit_softcapping": 30.0, "vocab_size_per_layer_input": VOCABULARY}
    if "layer_types" in values:
        values["layer_types"] = values["layer_types"][:LAYERS]
    if values.get("num_kv_shared_layers"):
        values["num_kv_shared_layers"] = LAYERS // 3
    for count in ("num_experts", "num_local_experts", "n_routed_experts"):
        if values.get(count):
            values[count] = min(values[count], EXPERTS)
    return values
