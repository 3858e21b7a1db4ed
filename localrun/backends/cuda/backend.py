"""CUDA: the reference operations on that device, with weights decoded, until kernels of its own stand here."""

from localrun.backends.reference.backend import ReferenceBackend, why_torch_cannot_use


class CudaBackend(ReferenceBackend):
    name = torch_name = "cuda"
    note = "the reference operations run on cuda, with weights decoded"

    @property
    def chip(self) -> str:
        import torch

        return torch.cuda.get_device_name(self.device)

    def why_unavailable(self) -> str:
        import torch

        return why_torch_cannot_use("cuda", "CUDA device", torch.cuda.is_available())

    def summary(self) -> str:
        return self.chip

    def free_bytes(self, main_memory: int) -> int:
        """What torch holds for later use of this process counts as free."""
        import torch

        kept = torch.cuda.memory_reserved(self.device) - torch.cuda.memory_allocated(self.device)
        return int(torch.cuda.mem_get_info(self.device)[0]) + kept

    def peak_bytes(self) -> int:
        import torch

        return torch.cuda.max_memory_allocated(self.device)
