"""Quark's integers of 4 bits with a scale for a group of columns: as AWQ's, under other names, and maybe signed.

As quark/torch/utils/pack.py packs them: matrices lie turned, eight rows share a word in AWQ's order or, with the
`pack_method` "order", one after the other. Codes of int4 are in two's complement, and so are its zero points.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from localrun.base.dataclass import dataclass
from localrun.formats.checkpoints.awq import PLACES, GemmCodes
from localrun.formats.checkpoints.fp16_scales import with_factor
from localrun.formats.checkpoints.integers import SCALE_TYPES, held_type
from localrun.formats.checkpoints.joined import Joined, ReadRows, Tensors, appears_as, misfit
from localrun.formats.checkpoints.read_once import ReadOnce
from localrun.formats.checkpoints.turned import Turned, read_words, turn

if TYPE_CHECKING:
    import numpy as np

_BITS, _IN_WORD = 4, 8
_IN_ORDER = tuple(range(_IN_WORD))
_SIGNS = 0x88888888  # turned over, signed codes count from the least one
_MIDDLE = 8  # which is then zero


def join_quark(tensors: Tensors, config: Mapping[str, Any]) -> Joined:
    """Every matrix of codes with its scales. ModelFileError for parts that do not fit together."""
    export, weight = config.get("export"), config["global_quant_config"]["weight"]
    in_order = isinstance(export, Mapping) and export.get("pack_method") == "order"
    is_signed, symmetric = weight["dtype"] == "int4", weight.get("symmetric") is True
    found: Joined = {}
    matrices = ReadOnce()
    for name, codes in tensors.items():
        if not name.endswith(".weight") or codes.qtype != "I32":
            continue
        scales, zeros = tensors.get(f"{name}_scale"), tensors.get(f"{name}_zero_point")
        if scales is None or scales.qtype not in SCALE_TYPES or len(codes.shape) != 2 or len(scales.shape) != 2:
            raise misfit(codes, "of Quark is no matrix with scales for groups")
        if zeros is None and not is_signed:
            raise misfit(codes, "of unsigned codes has no zero points beside it")
        shape, n_groups = (codes.shape[1] * _IN_WORD, codes.shape[0]), scales.shape[0]
        fits = zeros is None or (zeros.qtype, zeros.shape) == ("I32", (n_groups, codes.shape[1]))
        if not fits or scales.shape[1] != shape[0] or shape[1] % n_groups:
            told = f"zero points of shape {list(zeros.shape) if zeros else None}, scales of shape {list(scales.shape)}"
            raise misfit(codes, f"of Quark, of shape {list(codes.shape)}, has {told}")
        group = shape[1] // n_groups
        held = held_type(name, shape[1], group, scales.qtype, _BITS, symmetric=zeros is None or symmetric)
        parts = (codes, scales) if zeros is None else (codes, scales, zeros)
        info, places = appears_as(name, shape, held, codes), _IN_ORDER if in_order else PLACES
        found |= with_factor(QuarkCodes(info, parts, group, _BITS, matrices, places, is_signed), scales)
    return found


@dataclass(frozen=True)
class QuarkCodes(GemmCodes):
    """`parts` are codes, scales and maybe zero points."""

    is_signed: bool

    def read_turned(self, read_rows: ReadRows) -> Turned:
        import numpy as np

        from localrun.formats.checkpoints.parts import read_numbers

        flip = np.uint32(_SIGNS if self.is_signed else 0)
        codes, scales, *zero_points = self.parts
        numbers = read_numbers(read_rows, scales)
        zeros = np.full(numbers.shape, _MIDDLE, np.int8)
        if zero_points:
            zeros = self.unpack_zeros(read_words(read_rows, zero_points[0]) ^ flip)
        return Turned(turn(read_words(read_rows, codes) ^ flip), turn(zeros), turn(numbers))

    def all_scales(self, read_rows: ReadRows) -> np.ndarray:
        from localrun.formats.checkpoints.parts import read_numbers

        return read_numbers(read_rows, self.parts[1]).ravel()
