"""Start weights that can already copy.

A network this small needs most of a short training to find out how to repeat a name it was told. Repeating takes two
attention heads: one that looks one token back, and one that looks for places whose previous token was the current
one ("induction"). Both are linear algebra on random projections, so they can be planted; training does the rest.
All other layers start by writing nothing, so that the residual stream begins as the plain embeddings.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from tools.builtin_model import Decoder, Layer, Shape

EMBEDDING_NORM = 16.0  # root mean square 1: beside it, what the layers write stays in proportion
OUTPUT_NORM = 0.8
N_FAST = 6  # rotary pairs that turn fast enough to tell neighbours apart
FIRST_SLOW = 16  # rotary pairs from here on hardly turn within a chat: they compare content


def start(model: Decoder) -> None:
    """Set every weight of a fresh model; seeded by torch's global generator."""
    shape = model.shape
    for module in model.modules():
        if isinstance(module, nn.Linear):
            nn.init.normal_(module.weight, std=module.in_features**-0.5)
    layers = [layer for layer in model.layers if isinstance(layer, Layer)]
    for layer in layers:
        nn.init.zeros_(layer.attn_output.weight)
        nn.init.zeros_(layer.ffn_down.weight)
    basis = orthonormal(shape.hidden_size)
    constant, token_map, previous_map, value_map = (
        basis[:1],
        basis[1:65],
        basis[65:129],
        basis[129:193],
    )
    with torch.no_grad():
        tokens = torch.randn(shape.vocab_size, shape.hidden_size) @ (
            torch.eye(shape.hidden_size) - constant.T @ constant
        )
        tokens /= tokens.norm(dim=1, keepdim=True)
        model.token_embd.weight.copy_(EMBEDDING_NORM * (tokens + constant))
        model.output.weight.copy_(OUTPUT_NORM * tokens)
        plant_previous_token(layers[0], shape, constant, token_map, previous_map)
        plant_induction(layers[1], shape, token_map, previous_map, value_map)


def orthonormal(size: int) -> Tensor:
    basis: Tensor = torch.linalg.qr(torch.randn(size, size))[0]
    return basis


def plant_previous_token(layer: Layer, shape: Shape, constant: Tensor, read: Tensor, write: Tensor) -> None:
    """Head 0 attends to position - 1 and writes what it reads there (`read` rows) into the rows `write`."""
    pairs = torch.arange(N_FAST)
    angles = shape.rope_theta ** (-2.0 * pairs / shape.head_dim)
    half = shape.head_dim // 2
    query, key = torch.zeros(shape.head_dim, 1), torch.zeros(shape.head_dim, 1)
    query[pairs, 0] = 1.0
    key[pairs, 0], key[half + pairs, 0] = angles.cos(), angles.sin()  # one position ahead of the query
    d = shape.head_dim
    layer.attn_q.weight[:d] = 0.5 * query @ constant
    layer.attn_k.weight[:d] = 0.5 * key @ constant
    layer.attn_v.weight[:d] = read
    layer.attn_output.weight[:, :d] = 3.0 * write.T


def plant_induction(layer: Layer, shape: Shape, token: Tensor, previous: Tensor, value: Tensor) -> None:
    """The last head attends where the previous token was the current one, and writes the token found there."""
    d, half = shape.head_dim, shape.head_dim // 2
    slow = torch.cat([torch.arange(FIRST_SLOW, half), torch.arange(half + FIRST_SLOW, d)])
    q, k, v = torch.zeros(d, shape.hidden_size), torch.zeros(d, shape.hidden_size), value
    q[slow], k[slow] = 2.0 * token[: len(slow)], 2.0 * previous[: len(slow)]
    layer.attn_q.weight[-d:] = q
    layer.attn_k.weight[-d:] = k
    layer.attn_v.weight[-d:] = v
    layer.attn_output.weight[:, -d:] = 5.0 * v.T
