"""Blocks of keys and values in native memory: room for all of them at once, committed as they are first used.

Torch-free, but for exchanging blocks with other backends.
"""

import ctypes
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from localrun.backends.cpu import abi, abi_step
from localrun.backends.cpu.bindings import CpuCalls
from localrun.backends.cpu.scratch import layer_block_bytes
from localrun.ops.cache_layer import CacheLayer
from localrun.ops.interface import PlainKV
from localrun.ops.kv import BLOCK_TOKENS, SCALE_GROUP, KVCodec

if TYPE_CHECKING:
    from torch import Tensor

SLAB_BYTES = 16 << 20  # committed at a time
CODES = np.dtype(
    [
        ("codes", np.int8, abi.MAX_HEAD_DIM),
        ("scale", np.float16, abi.MAX_SCALES),
        ("offset", np.float16, abi.MAX_SCALES),
    ]
)


class CpuPool:
    """Blocks of one layer group in one form. A block reads zero until something is written to it."""

    def __init__(self, calls: CpuCalls, codec: KVCodec, members: Sequence[CacheLayer], n_blocks: int) -> None:
        self.calls, self.codec, self.n_blocks = calls, codec, n_blocks
        self.code = abi.KV_CODES[codec.name]
        self.offsets: list[int] = []  # [layers of the group]: where a layer begins in a block
        self.block_bytes = 0
        for layer in sorted(members, key=lambda layer: layer.index):
            self.offsets.append(self.block_bytes)
            self.block_bytes += layer_block_bytes(calls, self.code, layer)
        self.nbytes = n_blocks * self.block_bytes
        self.address = calls.reserve_space(self.nbytes)
        self.n_committed = 0

    def place(self, layer: CacheLayer) -> abi_step.KVPoolC:
        """The pool as the program of a layer sees it."""
        return abi_step.KVPoolC(self.address, self.block_bytes, self.offsets[layer.index])

    def use(self, blocks: Sequence[int]) -> None:
        """Allocate these blocks unless they exist; -1 means none. Raises DoesNotFitError."""
        if self.n_committed == self.n_blocks or not blocks:
            return
        wanted = max(blocks) + 1  # numpy's takes 0.2 ms where a step has filled the processor's caches
        if wanted <= self.n_committed:
            return
        assert wanted <= self.n_blocks, f"block {wanted - 1} of {self.n_blocks}"
        slab = max(1, SLAB_BYTES // self.block_bytes)
        end = min(self.n_blocks, -(-wanted // slab) * slab)
        self.calls.commit(self.at(self.n_committed), (end - self.n_committed) * self.block_bytes)
        self.n_committed = end

    def at(self, block: int) -> int:
        return self.address + block * self.block_bytes

    def copy(self, source: int, target: int) -> None:
        self.use((source, target))
        self.calls.kv_copy_block(self.address, self.block_bytes, source, target)

    def read(self, block: int) -> bytes:
        self.use((block,))
        return ctypes.string_at(self.at(block), self.block_bytes)

    def write(self, block: int, data: bytes | memoryview) -> None:
        source = np.frombuffer(data, np.uint8)
        assert len(source) == self.block_bytes
        self.use((block,))
        ctypes.memmove(self.at(block), source.ctypes.data, len(source))

    def export_plain(self, layer: CacheLayer, block: int) -> tuple[PlainKV, PlainKV]:
        """Keys and values of a layer as every backend understands them; latents have no values of their own."""
        import torch

        self.use((block,))
        where = self.at(block) + self.offsets[layer.index]
        if layer.value_dim is not None:
            latents = torch.empty(BLOCK_TOKENS, 1, layer.head_dim)
            self.calls.latent_export((self.code, layer.head_dim, layer.value_dim), where, latents.data_ptr())
            latents = latents.half() if self.codec.k_bits == 16 else latents
            return PlainKV(latents), PlainKV(latents[..., :0])
        if self.codec.native:
            numbers = torch.empty(2, BLOCK_TOKENS, layer.n_kv_heads, layer.head_dim)
            self.calls.kv_export(self.shape(layer), where, *(x.data_ptr() for x in numbers))
            keys, values = numbers.half() if self.codec.k_bits == 16 else numbers
            return PlainKV(keys), PlainKV(values)
        codes = np.zeros((2, BLOCK_TOKENS, layer.n_kv_heads), CODES)
        self.calls.kv_export_codes(self.shape(layer), where, codes[0].ctypes.data, codes[1].ctypes.data)
        return plain(codes[0], self.codec.k_bits, layer), plain(codes[1], self.codec.v_bits, layer)

    def import_plain(self, layer: CacheLayer, block: int, keys: PlainKV, values: PlainKV) -> None:
        """Put back what `export_plain` gave."""
        import torch

        self.use((block,))
        where = self.at(block) + self.offsets[layer.index]
        if layer.value_dim is not None:
            latents = keys.codes.float().contiguous()
            self.calls.latent_import((self.code, layer.head_dim, layer.value_dim), where, latents.data_ptr())
            return
        if self.codec.native:
            numbers = torch.stack([x.codes.float() for x in (keys, values)]).contiguous()
            self.calls.kv_import(self.shape(layer), where, *(x.data_ptr() for x in numbers))
            return
        codes = np.zeros((2, BLOCK_TOKENS, layer.n_kv_heads), CODES)
        for part, x in zip(codes, (keys, values), strict=True):
            for name, tensor in (("codes", x.codes), ("scale", x.scale), ("offset", x.offset)):
                if tensor is not None:
                    part[name][..., : tensor.shape[-1]] = tensor.numpy()
        self.calls.kv_import_codes(self.shape(layer), where, codes[0].ctypes.data, codes[1].ctypes.data)

    def shape(self, layer: CacheLayer) -> tuple[int, int, int]:
        return self.code, layer.n_kv_heads, layer.head_dim

    def close(self) -> None:
        self.calls.release(self.address, self.nbytes)


def plain(codes: np.ndarray, bits: int, layer: CacheLayer) -> PlainKV:
    import torch

    def tensor(name: str, width: int) -> "Tensor":
        return torch.from_numpy(codes[name][..., :width].copy())

    n_scales = -(-layer.head_dim // SCALE_GROUP)
    elements = tensor("codes", layer.head_dim)
    return PlainKV(elements, tensor("scale", n_scales), None if bits == 8 else tensor("offset", n_scales))
