"""The reference's block store: keys and values of every layer group, found through block tables."""

from collections.abc import Sequence

import torch
from torch import Tensor

from localrun.ops.interface import CacheLayer, StepInput
from localrun.ops.kv import KVCodec


class KVPool:
    """Pools of blocks, one a layer group: [n_blocks, layers of the group, block_tokens, n_kv_heads, head_dim]."""

    def __init__(
        self,
        layers: Sequence[CacheLayer],
        n_blocks: Sequence[int],
        block_tokens: int,
        codec: KVCodec,
        device: torch.device,
    ) -> None:
        self.layers = tuple(layers)
        self.block_tokens = block_tokens
        self.codec = codec
        self.device = device
        self.keys: list[Tensor] = []
        self.values: list[Tensor] = []
        for group, count in enumerate(n_blocks):
            members = [layer for layer in layers if layer.group == group]
            shape = (count, len(members), block_tokens, members[0].n_kv_heads, members[0].head_dim)
            self.keys.append(torch.zeros(shape, dtype=codec.dtype(), device=device))
            self.values.append(torch.zeros(shape, dtype=codec.dtype(), device=device))

    @property
    def nbytes(self) -> int:
        return sum(pool.nbytes for pool in (*self.keys, *self.values))

    def begin(self, step: StepInput) -> None:
        """Work out, once a step, where each row's token goes and which blocks each sequence reads."""
        self.step = step
        self.block_of_row: list[Tensor] = []  # [groups][R]
        self.tables: list[list[Tensor]] = []  # [groups][S][blocks]
        for group in range(len(self.keys)):
            blocks = [
                step.sequences[s].table[group][p // self.block_tokens - step.sequences[s].first[group]]
                for p, s in zip(step.positions, step.row_sequence, strict=True)
            ]
            self.block_of_row.append(self._index(blocks))
            self.tables.append([self._index(sequence.table[group]) for sequence in step.sequences])
        self.offset_of_row = self._index([p % self.block_tokens for p in step.positions])  # [R]

    def append(self, layer: int, k: Tensor, v: Tensor) -> None:
        """Store k and v [R, n_kv_heads, head_dim] of the step's rows in their stored form."""
        place = self.layers[layer]
        where = (self.block_of_row[place.group], place.index, self.offset_of_row)
        self.keys[place.group][where] = self.codec.encode(k)
        self.values[place.group][where] = self.codec.encode(v)

    def gather(self, layer: int, sequence: int) -> tuple[int, Tensor, Tensor]:
        """(first position, keys, values) a sequence of the step holds in a layer; f32 [T, n_kv_heads, head_dim]."""
        place = self.layers[layer]
        view = self.step.sequences[sequence]
        table = self.tables[place.group][sequence]
        first = view.first[place.group] * self.block_tokens
        n_keys = view.length - first
        keys = self.keys[place.group][table, place.index].flatten(0, 1)[:n_keys]
        values = self.values[place.group][table, place.index].flatten(0, 1)[:n_keys]
        return first, self.codec.decode(keys), self.codec.decode(values)

    def copy_block(self, group: int, source: int, target: int) -> None:
        """Copy on write: a sequence that diverges inside a shared block gets its own."""
        self.keys[group][target] = self.keys[group][source]
        self.values[group][target] = self.values[group][source]

    def _index(self, values: Sequence[int]) -> Tensor:
        return torch.tensor(list(values), dtype=torch.long, device=self.device)
