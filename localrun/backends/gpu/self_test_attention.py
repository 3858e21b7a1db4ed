"""A small case of each kernel that turns, stores or looks at keys and values."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from localrun.backends.gpu.attention import attend, can_quantize, rope_append
from localrun.backends.gpu.device import Device
from localrun.backends.gpu.layer_cache import LayerCache
from localrun.backends.gpu.q8 import Q8
from localrun.backends.gpu.scratch import UNIT_TOKENS, partial_numbers
from localrun.backends.gpu.self_test_steps import attended, step_of, turned
from localrun.backends.gpu.synthetic import CLOSE, between_ones, error_of, far, off
from localrun.backends.reference.kv_codes import rotate_hadamard
from localrun.backends.reference.pool import KVPool
from localrun.base.dataclass import dataclass
from localrun.ops.cache_layer import CacheLayer
from localrun.ops.instructions import Attention, RopeAppend
from localrun.ops.kv import KV_CODECS, KVPlan

EPS = 1e-6
PLACE = CacheLayer(group=0, index=1, n_heads=4, n_kv_heads=2, head_dim=128)  # most models have heads of this size


@dataclass(frozen=True, slots=True)
class AttentionCases:
    """The cases of a platform. `close`: the error of sums that is right; `halves`: codes are read as 16-bit numbers."""

    close: float = CLOSE
    halves: bool = False

    def named(self) -> dict[str, Callable[[Device], str]]:
        """All of them by name."""
        return {
            "rope_append": self.append,
            "codes": self.append_codes,
            "attention of few": self.attention_of_few,
            "attention of many": self.attention_of_many,
            "attention of floats": self.attention_of_floats,
            "attention of codes": self.attention_of_codes,
        }

    def append(self, device: Device) -> str:
        """Norms of heads, part of each turned, keys and values stored."""
        return self.stored(device, "f16", 5e-4)

    def append_codes(self, device: Device) -> str:
        """The same turned by a Hadamard matrix and stored as codes, of eight bits and of four."""
        return self.stored(device, "k8v4", 0.2)

    def stored(self, device: Device, codec: str, tolerance: float) -> str:
        """Whether queries, keys and values are what they should be."""
        n, heads, dim, where = 3, PLACE.n_heads, PLACE.head_dim, device.torch_device
        pool = pool_of(codec, 2, where)
        step = step_of([70], n, device, rings=pool.ring[0] is not None)
        q, k, v = (between_ones(n, width * dim) + shift for width, shift in ((heads, 0), (2, 0.5), (2, 1)))
        weight = between_ones(dim)
        op = RopeAppend(q, k, v, 1, 0, "head", weight.to(where), weight.to(where), EPS)
        out = torch.zeros(n, heads * dim, device=where)
        there = q.to(where), k.to(where), v.to(where)
        rope_append(device, step, op, cache_of(pool), *there, out, None, n)()

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

    def attention_of_few(self, device: Device) -> str:
        """Three rows of a text that has two units."""
        return off("attention", self.error(device, 540, 3), self.close)

    def attention_of_many(self, device: Device) -> str:
        """Check attention of enough rows that tiles of them share the keys."""
        return off("attention", self.error(device, 90, 40), self.close)

    def attention_of_floats(self, device: Device) -> str:
        """Keys and values in f32."""
        return off("attention", self.error(device, 530, 2, "f32"), CLOSE)

    def attention_of_codes(self, device: Device) -> str:
        """Keys of eight bits and values of four, few rows and many."""
        error = max(self.error(device, 150, 2, "k8v4"), self.error(device, 180, 40, "k8v4"))
        return off("attention", error, self.close)

    def error(self, device: Device, length: int, n: int, codec: str = "f16") -> float:
        """Error of the last n rows of a text, of the greatest number; infinite where their codes are others.

        Of a quantised codec they read 16 bits of the first block and of their own.
        """
        heads, dim, where = PLACE.n_heads, PLACE.head_dim, device.torch_device
        n_blocks = -(-length // 64)
        pool = pool_of(codec, n_blocks, where)
        keys, values = self.seen(pool, n_blocks)
        if pool.ring[0] is not None:
            n = min(n, length - 64 * (n_blocks - 1))  # rows of the last block alone
        step = step_of([length], n, device, rings=pool.ring[0] is not None)
        q = 4 * between_ones(n, heads * dim)
        op = Attention(q, 1, dim**-0.5)
        out = torch.zeros(n, heads * dim, device=where)
        n_units = -(-length // UNIT_TOKENS)
        partial = torch.zeros(partial_numbers(n, n_units, heads, dim), device=where)
        q8 = Q8.of(heads * dim, n, where) if can_quantize(device, PLACE, n) else None
        given = (q.to(where), None, out, n, n_units, partial)
        for launch in attend(device, step, op, cache_of(pool), *given, q8=q8):
            launch()
        if q8 is not None and not q8.is_of(out):
            return math.inf
        wanted = attended(q.view(n, heads, dim), keys[:length], values[:length], op.scale)
        if KV_CODECS[codec].rotates:
            wanted = rotate_hadamard(wanted.view(n, heads, dim)).flatten(1)
        return error_of(out, wanted)

    def seen(self, pool: KVPool, n_blocks: int) -> list[Tensor]:
        """Fill a pool with a text -> keys and values [tokens, KV heads, dim] as rows of the last block read them."""
        where, store, ring = pool.device, pool.store(0, ring=False), pool.ring[0]
        keys, values = between_ones(2, n_blocks, 64, 2, PLACE.head_dim).to(where)  # in the order of the text
        blocks = torch.arange(n_blocks - 1, -1, -1, device=where)
        store.write((blocks, 1), keys, values)
        read = store.read((blocks, 1))
        if ring is not None:
            ring.write((blocks, 1), keys, values)
            numbers = torch.arange(n_blocks, device=where).view(-1, 1, 1, 1)
            in_ring = (numbers == 0) | (numbers == n_blocks - 1)
            coded = [x.half().float() for x in read] if self.halves else read
            exact = ring.read((blocks, 1))
            read = torch.where(in_ring, exact[0], coded[0]), torch.where(in_ring, exact[1], coded[1])
        return [x.cpu().flatten(0, 1) for x in read]


def pool_of(codec: str, n_blocks: int, device: torch.device) -> KVPool:
    """Memory for this many blocks, in both forms."""
    layers = [CacheLayer(0, index, PLACE.n_heads, PLACE.n_kv_heads, PLACE.head_dim) for index in range(2)]
    return KVPool(layers, KVPlan.uniform(KV_CODECS[codec], 2), [n_blocks], [n_blocks], device)


def cache_of(pool: KVPool) -> LayerCache:
    return LayerCache(PLACE, pool.codecs[1], pool.store(0, ring=False), pool.ring[0])
