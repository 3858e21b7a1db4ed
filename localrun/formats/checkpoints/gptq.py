"""GPTQ: codes of 2 to 8 bits in words along the columns, less a zero point, times a scale for each group of columns.

As AutoGPTQ and GPTQModel pack them (nn_modules/qlinear, pack_block), turned. Version 1 of the format keeps zero points
less one; version 2, and AutoRound's own, as they are. With `desc_act` groups have columns from anywhere (`g_idx`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from localrun.base.dataclass import dataclass
from localrun.formats.checkpoints.fp16_scales import with_factor
from localrun.formats.checkpoints.groups import may_be_sorted, with_order
from localrun.formats.checkpoints.integers import held_type, level_type
from localrun.formats.checkpoints.joined import Joined, ReadRows, Tensors, appears_as, misfit
from localrun.formats.checkpoints.read_once import ReadOnce
from localrun.formats.checkpoints.turned import TurnedCodes, packed_matrices
from localrun.formats.source import TensorInfo

if TYPE_CHECKING:
    import numpy as np

_BITS = (2, 3, 4, 8)
_AUTO_ROUND_BITS = (2, 3, 4, 5, 6, 7, 8)  # GPTQModel packs 5 to 7 in another way


def join_gptq(
    tensors: Tensors, config: Mapping[str, Any], less_one: bool = True, possible: tuple[int, ...] = _BITS
) -> Joined:
    """Every matrix of codes with its scales. ModelFileError for parts that do not fit together.

    `less_one`: zero points in the file are less by one.
    """
    found: Joined = {}
    matrices = ReadOnce()
    is_ordered, is_symmetric = told(config, "desc_act") and not config.get("static_groups"), tells_symmetric(config)
    for stem, (codes, zeros, scales) in packed_matrices(tensors):
        n_groups, n_rows = scales.shape
        bits = zeros.shape[1] * 32 // n_rows
        fits = zeros.shape == (n_groups, -(-n_rows * bits // 32)) and codes.shape[1] == n_rows
        if bits not in possible or not fits or codes.shape[0] * 32 % bits:
            shapes = f"zero points of shape {list(zeros.shape)} and scales of shape {list(scales.shape)}"
            raise misfit(codes, f"of GPTQ, of shape {list(codes.shape)}, has {shapes}")
        name, shape = f"{stem}weight", (n_rows, codes.shape[0] * 32 // bits)
        group = group_of(codes, shape[1], n_groups, config)
        order = order_of(tensors, stem, codes, shape[1])
        held = held_type(name, shape[1], group, scales.qtype, bits, is_symmetric)
        ordered = is_ordered and n_groups > 1
        if ordered and order is None:
            raise misfit(codes, "has its columns in groups of any order (desc_act), and no g_idx that tells it")
        if ordered and not may_be_sorted(name):
            held = "F32"
        info = appears_as(name, shape, held, codes)
        parts = (codes, zeros, scales, *([order] if order else []))
        matrix = GptqCodes(info, parts, group, bits, matrices, less_one, order, ordered)
        found |= with_factor(matrix, scales)
        if ordered and order is not None and held != "F32":
            found |= with_order(name, order, n_groups, group)
    return found


join_gptq_v2 = partial(join_gptq, less_one=False)
join_auto_round = partial(join_gptq, possible=_AUTO_ROUND_BITS)
join_auto_round_v2 = partial(join_gptq, less_one=False, possible=_AUTO_ROUND_BITS)


def told(config: Mapping[str, Any], key: str) -> bool:
    """Whether a config, or a rule in it for some modules, sets this key to true."""
    return config.get(key) is True or any(rule.get(key) is True for rule in _rules(config))


def tells_symmetric(config: Mapping[str, Any]) -> bool:
    """Whether all zero points are in the middle."""
    return config.get("sym") is True and not any(rule.get("sym") is False for rule in _rules(config))


def _rules(config: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Rules for some modules: GPTQModel's `dynamic`, AutoRound's `extra_config`."""
    for key in ("dynamic", "extra_config"):
        rules = config.get(key)
        yield from (rule for rule in (rules.values() if isinstance(rules, dict) else ()) if isinstance(rule, dict))


def group_of(codes: TensorInfo, n_cols: int, n_groups: int, config: Mapping[str, Any]) -> int:
    """Columns of a group. ModelFileError where the number of groups contradicts the config."""
    said = config.get("group_size")
    if type(said) is int and said > 0 and -(-n_cols // said) == n_groups:
        return said
    if n_cols % n_groups or not (n_groups == 1 or any(_rules(config)) or type(said) is not int):
        raise misfit(codes, f"has {n_groups:,} groups of its {n_cols:,} columns, which is not what the config says")
    return n_cols // n_groups


def order_of(tensors: Tensors, stem: str, codes: TensorInfo, n_cols: int) -> TensorInfo | None:
    """The tensor with the group of each column, where there is one. Raises ModelFileError."""
    order = tensors.get(f"{stem}g_idx")
    if order is not None and (order.qtype, order.shape) != ("I32", (n_cols,)):
        raise misfit(codes, f"has a g_idx of type {order.qtype} and shape {list(order.shape)}, for {n_cols:,} columns")
    return order


@dataclass(frozen=True)
class GptqCodes(TurnedCodes):
    """Words along the columns."""

    less_one: bool
    order: TensorInfo | None
    is_ordered: bool

    def unpack(self, words: np.ndarray, rows: slice) -> np.ndarray:
        from localrun.formats.checkpoints.codes import unpack_words

        return unpack_words(words[rows], self.bits, self.info.shape[1]).astype(level_type(self.bits))

    def unpack_zeros(self, words: np.ndarray) -> np.ndarray:
        import numpy as np

        from localrun.formats.checkpoints.codes import unpack_words

        in_word = 32 // self.bits
        if self.less_one and 32 % self.bits == 0:  # one is taken from a whole word, and 0 takes it from the next code
            words = words + np.uint32(sum(1 << self.bits * place for place in range(in_word)))
        zeros: np.ndarray = unpack_words(words, self.bits, self.info.shape[0]).astype(level_type(self.bits))
        return zeros + 1 & (1 << self.bits) - 1 if self.less_one and 32 % self.bits else zeros

    def groups(self, read_rows: ReadRows) -> np.ndarray | None:
        from localrun.formats.checkpoints.groups import read_groups

        if self.order is None:
            return None
        return read_groups(read_rows, self.order, self.parts[2].shape[0], self.group, self.is_ordered)

    def sorted_columns(self, groups: np.ndarray) -> np.ndarray:
        from localrun.formats.checkpoints.groups import sorted_columns

        assert self.order is not None, "it names the groups"
        return sorted_columns(self.order, groups, self.group)
