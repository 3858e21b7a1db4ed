"""Base of backends that run a recorded program by kernels of our own."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence

from localrun.backends.decode_cost import DecodeCost
from localrun.backends.gpu.decode_cost import decode_cost
from localrun.backends.gpu.supports import kernels_on, left_to_torch
from localrun.backends.gpu.validated_gpus import proven
from localrun.backends.gpu.weight_layouts import layout_of
from localrun.backends.reference.backend import ReferenceBackend
from localrun.ops.instructions import Linear
from localrun.ops.recording import Recording


class GpuBackend(ReferenceBackend):
    """Kernels of our own for what most models do, the reference operations on the device for the rest."""

    note = ""
    program_bytes = 600 << 20  # that torch, its libraries and compilers take before anything is loaded
    has_graphs = False  # a decode step that is launches of kernels alone is one CUDA graph
    growth_bytes = 64 << 20  # kernels that are loaded or compiled when they are first used
    measures_limits = True

    @property
    @abstractmethod
    def is_emulated(self) -> bool:
        """Whether kernels run on the processor, to be tested."""
        ...

    @property
    @abstractmethod
    def gpu_name(self) -> str:
        """The maker's name of the GPU."""
        ...

    @property
    @abstractmethod
    def chip(self) -> str:
        """The properties of the device that, with kernels and torch, decide the bits of results."""
        ...

    @property
    def kernels(self) -> frozenset[str]:
        return kernels_on(self.name)

    def summary(self) -> str:
        if self.is_emulated:
            return "emulated on this processor, for tests"
        return f"{self.chip}; {proven(self.gpu_name)}"

    def without_kernels(self, model: Recording) -> Sequence[str]:
        """Parts that the reference operations compute on the device, with weights that are decoded as they are used."""
        return left_to_torch(model, self.name)

    def decode_cost(self, model: Recording) -> DecodeCost:
        return decode_cost(model, self.name, self.has_graphs)

    def why_not(self, model: Recording, matrix_types: Iterable[str]) -> str:
        linears = (each.instruction for each in model.instructions if isinstance(each.instruction, Linear))
        if any(weight.adapters for op in linears for weight in op.weights):
            return "its kernels take no adapters (LoRA) yet"
        return super().why_not(model, matrix_types)

    def layout_name(self, qtype: str) -> str:
        return layout_of(qtype).name

    def matrix_bytes(self, qtype: str, n_rows: int, n_cols: int) -> int:
        return layout_of(qtype).nbytes(n_rows, n_cols)
