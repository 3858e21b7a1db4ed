"""Matrices whose bf16 scales fp16 does not hold, even after one power of two: they are held with f32 scales instead.

Only the scales themselves tell, so a folder is opened as if none were, and looked through once a load came upon one.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING

from localrun.formats.checkpoints.fp16_scales import WITH_F32_SCALES, PowerOfTwo, ScaledCodes
from localrun.formats.checkpoints.joined import appears_as
from localrun.formats.source import factor_name

if TYPE_CHECKING:
    from localrun.formats.safetensors import SafetensorsFolder

_THREADS = 4


def with_wide_scales(folder: SafetensorsFolder) -> SafetensorsFolder:
    """The folder with f32 scales where fp16 is too narrow. Reads the bf16 scales of all matrices.

    Raises ModelFileError where some cannot be read.
    """
    factors = [one for one in folder.joined.values() if isinstance(one, PowerOfTwo)]
    with ThreadPoolExecutor(_THREADS) as pool:
        fits = list(pool.map(lambda factor: factor.matrix.fits_fp16(folder.read_rows), factors))
    wide = [factor.matrix for factor, is_narrow in zip(factors, fits, strict=True) if not is_narrow]
    gone = {factor_name(matrix.info.name) for matrix in wide}
    held = {matrix.info.name: _widened(matrix) for matrix in wide}
    joined = {name: held.get(name, one) for name, one in folder.joined.items() if name not in gone}
    tensors = {name: info for name, info in folder.tensors.items() if name not in gone}
    return replace(folder, joined=joined, tensors=tensors | {name: one.info for name, one in held.items()})


def _widened(matrix: ScaledCodes) -> ScaledCodes:
    info = matrix.info
    return replace(matrix, info=appears_as(info.name, info.shape, WITH_F32_SCALES[info.qtype], matrix.parts[0]))
