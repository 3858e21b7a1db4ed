"""MXFP4 of gpt-oss: codes in one tensor and scales in another, read as the blocks of a GGUF."""

from collections.abc import Mapping
from typing import Any

from localrun.formats.checkpoints.joined import Joined, JoinedTensor, ReadRows, Tensors, appears_as

_CODES, _SCALES = "_blocks", "_scales"
_CODE_BYTES = 16  # of a block of 32 numbers


class Mxfp4Pair(JoinedTensor):
    """Codes [..., blocks of a row, 16] and scales [..., blocks of a row]."""

    def read(self, read_rows: ReadRows, first_row: int, n_rows: int) -> bytearray:
        from localrun.formats.checkpoints.parts import read_bytes
        from localrun.formats.checkpoints.small_floats import fp4_blocks

        codes, scales = self.parts
        n_blocks = scales.shape[-1]
        exponents = read_bytes(read_rows, scales, first_row, n_rows)
        return fp4_blocks(read_bytes(read_rows, codes, first_row * n_blocks, len(exponents)), exponents)


def join_mxfp4(tensors: Tensors, config: Mapping[str, Any]) -> Joined:
    """The pairs among the tensors of a checkpoint, by the name without an ending."""
    found: Joined = {}
    for name, codes in tensors.items():
        scales = tensors.get(name.removesuffix(_CODES) + _SCALES)
        if not name.endswith(_CODES) or scales is None or {codes.qtype, scales.qtype} != {"U8"}:
            continue
        if scales.shape and codes.shape == (*scales.shape, _CODE_BYTES):
            name, shape = name.removesuffix(_CODES), (*scales.shape[:-1], 32 * scales.shape[-1])
            found[name] = Mxfp4Pair(appears_as(name, shape, "MXFP4", codes), (codes, scales))
    return found
