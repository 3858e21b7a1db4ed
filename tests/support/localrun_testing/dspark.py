"""Drafters of DSpark: an oracle in torch by the description of DeepSpec, and tiny random checkpoints of them.

Layers, norms and angles are those of transformers' Qwen3; DeepSpec's own code says the same for the same weights.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from transformers.models.qwen3 import modeling_qwen3

from localrun_testing.tiny_models import VOCAB_SIZE, build

qwen3: Any = modeling_qwen3
SIZE, MASK, RANK, TAPS, N_LAYERS = 5, VOCAB_SIZE - 1, 16, (-1, 0), 2


class DSparkOracle(torch.nn.Module):
    """A drafter for a tiny Qwen3, with random weights under a checkpoint's names."""

    def __init__(self, body: str = "qwen3", seed: int = 0) -> None:
        super().__init__()
        whole = build(body)
        config = whole.config
        hidden, linear = config.hidden_size, torch.nn.Linear
        self.embed_tokens = torch.nn.Embedding(config.vocab_size, hidden)
        self.layers: Any = torch.nn.ModuleList([qwen3.Qwen3DecoderLayer(config, 0) for _ in range(N_LAYERS)])
        self.norm: Any = qwen3.Qwen3RMSNorm(hidden, eps=config.rms_norm_eps)
        self.hidden_norm: Any = qwen3.Qwen3RMSNorm(hidden, eps=config.rms_norm_eps)
        self.fc = linear(len(TAPS) * hidden, hidden, bias=False)
        self.lm_head = linear(hidden, config.vocab_size, bias=False)
        self.markov_head: Any = torch.nn.Module()
        self.markov_head.markov_w1 = torch.nn.Embedding(config.vocab_size, RANK)
        self.markov_head.markov_w2 = linear(RANK, config.vocab_size, bias=False)
        self.confidence_head: Any = torch.nn.Module()
        self.confidence_head.proj = linear(hidden + RANK, 1)
        generator = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            for name, parameter in self.named_parameters():
                noise = torch.randn(parameter.shape, generator=generator)
                is_norm = "norm" in name
                parameter.copy_(1 + 0.3 * noise if is_norm else 1.2 * noise * parameter.shape[-1] ** -0.5)
        self.rope = (qwen3.Qwen3RotaryEmbedding(config),)  # in tuples: no parts of this module
        self.body = (whole,)

    def save(self, folder: Path) -> Path:
        """Write the drafter as a checkpoint of DeepSpec."""
        folder.mkdir()
        save_file({name: data.contiguous() for name, data in self.state_dict().items()}, folder / "model.safetensors")
        config: dict[str, Any] = self.body[0].config.to_dict() | {
            "architectures": ["Qwen3DSparkModel"],
            "num_target_layers": self.body[0].config.num_hidden_layers,
            "num_hidden_layers": N_LAYERS,
            "layer_types": ["full_attention"] * N_LAYERS,
            "tie_word_embeddings": False,
            "block_size": SIZE,
            "mask_token_id": MASK,
            "target_layer_ids": list(TAPS),
            "num_anchors": 8,
            "markov_rank": RANK,
            "markov_head_type": "vanilla",
            "enable_confidence_head": True,
            "confidence_head_with_markov": True,
        }
        (folder / "config.json").write_text(json.dumps(config))
        return folder

    @torch.no_grad()
    def guess(self, token_ids: Sequence[int]) -> tuple[list[int], torch.Tensor, list[float]]:
        """The block of tokens after a text, the logits of each, [size, vocab], and how likely each is right."""
        ids = torch.tensor([list(token_ids)])
        states = self.body[0](input_ids=ids[:, :-1], output_hidden_states=True, use_cache=False).hidden_states
        taps = torch.cat([states[layer + 1][0] for layer in TAPS], -1)
        block = torch.cat([ids[0, -1:], torch.full((SIZE - 1,), MASK)])
        x, context = self.embed_tokens(block), self.hidden_norm(self.fc(taps))
        angles = self.rope[0](x[None], torch.arange(len(context) + SIZE)[None])
        for layer in self.layers:
            x = x + self.attend(layer.self_attn, layer.input_layernorm(x), context, angles)
            x = x + layer.mlp(layer.post_attention_layernorm(x))
        return self.choose(self.norm(x), int(ids[0, -1]))

    def attend(self, part: Any, x: torch.Tensor, context: torch.Tensor, angles: Any) -> torch.Tensor:
        """Rows of a block see the whole text and the whole block."""
        size, both = part.head_dim, torch.cat([context, x])
        q = part.q_norm(part.q_proj(x).view(len(x), -1, size)).transpose(0, 1)
        k = part.k_norm(part.k_proj(both).view(len(both), -1, size)).transpose(0, 1)
        v = part.v_proj(both).view(len(both), -1, size).transpose(0, 1)
        cos, sin = (one[0] for one in angles)
        k = k * cos + qwen3.rotate_half(k) * sin
        q = q * cos[-len(x) :] + qwen3.rotate_half(q) * sin[-len(x) :]
        k, v = (one.repeat_interleave(len(q) // len(one), 0) for one in (k, v))
        weights = (q @ k.transpose(1, 2) * size**-0.5).softmax(-1)
        found: torch.Tensor = part.o_proj((weights @ v).transpose(0, 1).reshape(len(x), -1))
        return found

    def choose(self, rows: torch.Tensor, token: int) -> tuple[list[int], torch.Tensor, list[float]]:
        """Tokens one after the other, each of which changes the logits of the next."""
        tokens, logits, chances = list[int](), list[torch.Tensor](), list[float]()
        for row in rows:
            before = self.markov_head.markov_w1(torch.tensor(token))
            logits.append(self.lm_head(row) + self.markov_head.markov_w2(before))
            chances.append(float(self.confidence_head.proj(torch.cat([row, before])).sigmoid()))
            token = int(logits[-1].argmax())
            tokens.append(token)
        return tokens, torch.stack(logits), chances
