"""The start weights: two heads that can copy, before any training."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from tools.builtin_init import start
from tools.builtin_model import Decoder, Layer, Shape, rotate


@pytest.fixture(scope="module")
def model() -> Decoder:
    torch.manual_seed(0)
    fresh = Decoder(Shape(vocab_size=1000))
    start(fresh)
    return fresh


@pytest.fixture(scope="module")
def ids() -> Tensor:
    """Random tokens, 30 of which come again 54 positions later: [4, 110]."""
    torch.manual_seed(1)
    again = torch.randint(1000, (4, 30))
    return torch.cat([torch.randint(1000, (4, 25)), again, torch.randint(1000, (4, 24)), again], dim=1)


def attention(model: Decoder, x: Tensor, layer: Layer, head: int) -> Tensor:
    """Attention probabilities of one head: [batch, tokens, tokens]."""
    s, tokens = model.shape, x.shape[1]
    h = layer.attn_norm(x)
    q = layer.attn_q(h).view(len(x), tokens, s.n_heads, -1).transpose(1, 2)
    k = layer.attn_k(h).view(len(x), tokens, s.n_kv_heads, -1).transpose(1, 2)
    cos, sin = model.cos[:tokens], model.sin[:tokens]
    scores = rotate(q, cos, sin)[:, head] @ rotate(k, cos, sin)[:, head * s.n_kv_heads // s.n_heads].transpose(1, 2)
    mask = torch.full((tokens, tokens), -torch.inf).triu(1)
    out: Tensor = (scores * s.head_dim**-0.5 + mask).softmax(-1)
    return out


@torch.no_grad()
def test_heads_look_back_and_find_the_earlier_place(model: Decoder, ids: Tensor) -> None:
    first, second = model.layers[0], model.layers[1]
    assert isinstance(first, Layer)
    assert isinstance(second, Layer)
    x = model.token_embd(ids)
    tokens = ids.shape[1]
    back = attention(model, x, first, head=0)
    assert torch.stack([back[:, p, p - 1] for p in range(1, tokens)]).mean() > 0.9
    mask = torch.full((tokens, tokens), -torch.inf).triu(1)
    x = first(x, model.cos[:tokens], model.sin[:tokens], mask)
    found = attention(model, x, second, head=3)
    assert torch.stack([found[:, p, p - 53] for p in range(80, tokens)]).mean() > 0.8


@torch.no_grad()
def test_what_comes_again_is_expected(model: Decoder, ids: Tensor) -> None:
    logits = model.logits(model(ids))
    loss = torch.nn.functional.cross_entropy
    new = loss(logits[:, :78].flatten(0, 1), ids[:, 1:79].flatten())
    again = loss(logits[:, 79:-1].flatten(0, 1), ids[:, 80:].flatten())
    assert again < new - 2
