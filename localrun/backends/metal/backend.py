"""Apple's GPU: the reference operations on that device, with weights decoded, until kernels of its own stand here."""

from dataclasses import replace

from localrun.backends.reference.backend import ReferenceBackend, why_torch_cannot_use
from localrun.base.machine import Memory


class MetalBackend(ReferenceBackend):
    name = "mps"
    note = "the reference operations run on mps, with weights decoded"

    @property
    def torch_name(self) -> str:
        return "mps"

    def why_unavailable(self) -> str:
        import torch

        return why_torch_cannot_use("mps", "Apple GPU", torch.backends.mps.is_available())

    def memory(self, main: Memory) -> Memory:
        """Main memory is the GPU's too, but for a part the system keeps."""
        import torch

        free = torch.mps.recommended_max_memory() - torch.mps.current_allocated_memory()
        return replace(main, available=min(main.available, free))
