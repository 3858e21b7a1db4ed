"""Apple's GPU: the reference operations on that device, with weights decoded, until kernels of its own stand here."""

from localrun.backends.reference.backend import ReferenceBackend, why_torch_cannot_use


class MetalBackend(ReferenceBackend):
    name = torch_name = "mps"
    note = "the reference operations run on mps, with weights decoded"

    def why_unavailable(self) -> str:
        import torch

        return why_torch_cannot_use("mps", "Apple GPU", torch.backends.mps.is_available())

    def free_bytes(self, main_memory: int) -> int:
        """Main memory is the GPU's too, but for a part the system keeps."""
        import torch

        return min(main_memory, torch.mps.recommended_max_memory() - torch.mps.current_allocated_memory())
