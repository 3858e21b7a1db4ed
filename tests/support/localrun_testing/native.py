"""The native library driven directly: thread pools, and a program of rope_append and attention on a pool of blocks."""

import ctypes
import mmap
from collections.abc import Sequence
from ctypes import c_char_p, c_double, c_int, c_int32, c_int64, c_void_p
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from localrun.backends.cpu import abi, abi_step

from .instruction_sets import library_in_use

BLOCK = 64
Angles = tuple[Tensor, Tensor] | None  # cosines and sines, f32 [R, head_dim / 2 or fewer]
OK, BAD_ARGUMENT, UNSUPPORTED, CANCELLED, NO_MEMORY, BUSY = range(6)
TASK = ctypes.CFUNCTYPE(None, c_void_p, c_int64)
SIGNATURES: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "lr_use_isa": (c_int, (c_char_p,)),
    "lr_isa": (c_char_p, ()),
    "lr_isas": (c_char_p, ()),
    "lr_threads_create": (c_void_p, (c_int32,)),
    "lr_threads_destroy": (None, (c_void_p,)),
    "lr_parallel": (c_int, (c_void_p, c_int64, TASK, c_void_p)),
    "lr_reserve": (c_void_p, (c_int64,)),
    "lr_commit": (c_int, (c_void_p, c_int64)),
    "lr_release": (c_int, (c_void_p, c_int64)),
    "lr_program_create": (c_int, (c_void_p, c_void_p, c_int32, c_void_p)),
    "lr_program_destroy": (None, (c_void_p,)),
    "lr_program_run": (c_int, (c_void_p, c_void_p)),
    "lr_program_set_timing": (None, (c_void_p, c_int32)),
    "lr_program_timings": (c_int, (c_void_p, c_void_p, c_int32)),
    "lr_kv_block_bytes": (c_int64, (c_int32, c_int32, c_int32)),
    "lr_kv_import": (c_int, (c_int32, c_int32, c_int32, c_void_p, c_int32, c_int32, c_void_p, c_void_p)),
    "lr_kv_export": (c_int, (c_int32, c_int32, c_int32, c_void_p, c_int32, c_int32, c_void_p, c_void_p)),
    "lr_latent_block_bytes": (c_int64, (c_int32, c_int32, c_int32)),
    "lr_latent_import": (c_int, (c_int32, c_int32, c_int32, c_void_p, c_int32, c_int32, c_void_p)),
    "lr_latent_export": (c_int, (c_int32, c_int32, c_int32, c_void_p, c_int32, c_int32, c_void_p)),
    "lr_kv_copy_block": (c_int, (c_void_p, c_int64, c_int32, c_int32)),
}


def int32s(values: Sequence[int]) -> "ctypes.Array[c_int32]":
    """A C array of int32."""
    return (c_int32 * len(values))(*values)


def bind(path: Path) -> ctypes.CDLL:
    """A library with the C signatures that tests use."""
    library = ctypes.CDLL(str(path))
    for name, (result, arguments) in SIGNATURES.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


def native_library() -> ctypes.CDLL:
    """The library in use; a skip where localrun was built without one."""
    return bind(library_in_use().path)


def isas(library: ctypes.CDLL) -> list[str]:
    """What this machine runs."""
    return str(library.lr_isas().decode()).split()


@dataclass(frozen=True)
class Shape:
    """Heads of one layer and what its ops do to them."""

    n_heads: int = 4
    n_kv_heads: int = 2
    head_dim: int = 64
    codec: str = "f16"
    scale: float = 0.125
    softcap: float | None = None
    window: int | None = None
    sink_window: int | None = None
    sinks: Tensor | None = field(default=None, compare=False)
    qk_norm: str = "none"
    q_weight: Tensor | None = field(default=None, compare=False)
    k_weight: Tensor | None = field(default=None, compare=False)
    eps: float = 1e-5
    rope: bool = False
    value_dim: int = 0  # of latents, keys alone: values are their first dims

    @property
    def widths(self) -> dict[str, int]:
        """Numbers of a row of everything that is stored, asked with, made and given."""
        size, heads = self.value_dim or self.head_dim, self.n_heads
        made = {"turned": heads * self.head_dim, "sink_turned": heads * self.head_dim, "out": heads * size}
        if not self.value_dim:
            return {"q": heads * size, "k": self.n_kv_heads * size, "v": self.n_kv_heads * size, **made}
        dims = self.head_dim - size
        return {"q": heads * size, "q_rope": heads * dims, "latent": size, "k_rope": dims, **made}


@dataclass(frozen=True)
class Rows:
    """The rows of one sequence in a step: positions first … first + n - 1, over the blocks of `table`.

    Of latents q and k are whole, and v has no numbers.
    """

    first: int
    q: Tensor  # f32 [n, n_heads * head_dim]
    k: Tensor  # f32 [n, n_kv_heads * head_dim]
    v: Tensor
    table: Sequence[int]
    first_block: int = 0
    ring: Sequence[int] = ()  # 16-bit blocks from ring_first on
    ring_first: int = 0
    sink: int = -1
    ring_sink: int = -1
    write_from: int = 0

    @property
    def n(self) -> int:
        return len(self.q)


