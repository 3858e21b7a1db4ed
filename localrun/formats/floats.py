"""Numbers of norms and biases: read without torch, as nearly all files have them."""

from collections.abc import Callable, Sequence

import numpy as np

from localrun.formats.quant import QUANT_TYPES


def read_floats(qtype: str, raw: np.ndarray, shape: Sequence[int]) -> np.ndarray:
    """Decode `raw` (uint8) of type `qtype` to f32 of `shape`. Raises ModelFileError where sizes disagree."""
    if qtype in FLOATS and raw.nbytes == QUANT_TYPES[qtype].nbytes(shape):
        return FLOATS[qtype](raw).reshape(tuple(shape))
    import torch

    values: np.ndarray = QUANT_TYPES[qtype].decode(torch.from_numpy(raw), shape).numpy()
    return values


def bf16(raw: np.ndarray) -> np.ndarray:
    """The upper halves of f32."""
    wide: np.ndarray = raw.view("<u2").astype(np.uint32) << 16
    return wide.view(np.float32)


FLOATS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "F32": lambda raw: raw.view("<f4"),
    "F16": lambda raw: raw.view("<f2").astype(np.float32),
    "BF16": bf16,
}
