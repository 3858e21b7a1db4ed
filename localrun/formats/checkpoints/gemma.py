"""Gemma's checkpoints for phones (`quant_method` gemma): codes of 2, 4 or 8 bits, and f32 scales for rows or parts.

As transformers reads them (integrations/gemma_quant.py); patterns of module names give the number of bits.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from localrun.base.dataclass import dataclass
from localrun.formats.checkpoints.fp16_scales import with_factor
from localrun.formats.checkpoints.integers import SCALE_TYPES, CodedRows, IntegerCodes, held_type
from localrun.formats.checkpoints.joined import Joined, ReadRows, Tensors, appears_as, misfit
from localrun.formats.checkpoints.patterns import pattern_of
from localrun.formats.source import TensorInfo

if TYPE_CHECKING:
    import numpy as np

_SPELLINGS = {".weight": ".weight_scale", ".embedding_quantized": ".embedding_scale"}
_USUAL_BITS = 4


def join_gemma(tensors: Tensors, config: Mapping[str, Any]) -> Joined:
    """Every matrix of codes with its scales. ModelFileError for parts that do not fit together."""
    found: Joined = {}
    for name, codes in tensors.items():
        ending = next((ending for ending in _SPELLINGS if name.endswith(ending)), "")
        path = name.removesuffix(ending)
        scales = tensors.get(path + _SPELLINGS.get(ending, ""))
        if not ending or codes.qtype not in ("U8", "I8") or scales is None:
            continue
        bits = 8 if codes.qtype == "I8" else bits_of(path, codes, config)
        columns = codes.shape[-1] * 8 // bits
        if len(codes.shape) != 2 or len(scales.shape) != 2 or scales.shape[0] != codes.shape[0]:
            raise misfit(codes, f"of shape {list(codes.shape)} has scales of shape {list(scales.shape)}")
        if columns % scales.shape[1] or scales.qtype not in SCALE_TYPES:
            raise misfit(codes, f"of {columns:,} columns has {scales.shape[1]:,} scales a row, of type {scales.qtype}")
        group, weight = columns // scales.shape[1], f"{path}.weight"
        held = held_type(weight, columns, group, scales.qtype, bits, symmetric=True)
        info = appears_as(weight, (codes.shape[0], columns), held, codes)
        found |= with_factor(GemmaCodes(info, (codes, scales), group, bits), scales)
    return found


def bits_of(path: str, codes: TensorInfo, config: Mapping[str, Any]) -> int:
    """Bits of a module's codes; two or four codes may share a byte. Raises ModelFileError."""
    rules = config.get("module_quant_configs")
    rules = rules if isinstance(rules, dict) else {}
    patterns = {text: pattern_of(text) for text in rules}
    if None in patterns.values():
        raise misfit(codes, "may be of other bits by a pattern that cannot be tried (module_quant_configs)")
    places = [(match.start(), text) for text, one in patterns.items() if one and (match := one.search(path))]
    rule = rules[min(places, key=lambda place: place[0])[1]] if places else {}
    bits = (rule if isinstance(rule, dict) else {}).get("num_bits", config.get("num_bits", _USUAL_BITS))
    if bits not in (2, 4):
        raise misfit(codes, f"cannot be of {bits!r:.20} bits, several of which share a byte")
    return int(bits)


@dataclass(frozen=True)
class GemmaCodes(IntegerCodes):
    """Codes with zero in the middle, the lowest bits of a byte first; `parts` are codes and scales."""

    bits: int

    def rows(self, read_rows: ReadRows, first_row: int, n_rows: int) -> CodedRows:
        import numpy as np

        from localrun.formats.checkpoints.codes import unpack
        from localrun.formats.checkpoints.parts import read_bytes, read_numbers

        raw = read_bytes(read_rows, self.parts[0], first_row, n_rows).reshape(n_rows, -1)
        scales = read_numbers(read_rows, self.parts[1], first_row, n_rows)
        if self.bits == 8:
            return CodedRows(raw.view(np.int8), None, scales)
        return CodedRows(unpack(raw, self.bits).astype(np.int8) - (1 << (self.bits - 1)), None, scales)

    def all_scales(self, read_rows: ReadRows) -> np.ndarray:
        from localrun.formats.checkpoints.parts import read_numbers

        return read_numbers(read_rows, self.parts[1]).ravel()