class NativeLayer:
    """One cache layer and a program of rope_append or latent_append, and attention. `pool` holds n_blocks, zeroed.

    `guarded`: rows are as wide as their contents, and memory ends where each buffer ends.
    """

    def __init__(
        self,
        library: ctypes.CDLL,
        shape: Shape,
        n_blocks: int,
        n_threads: int,
        max_rows: int = 2048,
        guarded: bool = False,
        n_ring: int = 0,
    ) -> None:
        self.library, self.shape, self.max_rows, self.guarded = library, shape, max_rows, guarded
        self.reserved: list[tuple[int, int]] = []
        self.codec = abi.KV_CODES[shape.codec]
        self.block_bytes = (
            library.lr_latent_block_bytes(self.codec, shape.head_dim, shape.value_dim)
            if shape.value_dim
            else library.lr_kv_block_bytes(self.codec, shape.n_kv_heads, shape.head_dim)
        )
        assert self.block_bytes > 0
        self.pool = self.memory(n_blocks * self.block_bytes).view(torch.uint8)
        self.ring_bytes = library.lr_kv_block_bytes(abi.KV_CODES["f16"], shape.n_kv_heads, shape.head_dim)
        has_ring = self.codec >= abi.KV_CODES["q8"]
        self.ring = self.memory(n_ring * self.ring_bytes).view(torch.uint8) if has_ring else None
        self.threads = library.lr_threads_create(n_threads)
        assert self.threads
        self.make_buffers()
        self.program = self.make_program()
        self.executor = c_void_p()
        self.status = library.lr_program_create(
            ctypes.byref(self.program), self.threads, max_rows, ctypes.byref(self.executor)
        )
        self.cancel = c_int32(0)

    def make_buffers(self) -> None:
        """Rows of q, k and v, of what rope_append makes of q, and of what attention gives."""
        widths = self.shape.widths
        self.buffers = {name: self.rows_of(width) for name, width in widths.items()}
        self.values = {
            name: abi.Value(f32=rows.data_ptr(), width=widths[name], stride=rows.shape[1])
            for name, rows in self.buffers.items()
        }

    def make_program(self) -> abi_step.ProgramC:
        """rope_append, then attention, over one layer; its parts are kept as long as the layer."""
        shape = self.shape
        value = {name: ctypes.pointer(v) for name, v in self.values.items()}
        sink_turned = value["sink_turned"] if shape.sink_window and shape.rope else None
        rope = 0 if shape.rope else -1
        name = "latent_append" if shape.value_dim else "rope_append"
        append: ctypes.Structure
        if shape.value_dim:
            parts = [value[part] for part in ("q", "q_rope", "latent", "k_rope")]
            append = abi.LatentAppend(*parts, value["turned"], 0, rope)
        else:
            append = abi.RopeAppend(
                value["q"], value["k"], value["v"], value["turned"], sink_turned, address(shape.q_weight),
                address(shape.k_weight), 0, rope, abi.QK_NORMS[shape.qk_norm], shape.eps,
            )  # fmt: skip
        attend = abi.Attention(
            value["turned"], sink_turned, value["out"], address(shape.sinks), 0, shape.window or 0,
            shape.sink_window or 0, shape.scale, shape.softcap or 0,
        )  # fmt: skip
        self.instructions = (abi.Instruction * 2)()
        self.instructions[0].op = abi.OPS.index(name)
        setattr(self.instructions[0], name, append)
        self.instructions[1].op, self.instructions[1].attention = abi.OPS.index("attention"), attend
        self.layers = (abi_step.CacheLayerC * 1)(
            abi_step.CacheLayerC(
                abi_step.KVPoolC(self.pool.data_ptr(), self.block_bytes, 0),
                abi_step.KVPoolC() if self.ring is None else abi_step.KVPoolC(self.ring.data_ptr(), self.ring_bytes, 0),
                0,
                shape.n_heads,
                shape.n_kv_heads,
                shape.head_dim,
                self.codec,
                value_dim=shape.value_dim,
            )
        )
        return abi_step.ProgramC(self.instructions, self.layers, 2, 1)

    def memory(self, n_bytes: int) -> Tensor:
        """Zeroed f32 memory, aligned to 64 bytes; what lies behind it may not be touched when guarded."""
        whole = -(-n_bytes // mmap.PAGESIZE) * mmap.PAGESIZE
        start = self.library.lr_reserve(whole + mmap.PAGESIZE)
        self.reserved.append((start, whole + mmap.PAGESIZE))
        assert self.library.lr_commit(start, whole) == OK
        if self.guarded:
            start += whole - n_bytes
        return torch.frombuffer((ctypes.c_float * (n_bytes // 4)).from_address(start), dtype=torch.float32)

    def rows_of(self, width: int) -> Tensor:
        """A buffer of the arena, f32 [max_rows, stride]."""
        stride = width if self.guarded else -(-width // 256) * 256
        return self.memory(4 * self.max_rows * stride).view(self.max_rows, stride)

    def step(
        self, *sequences: Rows, cos_sin: Angles = None, sink_cos_sin: Angles = None
    ) -> tuple[abi_step.Step, list[Any]]:
        """A step of these sequences, q, k and v in place, and what it points to."""
        positions = [s.first + i for s in sequences for i in range(s.n)]
        row_sequence = [index for index, s in enumerate(sequences) for _ in range(s.n)]
        for name, rows in self.operands(sequences).items():
            self.buffers[name][: len(rows), : rows.shape[1]] = rows
        keep: list[Any] = [int32s(positions), int32s(row_sequence), cos_sin, sink_cos_sin]
        native = (abi_step.SequenceC * len(sequences))()
        for place, s in zip(native, sequences, strict=True):
            table, ring = int32s(list(s.table)), int32s(list(s.ring))
            single = [int32s([x]) for x in (s.first_block, s.sink, s.ring_sink, s.write_from)]
            keep += [table, ring, *single]
            place.table = (c_void_p * 1)(ctypes.addressof(table))
            place.ring = (c_void_p * 1)(ctypes.addressof(ring))
            place.first, place.sink, place.ring_sink, place.write_from = map(ctypes.addressof, single)
            place.ring_first, place.length = s.ring_first, s.first + s.n
        half = int32s([0 if cos_sin is None else cos_sin[0].shape[-1]])
        keep.append(half)
        step = abi_step.Step(
            token=ctypes.addressof(keep[0]), position=ctypes.addressof(keep[0]), row_sequence=ctypes.addressof(keep[1]),
            sequence=native, cos=pointer_to(cos_sin, 0), sin=pointer_to(cos_sin, 1),
            sink_cos=pointer_to(sink_cos_sin, 0), sink_sin=pointer_to(sink_cos_sin, 1),
            rope_half=ctypes.addressof(half), cancel=ctypes.addressof(self.cancel), n_rows=len(positions),
            n_sequences=len(sequences),
        )  # fmt: skip
        return step, keep

    def operands(self, sequences: Sequence[Rows]) -> dict[str, Tensor]:
        """What the first instruction reads, by the names of buffers."""
        q, k, v = (torch.cat([getattr(s, name) for s in sequences]) for name in ("q", "k", "v"))
        rank = self.shape.value_dim
        if not rank:
            return {"q": q, "k": k, "v": v}
        by_head = q.unflatten(1, (self.shape.n_heads, -1))
        whole, turned = by_head[..., :rank].flatten(1), by_head[..., rank:].flatten(1)
        return {"q": whole, "q_rope": turned, "latent": k[:, :rank], "k_rope": k[:, rank:]}

    def run(self, *sequences: Rows, cos_sin: Angles = None, sink_cos_sin: Angles = None) -> Tensor:
        """The attention output of every row, f32 [R, n_heads * dims of a value]."""
        step, _keep = self.step(*sequences, cos_sin=cos_sin, sink_cos_sin=sink_cos_sin)
        assert self.library.lr_program_run(self.executor, ctypes.byref(step)) == OK
        return self.buffers["out"][: step.n_rows, : self.shape.widths["out"]].clone()

    def status_of(self, *sequences: Rows, cos_sin: Angles = None, sink_cos_sin: Angles = None) -> int:
        """What lr_program_run says to a step."""
        step, _keep = self.step(*sequences, cos_sin=cos_sin, sink_cos_sin=sink_cos_sin)
        if sink_cos_sin is None:
            step.sink_cos = step.sink_sin = None
        return int(self.library.lr_program_run(self.executor, ctypes.byref(step)))

    def export(self, block: int, slot: int, n: int) -> tuple[Tensor, Tensor]:
        """Keys and values of slots of a block, f32 [n, n_kv_heads, head_dim]."""
        k, v = torch.zeros(2, n, self.shape.n_kv_heads, self.shape.head_dim)
        where = self.pool.data_ptr() + block * self.block_bytes
        status = self.library.lr_kv_export(
            self.codec, self.shape.n_kv_heads, self.shape.head_dim, where, slot, n, k.data_ptr(), v.data_ptr()
        )
        assert status == OK
        return k, v

    def timings(self) -> list[float]:
        """Seconds of rope_append and of attention."""
        seconds = (c_double * 2)()
        assert self.library.lr_program_timings(self.executor, seconds, 2) == OK
        return list(seconds)

    def close(self) -> None:
        self.library.lr_program_destroy(self.executor)
        self.library.lr_threads_destroy(self.threads)
        for start, n_bytes in self.reserved:
            assert self.library.lr_release(start, n_bytes) == OK


def pointer_to(angles: Angles, index: int) -> Any:
    """The cosines (0) or sines (1) of one rope kind."""
    return (c_void_p * 1)(None if angles is None else angles[index].data_ptr())


def address(x: Tensor | None) -> int | None:
    return None if x is None else x.data_ptr()
