"""Every name of device.cuh by itself: what a GPU gives must be what the emulator gives, to the bit."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING

from localrun.backends.gpu.synthetic import scattered

if TYPE_CHECKING:
    from torch import Tensor

    from localrun.backends.gpu.device import Argument, Device

# Digests of what intrinsics.cu gives. Every sum in it is exact, so no order of summing can change them.
DIGESTS: Mapping[str, str] = {
    "mma_s8": "b5f3394d48c60b8b",
    "mma_s8u8": "70e45b0caa88330b",
    "mma_s8_k16": "ffbdb9c128c00815",
    "mma_f16": "90838b638d20e485",
    "mma_bf16": "90838b638d20e485",
    "ldmatrix": "2cebcd12d1a1362d",
    "copy_async": "7eae98943e9799b3",
    "dp4a": "798b8706f3c3f480",
    "fma_half2": "c0147f6db31efe01",
    "numbers": "374cf17f54d6b37f",
    "shuffles": "5ca0ca759907a983",
}


def intrinsics(device: Device) -> str:
    """Each name of device.cuh by itself."""
    for name, digest in DIGESTS.items():
        found = intrinsic_digest(device, name)
        if found != digest:
            return f"{name} gives {found}, not {digest}"
    return ""


def intrinsic_digest(device: Device, name: str) -> str:
    """A digest of what check_`name` of intrinsics.cu gives."""
    import torch

    def bits(*shape: int, dtype: torch.dtype = torch.int32) -> Tensor:
        return scattered(*shape).to(device.torch_device, dtype)

    def zeros(*shape: int, dtype: torch.dtype = torch.int32) -> Tensor:
        return torch.zeros(*shape, dtype=dtype, device=device.torch_device)

    block, shared, grid = 32, 0, 1
    given: tuple[Argument, ...]
    found: tuple[Tensor, ...]
    if name in ("mma_s8", "mma_s8u8", "mma_s8_k16"):
        half = 2 if name == "mma_s8_k16" else 1
        found = (bits(32, 4),)
        given = (bits(32, 4 // half), bits(32, 2 // half), *found)
    elif name in ("mma_f16", "mma_bf16"):
        dtype = torch.float16 if name == "mma_f16" else torch.bfloat16
        a, b = (((scattered(32, n) % 15) - 7).to(dtype).view(torch.int32).to(device.torch_device) for n in (8, 4))
        found = (zeros(32, 4, dtype=torch.float32),)
        given = (a, b, *found)
    elif name == "ldmatrix":
        found = (zeros(32, 4), zeros(32, 4))
        given = (bits(32, 4), *found)
    elif name == "copy_async":
        block, shared = 64, 2 * 64 * 16
        found = (zeros(2, 64, 4),)
        given = (bits(64, 4), *found, 40)
    elif name == "dp4a":
        block = 64
        found = (bits(50),)
        given = (bits(50), bits(50).flip(0).contiguous(), *found, 50)
    elif name == "fma_half2":
        block, n = 64, 50  # small integers times any number: exact before they are rounded
        a, b, c = scattered(3, 2 * n)
        pairs = [x.to(torch.float16).view(torch.int32) for x in (a % 1025, (b % 60000) / 512, (c % 60000) / 1024)]
        found = (pairs[2].to(device.torch_device),)
        given = (*(x.to(device.torch_device) for x in pairs[:2]), *found, n)
    elif name == "numbers":
        block, grid, n = 64, 16, 1000
        x = (scattered(n).double() / 2**24).float().to(device.torch_device)  # to 128 either way
        halves = [zeros(n, dtype=torch.int16) for _ in range(2)]
        found = (*halves, *(zeros(n, dtype=torch.float32) for _ in range(4)))
        given = (x, *found, n)
    else:
        found = (zeros(4, 32), zeros(32))
        given = (bits(32), 5, *found)
    device.kernel("intrinsics.cu", f"check_{name}").bind((grid, 1, 1), (block, 1, 1), *given, shared=shared)()
    digest = hashlib.sha256()
    for tensor in found:
        digest.update(tensor.cpu().contiguous().view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()[:16]
