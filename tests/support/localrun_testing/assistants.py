"""Assistants of Gemma 4: tiny random ones made by transformers, which is the oracle of what they guess."""

import copy
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

import gguf
import torch
from safetensors.torch import load_file
from transformers import AutoConfig, Gemma4AssistantConfig, Gemma4AssistantForCausalLM, Gemma4TextConfig
from transformers.cache_utils import DynamicCache

from localrun_testing.gguf_convert import add_hyperparameters, converted, write
from localrun_testing.tiny_models import TINY_MODELS, VOCAB_SIZE, build, randomise

N_CLUSTERS, N_USED = 30, 5
KINDS = ("sliding_attention", "sliding_attention", "full_attention")


class AssistantOracle:
    """A body and its assistant in transformers; `ordered`: only tokens of the likeliest clusters get logits."""

    def __init__(self, body: str, ordered: bool = False) -> None:
        whole = build(body)
        self.body = whole.model.language_model if hasattr(whole.model, "language_model") else whole.model
        self.assistant = assistant_of(body, self.body.config, ordered)

    def save(self, folder: Path) -> Path:
        """Write the assistant as a checkpoint."""
        self.assistant.save_pretrained(folder)
        return folder

    @torch.no_grad()
    def guess(self, token_ids: Sequence[int], depth: int) -> tuple[list[int], torch.Tensor]:
        """The likeliest tokens after a text, and the logits of the first of them, [vocab]."""
        ids, cache = torch.tensor([list(token_ids)]), DynamicCache(config=self.body.config)
        hidden = self.body(input_ids=ids[:, :-1], past_key_values=cache, use_cache=True).last_hidden_state[:, -1:]
        shared = {kind: self.read_by(kind, cache) for kind in set(KINDS)}
        token, position, found, logits = ids[:, -1:], torch.tensor([[len(token_ids) - 1]]), list[int](), []
        for _ in range(depth):
            both = torch.cat([self.body.embed_tokens(token), hidden], -1)
            out = self.assistant(inputs_embeds=both, position_ids=position, shared_kv_states=shared)
            token, hidden = out.logits.argmax(-1), out.last_hidden_state
            found.append(int(token))
            logits.append(out.logits[0, 0])
        return found, logits[0]

    def read_by(self, kind: str, cache: DynamicCache) -> tuple[torch.Tensor, torch.Tensor]:
        """Keys and values of the last layer of a kind that has its own."""
        config = self.body.config
        n_own = config.num_hidden_layers - config.num_kv_shared_layers
        layer: Any = cache.layers[max(i for i in range(n_own) if config.layer_types[i] == kind)]
        return layer.keys, layer.values


def assistant_of(body: str, config: Any, ordered: bool) -> Any:
    """A tiny random assistant for a body of this config."""
    text = copy.deepcopy(dict(TINY_MODELS[body].config)) | {
        "model_type": "gemma4_text",
        "hidden_size": 64,
        "intermediate_size": 80,
        "num_hidden_layers": len(KINDS),
        "num_kv_shared_layers": len(KINDS),
        "layer_types": list(KINDS),
        "hidden_size_per_layer_input": 0,
        "vocab_size_per_layer_input": 0,
        "use_double_wide_mlp": False,
        "enable_moe_block": False,
    }
    ours = Gemma4AssistantConfig(
        text_config=text,
        backbone_hidden_size=config.hidden_size,
        use_ordered_embeddings=ordered,
        num_centroids=N_CLUSTERS,
        centroid_intermediate_top_k=N_USED,
    )
    ours._attn_implementation = "eager"
    # transformers 5.23 refuses its own assistants: it looks for a layer of theirs that makes what all others read.
    with patch.object(Gemma4TextConfig, "kv_sharing_modes", ["reuse"] * len(KINDS)):
        model: Any = Gemma4AssistantForCausalLM(ours)
    model.float().eval()
    randomise(model, seed=7)
    if ordered:
        order = torch.randperm(VOCAB_SIZE, generator=torch.Generator().manual_seed(3))
        model.masked_embedding.token_ordering.copy_(order)
    return model


def convert_assistant(folder: Path, target: Path, qtype: str = "F32") -> Path:
    """Write an assistant as the GGUF that llama.cpp makes of it: all tokens have logits there, in no clusters."""
    whole, tensors = AutoConfig.from_pretrained(folder), load_file(folder / "model.safetensors")
    config = whole.get_text_config()
    config.allow_global_per_layer_attribute_access = True
    writer = gguf.GGUFWriter(target, "gemma4-assistant")
    add_hyperparameters(writer, "gemma4", config)
    writer.add_embedding_length_out(whole.backbone_hidden_size)
    writer.add_nextn_predict_layers(config.num_hidden_layers)
    parts = [(name, data.float()) for name, data in tensors.items() if name.startswith("model.")]
    for name, data, encoding in converted(parts, "gemma4", config, qtype):
        writer.add_tensor(name, data, raw_dtype=encoding)
    for name in ("pre_projection", "post_projection"):
        writer.add_tensor(f"nextn.{name}.weight", tensors[f"{name}.weight"].float().numpy())
    write(writer)
    return target
