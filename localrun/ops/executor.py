"""What runs a model's steps: a backend with the recorded program and the memory of the cache."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import torch

from localrun.ops.interface import CacheLayer, Ops, StepInput
from localrun.ops.kv import KVCodec
from localrun.ops.kv_pool import KVPool
from localrun.ops.program import Handle, record
from localrun.ops.reference import ReferenceOps

Forward = Callable[[Ops], Any]


class Executor(Protocol):
    """One model on one backend."""

    @property
    def device(self) -> torch.device: ...
    @property
    def kv_nbytes(self) -> int:
        """Bytes set aside for keys and values."""
        ...

    def copy_block(self, group: int, source: int, target: int) -> None:
        """Copy on write: block `target` becomes a copy of block `source`."""
        ...

    def run(self, step: StepInput) -> Handle:
        """Compute one step. Raises StepCancelled."""
        ...

    def close(self) -> None:
        """Give memory and threads back; the executor is not used afterwards."""
        ...


class ReferenceExecutor:
    """The recorded program replayed by the reference operations, on any torch device."""

    def __init__(
        self,
        forward: Forward,
        layers: Sequence[CacheLayer],
        n_blocks: int,
        block_tokens: int,
        codec: KVCodec,
        device: torch.device,
        ops: type[ReferenceOps] = ReferenceOps,
    ) -> None:
        self.device = device
        n_groups = 1 + max(layer.group for layer in layers)
        self.pool = KVPool(layers, [n_blocks] * n_groups, block_tokens, codec, device)
        self.program = record(forward, ops(self.pool, device))

    @property
    def kv_nbytes(self) -> int:
        return self.pool.nbytes

    def copy_block(self, group: int, source: int, target: int) -> None:
        self.pool.copy_block(group, source, target)

    @torch.inference_mode()
    def run(self, step: StepInput) -> Handle:
        return self.program.run(step)

    def close(self) -> None:
        """Torch frees its tensors by itself."""
