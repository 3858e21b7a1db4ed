"""The network of the built-in model: a llama decoder small enough to train on two CPU cores."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn


@dataclass(frozen=True)
class Shape:
    """Hyperparameters; hidden and FFN sizes are multiples of 256 so that every quant type applies."""

    vocab_size: int
    n_layers: int = 7
    hidden_size: int = 256
    n_heads: int = 4
    n_kv_heads: int = 2
    ffn_size: int = 768
    max_context: int = 2048
    rope_theta: float = 10000.0
    rms_eps: float = 1e-5

    @property
    def head_dim(self) -> int:
        return self.hidden_size // self.n_heads

    @property
    def n_parameters(self) -> int:
        kv_size = self.n_kv_heads * self.head_dim
        attention = 2 * self.hidden_size * (self.hidden_size + kv_size)
        layer = attention + 3 * self.hidden_size * self.ffn_size + 2 * self.hidden_size
        return self.n_layers * layer + 2 * self.vocab_size * self.hidden_size + self.hidden_size


class RMSNorm(nn.Module):
    def __init__(self, size: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:  # [..., size]
        return F.rms_norm(x, (x.shape[-1],), self.weight.to(x.dtype), self.eps)


def rotary_table(shape: Shape) -> tuple[Tensor, Tensor]:
    """cos and sin for every position, halves repeated: each [max_context, head_dim]."""
    inv_freq = shape.rope_theta ** (-torch.arange(0, shape.head_dim, 2).float() / shape.head_dim)
    angles = torch.outer(torch.arange(shape.max_context).float(), inv_freq)
    angles = torch.cat([angles, angles], dim=-1)
    return angles.cos(), angles.sin()


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:  # x: [batch, heads, tokens, head_dim]
    first, second = x.chunk(2, dim=-1)
    return x * cos + torch.cat([-second, first], dim=-1) * sin


class Layer(nn.Module):
    """One pre-norm decoder layer: grouped-query attention, then a SwiGLU feed-forward."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        kv_size = shape.n_kv_heads * shape.head_dim
        self.attn_norm = RMSNorm(shape.hidden_size, shape.rms_eps)
        self.attn_q = nn.Linear(shape.hidden_size, shape.hidden_size, bias=False)
        self.attn_k = nn.Linear(shape.hidden_size, kv_size, bias=False)
        self.attn_v = nn.Linear(shape.hidden_size, kv_size, bias=False)
        self.attn_output = nn.Linear(shape.hidden_size, shape.hidden_size, bias=False)
        self.ffn_norm = RMSNorm(shape.hidden_size, shape.rms_eps)
        self.ffn_gate = nn.Linear(shape.hidden_size, shape.ffn_size, bias=False)
        self.ffn_up = nn.Linear(shape.hidden_size, shape.ffn_size, bias=False)
        self.ffn_down = nn.Linear(shape.ffn_size, shape.hidden_size, bias=False)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor, mask: Tensor) -> Tensor:  # x: [batch, tokens, hidden]
        x = x + self.attention(self.attn_norm(x), cos, sin, mask)
        h = self.ffn_norm(x)
        out: Tensor = x + self.ffn_down(F.silu(self.ffn_gate(h)) * self.ffn_up(h))
        return out

    def attention(self, x: Tensor, cos: Tensor, sin: Tensor, mask: Tensor) -> Tensor:
        batch, tokens, hidden = x.shape
        s = self.shape
        q = self.attn_q(x).view(batch, tokens, s.n_heads, s.head_dim).transpose(1, 2)
        k = self.attn_k(x).view(batch, tokens, s.n_kv_heads, s.head_dim).transpose(1, 2)
        v = self.attn_v(x).view(batch, tokens, s.n_kv_heads, s.head_dim).transpose(1, 2)
        group = s.n_heads // s.n_kv_heads
        k = rotate(k, cos, sin).repeat_interleave(group, dim=1)
        v = v.repeat_interleave(group, dim=1)
        # Written out: on the short rows of training, the fused attention's backward is slower.
        scores = (rotate(q, cos, sin) @ k.transpose(-1, -2)).float() * s.head_dim**-0.5 + mask
        o = scores.softmax(-1).to(v.dtype) @ v
        out: Tensor = self.attn_output(o.transpose(1, 2).reshape(batch, tokens, hidden))
        return out


class Decoder(nn.Module):
    """Token ids [batch, tokens] to final hidden states, and those to logits."""

    cos: Tensor
    sin: Tensor

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.token_embd = nn.Embedding(shape.vocab_size, shape.hidden_size)
        self.layers = nn.ModuleList([Layer(shape) for _ in range(shape.n_layers)])
        self.output_norm = RMSNorm(shape.hidden_size, shape.rms_eps)
        self.output = nn.Linear(shape.hidden_size, shape.vocab_size, bias=False)
        cos, sin = rotary_table(shape)
        self.register_buffer("cos", cos, persistent=False)
        self.register_buffer("sin", sin, persistent=False)

    def forward(self, token_ids: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:  # [batch, tokens]
        tokens = token_ids.shape[1]
        cos, sin = self.cos[:tokens].to(dtype), self.sin[:tokens].to(dtype)
        mask = torch.full((tokens, tokens), -torch.inf).triu(1)
        x = self.token_embd(token_ids)
        for layer in self.layers:
            x = layer(x, cos, sin, mask)
        out: Tensor = self.output_norm(x)
        return out

    def logits(self, hidden: Tensor) -> Tensor:  # [..., hidden] -> [..., vocab]
        out: Tensor = self.output(hidden)
        return out
