"""The texts of kernels/cuda."""

from localrun.backends.gpu.source import KernelTexts

ENDING = ".cu"  # of its kernels
KERNELS = KernelTexts("kernels/cuda/device.cuh", (ENDING, ".cuh"))

folder = KERNELS.folder
source = KERNELS.source
file_hashes = KERNELS.file_hashes
kernels_hash = KERNELS.kernels_hash
with_includes = KERNELS.with_includes
