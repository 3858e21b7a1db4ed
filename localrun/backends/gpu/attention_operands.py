"""Operands of attention, in the order in which its kernels take them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from localrun.base.dataclass import dataclass

if TYPE_CHECKING:
    from torch import Tensor

    from localrun.backends.gpu.device import Argument
    from localrun.backends.gpu.layer_cache import LayerCache
    from localrun.backends.gpu.step_tensors import StepTensors
    from localrun.ops.instructions import Attention


@dataclass(frozen=True, slots=True)
class AttentionOperands:
    """Buffers that attention reads and writes."""

    step: StepTensors
    op: Attention
    cache: LayerCache
    q: Tensor
    sink_query: Tensor | None
    out: Tensor

    def read(self, first: int = 0) -> tuple[Argument, ...]:
        """The arguments that all ways begin with, for rows from number `first` on."""
        return *self.queries(first), *self.cache.planes, *self.places(first), *self.rings(first)

    def queries(self, first: int) -> tuple[Argument, ...]:
        """Queries, and those towards block 0."""
        return self.q[first:], None if self.sink_query is None else self.sink_query[first:]

    def places(self, first: int) -> tuple[Argument, ...]:
        """Positions and sequences of rows, and where the blocks of a sequence are."""
        step, group = self.step, self.cache.place.group
        rows = (step.positions[first:], step.row_sequence[first:])
        return *rows, step.table, step.table_at[group], step.sink[group]

    def rings(self, first: int) -> tuple[Argument, ...]:
        """Places in the ring: of rows, and of block 0."""
        step, group = self.step, self.cache.place.group
        return (None, None) if self.cache.ring is None else (step.ring_slots[group][first:], step.ring_sink[group])
