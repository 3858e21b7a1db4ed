"""How torch says that memory ran out: a type of its own on CUDA alone, a RuntimeError with some words elsewhere."""

import torch

WORDS = ("out of memory", "not enough memory", "can't allocate memory", "ALLOC_FAILED")  # MPS, Windows, Linux, cuBLAS


def ran_out(error: BaseException) -> bool:
    """Whether `error` means that main memory or a device's could not be had."""
    if isinstance(error, (MemoryError, torch.OutOfMemoryError)):
        return True
    return isinstance(error, RuntimeError) and any(words in str(error) for words in WORDS)
