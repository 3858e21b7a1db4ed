"""The reference's block store: keys and values of every layer group, found through block tables."""

from collections.abc import Sequence

import torch
from torch import Tensor

from localrun.backends.reference.kv_codes import decode, encode
from localrun.backends.reference.states import StateStore
from localrun.ops.cache_layer import CacheLayer
from localrun.ops.interface import PlainKV, StepInput
from localrun.ops.kv import BLOCK_TOKENS, SCALE_GROUP, KVPlan

Where = tuple[Tensor | int, ...]  # block, layer within the group, and maybe token: what a plane is indexed with


class CodeStore:
    """Keys or values of all blocks of a group, `bits` an element; 4-bit codes lie two in a byte."""

    def __init__(self, shape: tuple[int, ...], head_dim: int, bits: int, device: torch.device) -> None:
        """`shape`: [n_blocks, layers of the group, block_tokens, n_kv_heads]"""
        codes = {32: torch.float32, 16: torch.float16, 8: torch.int8, 4: torch.uint8}[bits]
        n_scales = {32: 0, 16: 0, 8: 1, 4: 2}[bits] * -(-head_dim // SCALE_GROUP)
        width = head_dim // 2 if bits == 4 else head_dim
        self.bits = bits
        self.codes = torch.zeros(*shape, width, dtype=codes, device=device)
        self.scales = torch.zeros(*shape, n_scales, dtype=torch.float16, device=device)  # then offsets

    def put(self, where: Where, stored: PlainKV) -> None:
        codes = stored.codes
        if self.bits == 4:
            low, high = (codes + 8).to(torch.uint8).chunk(2, dim=-1)
            codes = low | high << 4
        self.codes[where] = codes
        sides = [side for side in (stored.scale, stored.offset) if side is not None]
        if sides:
            self.scales[where] = torch.cat(sides, dim=-1)

    def get(self, where: Where) -> PlainKV:
        codes, scales = self.codes[where], self.scales[where]
        if self.bits >= 16:
            return PlainKV(codes)
        if self.bits == 8:
            return PlainKV(codes, scales)
        nibbles = torch.cat((codes & 15, codes >> 4), dim=-1)
        return PlainKV(nibbles.to(torch.int8) - 8, *scales.chunk(2, dim=-1))


class BlockStore:
    """All blocks of one group in one form. Where values are a part of the keys (latents), keys alone are stored."""

    def __init__(
        self,
        n_blocks: int,
        members: Sequence[CacheLayer],
        bits: tuple[int, int],
        device: torch.device,
    ) -> None:
        shape = (n_blocks, len(members), BLOCK_TOKENS, members[0].n_kv_heads)
        self.value_dim = members[0].value_dim
        dims = (members[0].head_dim, members[0].head_dim if self.value_dim is None else 0)
        self.keys, self.values = (CodeStore(shape, d, n, device) for d, n in zip(dims, bits, strict=True))
        self.planes: tuple[Tensor, ...] = (self.keys.codes, self.keys.scales, self.values.codes, self.values.scales)
        self.block_bytes = sum(plane[:1].nbytes for plane in self.planes) if n_blocks else 0
        self.nbytes = n_blocks * self.block_bytes

    def write(self, where: Where, k: Tensor, v: Tensor | None) -> None:
        """Encode and store k and v, f32 [..., n_kv_heads, head_dim]; v is None where values are a part of the keys."""
        assert (v is None) == (self.value_dim is not None)
        self.keys.put(where, encode(k, self.keys.bits))
        if v is not None:
            self.values.put(where, encode(v, self.values.bits))

    def read(self, where: Where) -> tuple[Tensor, Tensor]:
        """Keys and values, f32."""
        keys = decode(self.keys.get(where))
        return keys, decode(self.values.get(where)) if self.value_dim is None else keys[..., : self.value_dim]

    def copy(self, source: int, target: int) -> None:
        for plane in self.planes:
            plane[target] = plane[source]

    def to_bytes(self, block: int) -> bytes:
        return b"".join(plane[block].flatten().view(torch.uint8).cpu().numpy().tobytes() for plane in self.planes)

    def from_bytes(self, block: int, data: bytes | memoryview) -> None:
        assert len(data) == self.block_bytes
        rest = torch.frombuffer(bytearray(data), dtype=torch.uint8)
        for plane in self.planes:
            part, rest = rest[: plane[block].nbytes], rest[plane[block].nbytes :]
            plane[block] = part.view(plane.dtype).view(plane[block].shape).to(plane.device)

    def close(self) -> None:
        """Let go of the blocks; their sizes may still be asked for."""
        del self.keys, self.values, self.planes


class SequenceBlocks:
    """Blocks of a sequence in one layer, by logical block. Which form is read follows from positions alone."""

    def __init__(self, first: int, coded: tuple[Tensor, Tensor], exact: dict[int, tuple[Tensor, Tensor]]) -> None:
        """`coded`: blocks first, first + 1, …, each [n, block_tokens, n_kv_heads, head_dim]; `exact`: read instead
        of codes by the queries of that block, and block 0 by all queries."""
        self.first, self.coded, self.exact = first, coded, exact

    @property
    def from_the_start(self) -> bool:
        """Block 0 is there to be read."""
        return 0 in self.exact or (self.first == 0 and not self.exact)

    def numbers(self, last: int) -> list[int]:
        """The logical blocks there are for queries that see up to block `last`, ascending."""
        return [0] * self.from_the_start + list(range(max(self.first, 1), last + 1))

    def block(self, number: int, own: int) -> tuple[Tensor, Tensor]:
        """Keys and values of block `number` as a query of block `own` sees them, f32 [block_tokens, n_kv_heads, d]."""
        if number in (0, own) and number in self.exact:
            return self.exact[number]
        keys, values = self.coded
        return keys[number - self.first], values[number - self.first]

    def seen_from(self, own: int, last: int | None = None) -> tuple[Tensor, Tensor, Tensor]:
        """Positions [T], keys and values [T, n_kv_heads, d] of all there is for queries of block `own`, ascending, up
        to block `last`; None: up to their own."""
        numbers = self.numbers(own if last is None else last)
        keys, values = (torch.cat(parts) for parts in zip(*(self.block(n, own) for n in numbers), strict=True))
        slots = torch.tensor(numbers, device=keys.device)[:, None] * BLOCK_TOKENS
        return (slots + torch.arange(BLOCK_TOKENS, device=keys.device)).flatten(), keys, values


class KVPool:
    """The coded and the 16-bit blocks of every layer group, or its states, and where the rows of a step go."""

    def __init__(
        self,
        layers: Sequence[CacheLayer],
        plan: KVPlan,
        n_blocks: Sequence[int],
        ring_blocks: Sequence[int],
        device: torch.device,
    ) -> None:
        self.layers, self.codecs = tuple(layers), plan.codecs
        self.device = device
        self.coded: list[BlockStore | StateStore] = []  # [groups]
        self.ring: list[BlockStore | None] = []  # [groups], None where the codec is native
        for group, (count, rings) in enumerate(zip(n_blocks, ring_blocks, strict=True)):
            members = list(dict.fromkeys(layer for layer in self.layers if layer.group == group))
            (codec,) = {plan.codecs[self.layers.index(layer)] for layer in members}
            bits = (codec.k_bits, codec.v_bits)
            is_state = members[0].state_size > 0
            self.coded.append(
                StateStore(count, members, device) if is_state else BlockStore(count, members, bits, device)
            )
            self.ring.append(None if codec.native else BlockStore(rings, members, (16, 16), device))

    @property
    def nbytes(self) -> int:
        return sum(store.nbytes for store in (*self.coded, *self.ring) if store is not None)

    def close(self) -> None:
        for store in (*self.coded, *self.ring):
            if store is not None:
                store.close()

    def store(self, group: int, ring: bool) -> BlockStore:
        """The coded or the 16-bit blocks of a group."""
        store = self.ring[group] if ring else self.coded[group]
        assert isinstance(store, BlockStore), "a native codec has no 16-bit blocks beside its own, a state no tokens"
        return store

    def state(self, layer: int, sequence: int) -> Tensor:
        """A recurrent layer's state before the step, f32 [state_size]; zeros at the beginning of a text."""
        return self.states(layer).before(self.step.sequences[sequence], self.layers[layer])

    def put_state(self, layer: int, sequence: int, position: int, state: Tensor, at: int = 0) -> None:
        """Hand in a recurrent layer's state after the token at `position`, or its part from number `at` on; it is kept
        where somebody wants it."""
        view = self.step.sequences[sequence]
        self.states(layer).put(view, self.layers[layer], position, BLOCK_TOKENS, state, at)

    def states(self, layer: int) -> StateStore:
        store = self.coded[self.layers[layer].group]
        assert isinstance(store, StateStore)
        return store

    def begin(self, step: StepInput) -> None:
        """Work out, once a step, where each row's token goes."""
        self.step = step
        places = [
            (p, p // BLOCK_TOKENS, step.sequences[s]) for p, s in zip(step.positions, step.row_sequence, strict=True)
        ]
        self.offsets = self._index([p % BLOCK_TOKENS for p in step.positions])  # [R]
        self.written: list[tuple[Tensor, Tensor]] = []  # [groups]: rows that write codes, and their blocks
        self.ring_of_row: list[Tensor | None] = []  # [groups][R]
        for group, ring in enumerate(self.ring):
            writes = [
                (row, sequence.block(group, number))
                for row, (position, number, sequence) in enumerate(places)
                if isinstance(self.coded[group], BlockStore)
                and (not sequence.write_from or position >= sequence.write_from[group])
            ]
            self.written.append((self._index([row for row, _ in writes]), self._index([block for _, block in writes])))
            blocks = [sequence.ring_block(group, number) for _, number, sequence in places if ring]
            self.ring_of_row.append(self._index(blocks) if ring else None)

    def append(self, layer: int, k: Tensor, v: Tensor | None = None) -> None:
        """Store k and v [R, n_kv_heads, head_dim] of the step's rows in both forms; latents have no v."""
        place = self.layers[layer]
        rows, blocks = self.written[place.group]
        coded, where = self.store(place.group, ring=False), (blocks, place.index, self.offsets[rows])
        coded.write(where, k[rows], None if v is None else v[rows])
        ring, ring_of_row = self.ring[place.group], self.ring_of_row[place.group]
        if ring is not None and ring_of_row is not None:
            ring.write((ring_of_row, place.index, self.offsets), k, v)

    def blocks(self, layer: int, sequence: int) -> SequenceBlocks:
        """Blocks of a sequence of the step in a layer."""
        group, index = self.layers[layer].group, self.layers[layer].index
        view, coded, ring = self.step.sequences[sequence], self.store(group, ring=False), self.ring[group]
        exact = {}
        if ring is not None:
            held = enumerate(view.ring[group], view.ring_first)
            exact = {number: ring.read((block, index)) for number, block in held}
            if view.ring_sink and view.ring_sink[group] >= 0:
                exact[0] = ring.read((view.ring_sink[group], index))
        elif view.first[group] > 0 and view.sink and view.sink[group] >= 0:
            exact[0] = coded.read((view.sink[group], index))
        return SequenceBlocks(view.first[group], coded.read((self._index(view.table[group]), index)), exact)

    def _index(self, values: Sequence[int]) -> Tensor:
        return torch.tensor(list(values), dtype=torch.long, device=self.device)
