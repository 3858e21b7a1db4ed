"""Latent attention on any executor, as `kv_cases` has attention.

What is expected is computed as the papers say it, from keys and values that are expanded for every head.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from localrun.backends.reference.kv_codes import decode, encode
from localrun.cache.kinds.latent import Latent
from localrun.ops.cache_layer import CacheLayer
from localrun.ops.instructions import Attention, Embed, Linear, LinearWeight, LogitsOf
from localrun.ops.interface import Angles
from localrun.ops.latent import HeadLinear, LatentAppend
from localrun.ops.layouts import Layout
from localrun.ops.recording import Forward, Ops
from localrun.ops.rope import RopeKind
from localrun.ops.types import Value

from .kv_cases import CPU, QUERY_BETA, KVCase, pack, turn


@dataclass(frozen=True, slots=True)
class LatentCase(KVCase):
    """A layer of latents. Token t is row t of [q_nope | q_rope | latent | k_rope]; each head of keys would have `nope`
    and `dims` numbers, and of values `value_dim`."""

    n_kv_heads: int = 1
    rank: int = 32
    dims: int = 16
    nope: int = 24
    value_dim: int = 16

    def __str__(self) -> str:
        return f"{self.codec}-r{self.rank}+{self.dims}-h{self.n_heads}-n{self.n_tokens}" + "-scaled" * bool(
            self.query_floor
        )

    @property
    def scale(self) -> float:
        return 1 / math.sqrt(self.nope + self.dims)

    @property
    def layer(self) -> CacheLayer:
        return Latent(self.rank, self.dims).layer(0, 0, self.n_heads)

    def cos_sin(self, positions: Sequence[int]) -> Angles:
        return RopeKind.of(10000.0, self.dims, None, 1.0).cos_sin(positions)

    @property
    def widths(self) -> list[int]:
        """Numbers of a row of q_nope, q_rope, latent and k_rope."""
        return [self.n_heads * self.nope, self.n_heads * self.dims, self.rank, self.dims]

    def rows(self) -> Tensor:
        """What tokens are, f32 [n_tokens, sum of widths]; turned keys are much larger than latents, which are
        normed where they are learned."""
        g = torch.Generator().manual_seed(self.rank * 1000 + self.n_tokens)
        rows = torch.randn(self.n_tokens, sum(self.widths), generator=g)
        if self.outliers:
            rows[:, -self.dims :] *= 30
            rows[:, self.widths[0] : sum(self.widths[:2])] /= 30
        return rows

    def matrices(self) -> tuple[Tensor, Tensor]:
        """Of every head: k_b [n_heads · rank, nope] and v_b [n_heads · value_dim, rank]."""
        g = torch.Generator().manual_seed(self.nope)
        k_b = torch.randn(self.n_heads * self.rank, self.nope, generator=g) / self.rank**0.5
        return k_b, torch.randn(self.n_heads * self.value_dim, self.rank, generator=g) / self.rank**0.5

    def forward(
        self, layout: Layout, qkv: tuple[Tensor, Tensor, Tensor] | None = None, device: torch.device = CPU
    ) -> Forward:
        """The picking model, its matrices in `layout`."""
        assert qkv is None
        table = pack(self.rows(), layout, device)
        picks = tuple(LinearWeight(pack(part, layout, device)) for part in torch.eye(table.n_cols).split(self.widths))
        k_b, v_b = (LinearWeight(pack(x, layout, device)) for x in self.matrices())
        unity = pack(torch.eye(self.n_heads * self.value_dim), layout, device)

        def forward(ops: Ops) -> Value:
            (x,) = ops(Embed(table))
            q_nope, q_rope, latent, k_rope = ops(Linear(x, picks))
            (q,) = ops(HeadLinear(q_nope, k_b, self.n_heads))
            (q,) = ops(LatentAppend(q, q_rope, latent, k_rope, 0, 0 if self.rope else None))
            (o,) = ops(Attention(q, 0, self.scale))
            (o,) = ops(HeadLinear(o, v_b, self.n_heads))
            return ops(LogitsOf(o, unity))[0]

        return forward

    def expected(self, rows: Sequence[int]) -> Tensor:
        """The output of some rows, f32 [len(rows), n_heads · value_dim]."""
        q_nope, q_rope, latent, k_rope = self.rows().split(self.widths, dim=1)
        queries = torch.cat((self.by_head(q_nope), self.turned(self.by_head(q_rope))), dim=-1)
        if self.query_floor:
            grown = [1 + QUERY_BETA * math.log(1 + p // self.query_floor) for p in range(self.n_tokens)]
            queries = queries * torch.tensor(grown)[:, None, None]
        stored = torch.cat((latent, self.turned(k_rope[:, None])[:, 0]), dim=1)
        latent, k_rope = decode(encode(stored, self.kv_codec.k_bits)).split((self.rank, self.dims), dim=1)
        k_b, v_b = (x.unflatten(0, (self.n_heads, -1)) for x in self.matrices())
        k_nope, values = torch.einsum("hrn,tr->thn", k_b, latent), torch.einsum("hvr,tr->thv", v_b, latent)
        keys = torch.cat((k_nope, k_rope[:, None].expand(-1, self.n_heads, -1)), dim=-1)
        out = []
        for p in rows:
            weights = torch.softmax((keys[: p + 1] * queries[p]).sum(-1) * self.scale, dim=0)  # [T, n_heads]
            out.append((weights[..., None] * values[: p + 1]).sum(0).flatten())
        return torch.stack(out)

    def by_head(self, x: Tensor) -> Tensor:
        heads: Tensor = x.unflatten(1, (self.n_heads, -1))
        return heads

    def turned(self, x: Tensor) -> Tensor:
        return turn(x, self.cos_sin(range(self.n_tokens))) if self.rope else x


CASES: tuple[LatentCase, ...] = (
    *(LatentCase(codec, n_tokens=530) for codec in ("f32", "f16")),
    *(LatentCase(codec, n_tokens=150, query_floor=40, outliers=False) for codec in ("f32", "f16")),
    *(LatentCase(codec, n_tokens=140, n_heads=n, rope=False) for codec in ("f32", "f16") for n in (1, 20)),
    # of DeepSeek-V2 and GLM-4.7-Flash, and of Mistral 4
    *(LatentCase("f16", n_tokens=140, n_heads=3, rank=rank, dims=64, nope=128, value_dim=128) for rank in (512, 256)),
)
