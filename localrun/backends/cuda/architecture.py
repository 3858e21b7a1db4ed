"""Properties that all GPUs of an architecture share."""

ENDING = ".cu"  # of its kernels
AMPERE = 80


def shared_bytes(arch: int) -> int:
    """Of shared memory that a block can have on `arch` (90 for sm_90) and all later ones."""
    return 99 << 10 if arch >= AMPERE else 64 << 10
