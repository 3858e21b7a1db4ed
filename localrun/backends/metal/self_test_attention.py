"""A small case of each kernel that turns, stores or looks at keys and values."""

from __future__ import annotations

import torch

from localrun.backends.gpu.device import Device
from localrun.backends.gpu.scratch import UNIT_TOKENS, partial_numbers
from localrun.backends.gpu.self_test_steps import attended, step_of, turned
from localrun.backends.gpu.synthetic import between_ones, far
from localrun.backends.metal import attentions
from localrun.backends.reference.kv_codes import rotate_hadamard
from localrun.backends.reference.pool import KVPool
from localrun.ops.cache_layer import CacheLayer
from localrun.ops.instructions import Attention, RopeAppend
from localrun.ops.kv import KV_CODECS, KVPlan

EPS = 1e-6
PLACE = CacheLayer(group=0, index=1, n_heads=4, n_kv_heads=2, head_dim=128)  # most models have heads of this size


def rope_append(device: Device) -> str:
    """Norms of heads, part of each turned, keys and values stored."""
    return stored(device, "f16", 5e-4)


def append_codes(device: Device) -> str:
    """The same turned by a Hadamard matrix and stored as codes, of eight bits and of four."""
    return stored(device, "k8v4", 0.2)


def stored(device: Device, codec: str, tolerance: float) -> str:
    """Whether queries, keys and values are what they should be."""
    n, heads, dim = 3, PLACE.n_heads, PLACE.head_dim
    pool = pool_of(codec, 2, device.torch_device)
    step = step_of([70], n, device, rings=pool.ring[0] is not None)
    q, k, v = (between_ones(n, width * dim) + shift for width, shift in ((heads, 0), (2, 0.5), (2, 1)))
    weight = between_ones(dim)
    op = RopeAppend(q, k, v, 1, 0, "head", weight.to(device.torch_device), weight.to(device.torch_device), EPS)
    out = torch.zeros(n, heads * dim, device=device.torch_device)
    given = [x.to(device.torch_device) for x in (q, k, v)]
    attentions.rope_append(device, step, op, cache_of(pool), given[0], given[1], given[2], out, None, n)()

    exact = [turned(x.view(n, -1, dim), weight, EPS, step) for x in (q, k)]
    exact.append(v.view(n, 2, dim).double())
    if KV_CODECS[codec].rotates:
        exact = [rotate_hadamard(x) for x in exact]
    # Positions 67, 68 and 69 are in the sequence's second block, number 0.
    found = [x.cpu() for x in pool.store(0, ring=False).read((0, 1, torch.arange(3, 6)))]
    return (
        far("queries", out, exact[0].flatten(1))
        or far("keys", found[0], exact[1], tolerance)
        or far("values", found[1], exact[2], tolerance)
    )


def attention_of_few(device: Device) -> str:
    """Three rows of a text that has two units."""
    return attention(device, 540, 3)


def attention_of_many(device: Device) -> str:
    """Check attention of enough rows that tiles of them share the keys."""
    return attention(device, 90, 40)


def attention_of_floats(device: Device) -> str:
    """Keys and values in f32."""
    return attention(device, 530, 2, "f32")


def attention_of_codes(device: Device) -> str:
    """Keys of eight bits and values of four, few rows and many."""
    return attention(device, 150, 2, "k8v4") or attention(device, 180, 40, "k8v4")


def attention(device: Device, length: int, n: int, codec: str = "f16") -> str:
    """The last n rows of a text; of a quantised codec they read 16 bits of the first block and of their own."""
    heads, dim = PLACE.n_heads, PLACE.head_dim
    n_blocks = -(-length // 64)
    pool = pool_of(codec, n_blocks, device.torch_device)
    store, ring = pool.store(0, ring=False), pool.ring[0]
    keys, values = between_ones(2, n_blocks, 64, 2, dim).to(device.torch_device)  # in the order of the text
    blocks = torch.arange(n_blocks - 1, -1, -1, device=device.torch_device)
    store.write((blocks, 1), keys, values)
    seen = store.read((blocks, 1))
    if ring is not None:
        ring.write((blocks, 1), keys, values)
        exact = ring.read((blocks, 1))
        own = torch.arange(n_blocks, device=device.torch_device) == n_blocks - 1
        own[0] = True
        seen = (
            torch.where(own.view(-1, 1, 1, 1), exact[0], seen[0]),
            torch.where(own.view(-1, 1, 1, 1), exact[1], seen[1]),
        )
        n = min(n, length - 64 * (n_blocks - 1))  # rows of the last block alone
    step = step_of([length], n, device, rings=ring is not None)
    q = 4 * between_ones(n, heads * dim)
    op = Attention(q, 1, dim**-0.5)
    out = torch.zeros(n, heads * dim, device=device.torch_device)
    n_units = -(-length // UNIT_TOKENS)
    partial = torch.zeros(partial_numbers(n, n_units, heads, dim), device=device.torch_device)
    given = (q.to(device.torch_device), None, out, n, n_units, partial)
    for launch in attentions.attend(device, step, op, cache_of(pool), *given):
        launch()
    text = [x.cpu().flatten(0, 1)[:length] for x in seen]
    wanted = attended(q.view(n, heads, dim), text[0], text[1], op.scale)
    if KV_CODECS[codec].rotates:
        wanted = rotate_hadamard(wanted.view(n, heads, dim)).flatten(1)
    return far("attention", out, wanted)


def pool_of(codec: str, n_blocks: int, device: torch.device) -> KVPool:
    """Memory for this many blocks, in both forms."""
    layers = [CacheLayer(0, index, PLACE.n_heads, PLACE.n_kv_heads, PLACE.head_dim) for index in range(2)]
    return KVPool(layers, KVPlan.uniform(KV_CODECS[codec], 2), [n_blocks], [n_blocks], device)


def cache_of(pool: KVPool) -> attentions.Cache:
    return attentions.Cache(PLACE, pool.codecs[1], pool.store(0, ring=False), pool.ring[0])
