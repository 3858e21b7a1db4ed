"""A model's own weights as 16-bit floats, whatever their type in the file, as the source of other precisions."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from localrun.base.dataclass import dataclass
from localrun.formats.quant import QUANT_TYPES
from localrun.formats.requantize import FLOAT_TYPES, MAPPED_NAME
from localrun.formats.requantizing_source import RequantizingSource
from localrun.formats.source import TensorInfo

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class FloatWeights(RequantizingSource):
    """`source` with its quantised matrices as F16; float tensors stay as they are."""

    def as_read(self, info: TensorInfo) -> TensorInfo:
        if len(info.shape) < 2 or info.qtype in FLOAT_TYPES or info.name.endswith(MAPPED_NAME):
            return info
        return replace(info, qtype="F16", nbytes=QUANT_TYPES["F16"].nbytes(info.shape))

    def encode(self, weights: Tensor, qtype: str) -> Tensor:
        return weights.half()
