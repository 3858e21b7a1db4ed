"""Executors whose cache is torch's, and the one that replays a program by the reference operations."""

from typing import Generic, Protocol, TypeVar

import numpy as np
import torch

from localrun.backends.executor import CachePlan, ExecutorRequest
from localrun.backends.reference.ops import ReferenceOps
from localrun.backends.reference.pool import KVPool
from localrun.backends.reference.rows import RowReferenceOps
from localrun.base.device_figures import DeviceFigures
from localrun.base.errors import ran_out
from localrun.ops.interface import PlainKV, StepInput
from localrun.ops.program import Handle, Program, Segment

MAIN_MEMORY = torch.device("cpu")


class Runs(Protocol):
    """An object that computes steps."""

    def run(self, step: StepInput) -> Handle: ...


ProgramT = TypeVar("ProgramT", bound=Runs)


class TorchExecutor(Generic[ProgramT]):
    """A program beside a cache in the memory of a torch device."""

    def __init__(self, program: ProgramT, pool: KVPool, device: torch.device) -> None:
        self.program, self.pool, self.device = program, pool, device

    @property
    def bulk_span(self) -> int:
        return 0

    @property
    def exact_rows(self) -> bool:
        return False

    @property
    def runs_ahead(self) -> bool:
        return False

    @property
    def device_steps(self) -> DeviceFigures:
        return DeviceFigures()

    @property
    def takes_images(self) -> bool:
        return False

    @property
    def kv_nbytes(self) -> int:
        return self.pool.nbytes

    def hidden(self, n_rows: int) -> np.ndarray | None:
        return None

    def beside(self, n_rows: int) -> np.ndarray | None:
        return None

    def block_bytes(self, group: int) -> int:
        return self.pool.coded[group].block_bytes

    def ring_bytes(self, group: int) -> int:
        ring = self.pool.ring[group]
        return 0 if ring is None else ring.block_bytes

    def copy_block(self, group: int, source: int, target: int) -> None:
        self.pool.coded[group].copy(source, target)

    def copy_ring(self, group: int, source: int, target: int) -> None:
        self.pool.store(group, ring=True).copy(source, target)

    def read_block(self, group: int, block: int) -> bytes:
        return self.pool.coded[group].to_bytes(block)

    def write_block(self, group: int, block: int, data: bytes | memoryview) -> None:
        self.pool.coded[group].from_bytes(block, data)

    def read_ring(self, group: int, block: int) -> bytes:
        return self.pool.store(group, ring=True).to_bytes(block)

    def write_ring(self, group: int, block: int, data: bytes | memoryview) -> None:
        self.pool.store(group, ring=True).from_bytes(block, data)

    def kv_export(self, layer: int, block: int, ring: bool = False) -> tuple[PlainKV, PlainKV]:
        place = self.pool.layers[layer]
        store = self.pool.store(place.group, ring)
        where = (block, place.index)
        return store.keys.get(where).to(MAIN_MEMORY), store.values.get(where).to(MAIN_MEMORY)

    def kv_import(self, layer: int, block: int, keys: PlainKV, values: PlainKV, ring: bool = False) -> None:
        place = self.pool.layers[layer]
        store = self.pool.store(place.group, ring)
        store.keys.put((block, place.index), keys.to(self.device))
        store.values.put((block, place.index), values.to(self.device))

    @torch.inference_mode()
    def run(self, step: StepInput) -> Handle:
        try:
            return self.program.run(step)
        except RuntimeError as error:
            if not ran_out(error):
                raise
        raise MemoryError("the working memory of a step")  # out here, for torch's error holds on to the step's tensors

    def close(self) -> None:
        """Let go of the cache and of the weights; a device's memory that nothing holds goes back to other programs."""
        del self.program
        self.pool.close()
        if self.device.type == "cuda":
            torch.cuda.empty_cache()
        elif self.device.type == "mps":
            torch.mps.empty_cache()


class ReferenceExecutor(TorchExecutor[Program]):
    """A model in plain torch: it defines what correct means."""

    def __init__(self, request: ExecutorRequest, device: torch.device, ops: type[ReferenceOps] = ReferenceOps) -> None:
        pool = pool_of(request.cache, device)
        assert not request.given, "no step brings rows along here"
        interpreter = ops(pool, device)
        program = Program([Segment.of(interpreter, segment) for segment in request.segments])
        super().__init__(program, pool, device)
        self.row_by_row = issubclass(ops, RowReferenceOps)
        self.last = interpreter

    @property
    def exact_rows(self) -> bool:
        return self.row_by_row

    @property
    def takes_images(self) -> bool:
        return True

    def hidden(self, n_rows: int) -> np.ndarray | None:
        found: np.ndarray = self.last.hidden[:n_rows].cpu().numpy()
        return found


def pool_of(cache: CachePlan, device: torch.device) -> KVPool:
    """Memory for the planned blocks."""
    return KVPool(cache.layers, cache.kv, cache.blocks, cache.ring_blocks, device)
