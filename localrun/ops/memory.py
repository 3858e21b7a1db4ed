"""How torch says that memory ran out: in the words of a RuntimeError, or of a kind of its own on CUDA."""

WORDS = ("out of memory", "not enough memory", "can't allocate memory", "ALLOC_FAILED")  # MPS, Windows, Linux, cuBLAS


def ran_out(error: BaseException) -> bool:
    """Whether `error` means that main memory or a device's could not be had."""
    if isinstance(error, MemoryError):
        return True
    return isinstance(error, RuntimeError) and any(words in str(error) for words in WORDS)
