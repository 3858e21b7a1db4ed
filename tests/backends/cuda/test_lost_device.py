"""A GPU that fails for good is told apart from one whose memory ran out, whoever says so."""

import pytest
import torch
from localrun_testing.emulated_cuda import CudaStepper

from localrun.base.errors import DeviceLostError
from localrun.base.resources import resource


class CUDAError(Exception):
    """As cuda-core calls its own."""


BUILTIN = resource("localrun/builtin/localrun-tiny.gguf")
LOST = (
    torch.AcceleratorError("CUDA error: an illegal memory access was encountered\nCUDA kernel errors might be …"),
    RuntimeError("CUDA error: unspecified launch failure"),
    CUDAError("CUDA_ERROR_ILLEGAL_ADDRESS: While executing a kernel"),
)


def failing(model: CudaStepper, error: Exception) -> None:
    """Have every later launch fail."""

    def launch() -> None:
        raise error

    program = model.executor.program
    program.launches = {bucket: [launch] for bucket in program.launches}
    program.graphs.kept = dict.fromkeys(program.graphs.kept, launch)


@pytest.mark.parametrize("error", LOST, ids=lambda error: type(error).__name__)
def test_a_lost_gpu_is_told_as_such(error: Exception) -> None:
    model = CudaStepper(BUILTIN)
    model.step([3], 0)
    failing(model, error)
    with pytest.raises(DeviceLostError, match=r"^the GPU failed: CUDA[^\n]*$"):
        model.step([3], 1)


def test_other_errors_stay_what_they_are() -> None:
    model = CudaStepper(BUILTIN)
    model.step([3], 0)
    for error, raised in (
        (ValueError("a bug"), ValueError),
        (torch.OutOfMemoryError("CUDA out of memory. CUDA error …"), MemoryError),
        (RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"), MemoryError),
    ):
        failing(model, error)
        with pytest.raises(raised):
            model.step([3], 1)
