"""Interface of an executor: it runs steps with the recorded program and the memory of the cache."""

from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING, Protocol

from localrun.base.dataclass import dataclass
from localrun.base.device_figures import DeviceFigures
from localrun.ops.cache_layer import CacheLayer
from localrun.ops.interface import PlainKV, StepInput
from localrun.ops.kv import KVPlan
from localrun.ops.program import Handle
from localrun.ops.recording import Forward, Recorded, record_instructions

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True, slots=True)
class CachePlan:
    """The cache of a model: place and codec of each layer's entries, coded and 16-bit blocks of each group."""

    layers: Sequence[CacheLayer]
    kv: KVPlan
    blocks: Sequence[int]  # [groups]
    ring_blocks: Sequence[int]  # [groups], 0 where the codec is native


@dataclass(frozen=True, slots=True)
class ExecutorRequest:
    """A program in segments, one after the other, the cache that it reads and writes, and threads to compute it."""

    segments: Sequence[Sequence[Recorded]]
    cache: CachePlan
    threads: int = 1
    given: tuple[int, ...] = ()  # widths of the first slots: rows that every step brings along
    beside: "Executor | None" = None  # whose threads compute this, too: the two take turns
    shares_cache: bool = False  # `cache` is that of `beside`, which is read

    @classmethod
    def of(
        cls,
        forward: Forward,
        cache: CachePlan,
        threads: int = 1,
        given: tuple[int, ...] = (),
        beside: "Executor | None" = None,
        shares_cache: bool = False,
    ) -> "ExecutorRequest":
        """All of a decoder as one segment."""
        return cls((record_instructions(forward, len(given)),), cache, threads, given, beside, shares_cache)

    @property
    def instructions(self) -> Sequence[Recorded]:
        """All segments, for a backend that computes them on one device."""
        return tuple(chain.from_iterable(self.segments))


class Executor(Protocol):
    """One model on one backend."""

    @property
    def kv_nbytes(self) -> int:
        """Bytes set aside for keys and values, coded and 16-bit."""
        ...

    @property
    def bulk_span(self) -> int:
        """Tokens of a span of a prompt that are read in bulk, whole blocks; 0 where one arithmetic serves all rows."""
        ...

    @property
    def exact_rows(self) -> bool:
        """Whether the rows beside a row change no bit of its result, so that several tokens may be verified at once."""
        ...

    @property
    def takes_images(self) -> bool:
        """Whether it reads the `images` of a step."""
        ...

    @property
    def runs_ahead(self) -> bool:
        """Whether it makes use of `StepInput.ahead`."""
        ...

    @property
    def device_steps(self) -> DeviceFigures:
        """Steps since it was loaded, as a device began them."""
        ...

    def hidden(self, n_rows: int) -> "np.ndarray | None":
        """The first rows of the newest step after the last norm, f32 [n_rows, hidden], until the next step; None where
        they stay on a device."""
        ...

    def beside(self, n_rows: int) -> "np.ndarray | None":
        """The first rows that the newest step gave beside its logits, f32 [n_rows, n], until the next step; None for
        none."""
        ...

    def block_bytes(self, group: int) -> int:
        """Bytes of one coded block of a group."""
        ...

    def ring_bytes(self, group: int) -> int:
        """Bytes of one 16-bit block of a group; 0 where its codec is native."""
        ...

    def copy_block(self, group: int, source: int, target: int) -> None:
        """Copy on write: coded block `target` becomes a copy of block `source`."""
        ...

    def copy_ring(self, group: int, source: int, target: int) -> None:
        """Likewise for 16-bit blocks."""
        ...

    def read_block(self, group: int, block: int) -> bytes:
        """A coded block in the backend's private layout, `block_bytes` of them."""
        ...

    def write_block(self, group: int, block: int, data: bytes | memoryview) -> None:
        """Put back what `read_block` gave."""
        ...

    def read_ring(self, group: int, block: int) -> bytes:
        """A 16-bit block, `ring_bytes` of them."""
        ...

    def write_ring(self, group: int, block: int, data: bytes | memoryview) -> None:
        """Put back what `read_ring` gave."""
        ...

    def kv_export(self, layer: int, block: int, ring: bool = False) -> tuple[PlainKV, PlainKV]:
        """Keys and values of a layer in a coded (or 16-bit) block, in main memory; rotated where the codec rotates."""
        ...

    def kv_import(self, layer: int, block: int, keys: PlainKV, values: PlainKV, ring: bool = False) -> None:
        """Put back what the `kv_export` of any backend gave."""
        ...

    def run(self, step: StepInput) -> Handle:
        """Begin one step, once the one before it is done; its result need not be read at once.

        Raises StepCancelled, or MemoryError where its working memory cannot be had.
        """
        ...

    def close(self) -> None:
        """Give memory and threads back; the executor is not used afterwards."""
        ...
