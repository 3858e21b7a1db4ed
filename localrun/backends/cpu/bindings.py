"""The library's functions for layouts, memory, threads and programs, with types and errors. Torch-free."""

from collections.abc import Sequence
from ctypes import POINTER, byref, c_char_p, c_double, c_int32, c_int64, c_void_p
from functools import cache
from typing import TYPE_CHECKING, Any

from localrun.backends.cpu import abi, abi_step
from localrun.backends.cpu.library import NativeLibrary
from localrun.base.errors import DoesNotFitError, EngineError
from localrun.base.processors import memory_nodes
from localrun.base.units import gib
from localrun.ops.kv import BLOCK_TOKENS

if TYPE_CHECKING:
    from localrun.ops.sampling import Draw

PROTOTYPES = {
    # name: result, arguments
    "lr_layout_for": (c_int32, (c_int32,)),
    "lr_layout_name": (c_char_p, (c_int32,)),
    "lr_layout_activation_format": (c_int32, (c_int32,)),
    "lr_packed_bytes": (c_int64, (c_int32, c_int32, c_int32)),
    "lr_set_grid": (c_int32, (c_int32, c_void_p, c_int64)),
    "lr_pack": (c_int32, (POINTER(abi.Matrix), c_int32, c_void_p, c_int32, c_int32)),
    "lr_dequantize_row": (c_int32, (POINTER(abi.Matrix), c_int32, c_void_p)),
    "lr_reserve": (c_void_p, (c_int64,)),
    "lr_commit": (c_int32, (c_void_p, c_int64)),
    "lr_release": (c_int32, (c_void_p, c_int64)),
    "lr_populate": (None, (c_void_p, c_int64)),
    "lr_first_touch": (c_int32, (c_void_p, c_void_p, c_int64)),
    "lr_probe_read": (c_double, (c_void_p, c_void_p, c_int64)),
    "lr_probe_multiply": (c_double, (c_void_p, c_int32)),
    "lr_kv_block_bytes": (c_int64, (c_int32, c_int32, c_int32)),
    "lr_kv_import": (c_int32, (c_int32, c_int32, c_int32, c_void_p, c_int32, c_int32, c_void_p, c_void_p)),
    "lr_kv_export": (c_int32, (c_int32, c_int32, c_int32, c_void_p, c_int32, c_int32, c_void_p, c_void_p)),
    "lr_kv_import_codes": (c_int32, (c_int32, c_int32, c_int32, c_void_p, c_int32, c_int32, c_void_p, c_void_p)),
    "lr_kv_export_codes": (c_int32, (c_int32, c_int32, c_int32, c_void_p, c_int32, c_int32, c_void_p, c_void_p)),
    "lr_latent_block_bytes": (c_int64, (c_int32, c_int32, c_int32)),
    "lr_latent_import": (c_int32, (c_int32, c_int32, c_int32, c_void_p, c_int32, c_int32, c_void_p)),
    "lr_latent_export": (c_int32, (c_int32, c_int32, c_int32, c_void_p, c_int32, c_int32, c_void_p)),
    "lr_kv_copy_block": (c_int32, (c_void_p, c_int64, c_int32, c_int32)),
    "lr_threads_create": (c_void_p, (c_int32,)),
    "lr_threads_destroy": (None, (c_void_p,)),
    "lr_threads_keep_to": (c_int32, (c_void_p, c_int32, POINTER(c_int32), c_int32)),
    "lr_program_create": (c_int32, (POINTER(abi_step.ProgramC), c_void_p, c_int32, POINTER(c_void_p))),
    "lr_program_destroy": (None, (c_void_p,)),
    "lr_program_run": (c_int32, (c_void_p, POINTER(abi_step.Step))),
    "lr_choose": (
        c_int32,
        (
            c_void_p,
            c_void_p,
            c_int32,
            c_int32,
            POINTER(abi_step.Candidates),
            POINTER(abi_step.DrawC),
            c_int32,
            POINTER(c_int32),
        ),
    ),
    "lr_attention_bytes": (c_int64, (c_int32, c_int32, c_int32, c_int32)),
}


