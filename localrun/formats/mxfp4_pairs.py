"""MXFP4 as checkpoints have it, codes in one tensor and scales in another, read as the blocks of a GGUF."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from localrun.formats.quant import QUANT_TYPES
from localrun.formats.source import TensorInfo

if TYPE_CHECKING:
    import numpy as np

_CODES, _SCALES = "_blocks", "_scales"
_CODE_BYTES = 16  # of a block of 32 numbers


@dataclass(frozen=True, slots=True)
class Mxfp4Pair:
    """The two tensors of one: codes [..., blocks of a row, 16] and scales [..., blocks of a row]."""

    codes: TensorInfo
    scales: TensorInfo

    @property
    def blocks_of_row(self) -> int:
        return self.scales.shape[-1]

    def joined(self, name: str) -> TensorInfo:
        """The tensor of both; it lies where its codes do."""
        shape, mxfp4 = (*self.scales.shape[:-1], 32 * self.blocks_of_row), QUANT_TYPES["MXFP4"]
        return TensorInfo(name, shape, mxfp4.name, mxfp4.nbytes(shape), self.codes.file, self.codes.offset)


def find_pairs(tensors: Mapping[str, TensorInfo]) -> dict[str, Mxfp4Pair]:
    """The pairs among the tensors of a checkpoint, by the name without an ending."""
    found = {}
    for name, codes in tensors.items():
        scales = tensors.get(name.removesuffix(_CODES) + _SCALES)
        if not name.endswith(_CODES) or scales is None or {codes.qtype, scales.qtype} != {"U8"}:
            continue
        if scales.shape and codes.shape == (*scales.shape, _CODE_BYTES):
            found[name.removesuffix(_CODES)] = Mxfp4Pair(codes, scales)
    return found


def join_pairs(tensors: Mapping[str, TensorInfo], pairs: Mapping[str, Mxfp4Pair]) -> dict[str, TensorInfo]:
    """All tensors, each pair as one."""
    parts = {part.name for pair in pairs.values() for part in (pair.codes, pair.scales)}
    kept = {name: info for name, info in tensors.items() if name not in parts}
    return kept | {name: pair.joined(name) for name, pair in pairs.items()}


def join_blocks(codes: "np.ndarray", scales: "np.ndarray") -> bytearray:
    """Flat uint8 as blocks of 17 bytes: there neighbours share a byte, here a number and the one 16 on."""
    import numpy as np

    numbers = np.stack((codes & 15, codes >> 4), axis=-1).reshape(len(scales), 32)
    blocks = np.empty((len(scales), 1 + _CODE_BYTES), np.uint8)
    blocks[:, 0] = scales
    blocks[:, 1:] = numbers[:, :16] | numbers[:, 16:] << 4
    return bytearray(blocks.data)