class CpuCalls:
    """Calls into one loaded library. An error code becomes an EngineError: what reaches C has been checked before."""

    def __init__(self, library: NativeLibrary) -> None:
        self.library = library
        self.c = library.cdll
        for name, (result, arguments) in PROTOTYPES.items():
            function = getattr(self.c, name)
            function.restype, function.argtypes = result, arguments

    def layout_for(self, gguf_id: int) -> int:
        """The layout of a quant type, -1 where there is none."""
        return int(self.c.lr_layout_for(gguf_id))

    def layout_name(self, layout: int) -> str:
        return str(self.c.lr_layout_name(layout).decode())

    def activation_format(self, layout: int) -> int:
        return int(self.c.lr_layout_activation_format(layout))

    def packed_bytes(self, layout: int, n_rows: int, n_cols: int) -> int:
        """Bytes of a packed matrix, -1 where the layout cannot hold one."""
        return int(self.c.lr_packed_bytes(layout, n_rows, n_cols))

    def set_grid(self, gguf_id: int, values: bytes) -> None:
        self.check("lr_set_grid", self.c.lr_set_grid(gguf_id, values, len(values)))

    def pack(self, matrix: abi.Matrix, gguf_id: int, raw: int, first_row: int, n_rows: int) -> None:
        self.check("lr_pack", self.c.lr_pack(byref(matrix), gguf_id, raw, first_row, n_rows))

    def dequantize_row(self, matrix: abi.Matrix, row: int, out: int) -> None:
        self.check("lr_dequantize_row", self.c.lr_dequantize_row(byref(matrix), row, out))

    def reserve(self, n_bytes: int) -> int:
        """The address of zeroed memory that is used up only as it is written to."""
        address = self.reserve_space(n_bytes)
        self.commit(address, n_bytes)
        return address

    def reserve_space(self, n_bytes: int) -> int:
        """The address of room for memory; none of it may be touched before it is committed."""
        address = self.c.lr_reserve(n_bytes)
        if not address:
            raise out_of_memory(n_bytes)
        return int(address)

    def commit(self, address: int, n_bytes: int) -> None:
        """Make reserved room usable; it reads zero."""
        if self.c.lr_commit(address, n_bytes) != abi.OK:
            raise out_of_memory(n_bytes)

    def release(self, address: int, n_bytes: int) -> None:
        self.check("lr_release", self.c.lr_release(address, n_bytes))

    def populate(self, address: int, n_bytes: int) -> None:
        """Have all of a mapped file in memory, and its pages ready to be read."""
        self.c.lr_populate(address, n_bytes)

    def first_touch(self, threads: int, address: int, n_bytes: int) -> None:
        self.check("lr_first_touch", self.c.lr_first_touch(threads, address, n_bytes))

    def probe_read(self, threads: int, address: int, n_bytes: int) -> float:
        """Bytes a second of one pass over touched memory."""
        return float(self.c.lr_probe_read(threads, address, n_bytes))

    def probe_multiply(self, threads: int, kind: int) -> float:
        """Multiply-adds a second at best."""
        return float(self.c.lr_probe_multiply(threads, kind))

    def kv_block_bytes(self, codec: int, n_kv_heads: int, head_dim: int) -> int:
        """Bytes of one layer of a block, -1 for what the library cannot hold."""
        return int(self.c.lr_kv_block_bytes(codec, n_kv_heads, head_dim))

    def kv_import(self, shape: tuple[int, int, int], block: int, keys: int, values: int) -> None:
        """All 64 tokens of a block from plain numbers; `shape` is codec, KV heads, head_dim, the rest are addresses."""
        self.check("lr_kv_import", self.c.lr_kv_import(*shape, block, 0, BLOCK_TOKENS, keys, values))

    def kv_export(self, shape: tuple[int, int, int], block: int, keys: int, values: int) -> None:
        self.check("lr_kv_export", self.c.lr_kv_export(*shape, block, 0, BLOCK_TOKENS, keys, values))

    def kv_import_codes(self, shape: tuple[int, int, int], block: int, keys: int, values: int) -> None:
        """Likewise from KVCodesC."""
        self.check("lr_kv_import_codes", self.c.lr_kv_import_codes(*shape, block, 0, BLOCK_TOKENS, keys, values))

    def kv_export_codes(self, shape: tuple[int, int, int], block: int, keys: int, values: int) -> None:
        self.check("lr_kv_export_codes", self.c.lr_kv_export_codes(*shape, block, 0, BLOCK_TOKENS, keys, values))

    def latent_block_bytes(self, codec: int, key_dim: int, value_dim: int) -> int:
        """Bytes of the latents of one layer in a block, -1 for what the library cannot hold."""
        return int(self.c.lr_latent_block_bytes(codec, key_dim, value_dim))

    def latent_import(self, shape: tuple[int, int, int], block: int, keys: int) -> None:
        """All 64 keys of a block from plain numbers; `shape` is codec, key_dim, value_dim, the rest are addresses."""
        self.check("lr_latent_import", self.c.lr_latent_import(*shape, block, 0, BLOCK_TOKENS, keys))

    def latent_export(self, shape: tuple[int, int, int], block: int, keys: int) -> None:
        self.check("lr_latent_export", self.c.lr_latent_export(*shape, block, 0, BLOCK_TOKENS, keys))

    def kv_copy_block(self, pool: int, block_bytes: int, source: int, target: int) -> None:
        self.check("lr_kv_copy_block", self.c.lr_kv_copy_block(pool, block_bytes, source, target))

    def attention_bytes(self, n_heads: int, value_dim: int, n_sequences: int, length: int) -> int:
        """Largest number of bytes that attention keeps in a step with `n_sequences` sequences of `length` tokens."""
        return int(self.c.lr_attention_bytes(n_heads, value_dim, n_sequences, length))

    def threads_create(self, n_threads: int) -> int:
        threads = self.c.lr_threads_create(n_threads)
        if not threads:
            raise EngineError(f"{n_threads} threads could not be started", "try fewer with --threads")
        return int(threads)

    def threads_destroy(self, threads: int) -> None:
        self.c.lr_threads_destroy(threads)

    def threads_keep_to(self, threads: int, thread: int, processors: Sequence[int]) -> None:
        """A thread, from 1 on, runs on these processors only from now on; where the system knows such a wish."""
        listed = (c_int32 * len(processors))(*processors)
        self.check("lr_threads_keep_to", self.c.lr_threads_keep_to(threads, thread, listed, len(processors)))

    def program_create(self, program: abi_step.ProgramC, threads: int, max_rows: int) -> int:
        handle = c_void_p()
        self.check("lr_program_create", self.c.lr_program_create(byref(program), threads, max_rows, byref(handle)))
        assert handle.value is not None
        return handle.value

    def program_run(self, handle: int, step: abi_step.Step) -> int:
        """OK or CANCELLED."""
        result = int(self.c.lr_program_run(handle, byref(step)))
        if result != abi.CANCELLED:
            self.check("lr_program_run", result)
        return result

    def choose(
        self, threads: int, rows: int, n_rows: int, vocab: int, candidates: Any, draws: "Sequence[Draw]"
    ) -> list[int]:
        """The token of every draw from the rows [n_rows, vocab] at an address, whose candidates a step has left."""
        n = len(draws)
        asked: Any = draws  # named tuples fill structures faster than their fields one by one
        tokens, native = (c_int32 * n)(), (abi_step.DrawC * n)(*asked)
        self.check("lr_choose", self.c.lr_choose(threads, rows, n_rows, vocab, candidates, native, n, tokens))
        return tokens[:]

    def program_destroy(self, handle: int) -> None:
        self.c.lr_program_destroy(handle)

    @staticmethod
    def check(name: str, result: int) -> None:
        if result == abi.NO_MEMORY:
            raise DoesNotFitError(
                "the system gave no more memory for computing", "try a smaller context (--ctx 4096), or close something"
            )
        if result != abi.OK:
            raise EngineError(f"{name} refused its arguments (code {result})", "please report this")


def out_of_memory(n_bytes: int) -> DoesNotFitError:
    return DoesNotFitError(f"{gib(n_bytes)} of memory cannot be allocated", "try a smaller context (--ctx 4096)")


@cache
def calls_of(library: NativeLibrary) -> CpuCalls:
    """The calls of a library, prepared once."""
    return CpuCalls(library)


def start_threads(calls: CpuCalls, n_threads: int) -> int:
    """A pool of the library. Where main memory has several parts (NUMA), a thread keeps to the processors of one.

    Threads are spread as processors are, and in the same way each time: what thread 3 of one pool has touched first is
    near thread 3 of another. The caller is thread 0 and stays where it is.
    """
    threads = calls.threads_create(n_threads)
    nodes = memory_nodes()
    if len(nodes) > 1:
        node_of = [node for node in nodes for _ in node]
        for thread in range(1, n_threads):
            calls.threads_keep_to(threads, thread, node_of[thread * len(node_of) // n_threads])
    return threads
