"""Experts of gpt-oss that a tool took apart: `down_projs.7`, and `gate_up_projs.7`, where gate and up take turns.

Here they are one tensor of all again, [n_experts, rows, columns], gate and up apart.
"""

import re
from collections.abc import Mapping

from localrun.base.dataclass import dataclass
from localrun.formats.checkpoints.joined import Joined, JoinedTensor, OneTensor, ReadRows, Tensors, appears_as, misfit
from localrun.formats.quant import QUANT_TYPES

_OF_ONE = re.compile(r"(.*\.experts\.)(gate_up|down)_projs\.([0-9]{1,5})\.(weight|bias)")
_PARTS = {"gate_up": ("gate", "up"), "down": ("down",)}


@dataclass(frozen=True)
class ExpertStack(JoinedTensor):
    """Every `every`-th row of each expert, from `first` on; of biases, which are rows, the same of their numbers."""

    experts: tuple[JoinedTensor, ...]
    first: int
    every: int

    def read(self, read_rows: ReadRows, first_row: int, n_rows: int) -> bytearray:
        in_each = 1 if len(self.info.shape) == 2 else self.info.shape[1]
        found = bytearray()
        while n_rows:
            expert, row = divmod(first_row, in_each)
            count = min(n_rows, in_each - row)
            found += self.rows_of(self.experts[expert], read_rows, row, count)
            first_row, n_rows = first_row + count, n_rows - count
        return found

    def rows_of(self, expert: JoinedTensor, read_rows: ReadRows, row: int, count: int) -> bytearray:
        import numpy as np

        is_bias = len(self.info.shape) == 2
        first, n_rows = (0, 1) if is_bias else (row * self.every, count * self.every)
        raw = np.frombuffer(expert.read(read_rows, first, n_rows), np.uint8)
        size = QUANT_TYPES[self.info.qtype].nbytes((1,) if is_bias else self.info.shape[-1:])
        return bytearray(raw.reshape(-1, size)[self.first :: self.every].tobytes())


def with_stacks(found: Joined, tensors: Tensors) -> Joined:
    """Joined tensors, those of experts one by one as stacks. ModelFileError where one is missing, or unlike others."""
    stacks: dict[tuple[str, str, str], dict[int, JoinedTensor]] = {}
    for name, info in tensors.items():
        if match := _OF_ONE.fullmatch(name):
            layer, part, number, kind = match.groups()
            one = found.get(name) or OneTensor(info, (info,))
            stacks.setdefault((layer, part, kind), {})[int(number)] = one
    single = {one.info.name for experts in stacks.values() for one in experts.values()}
    kept = {name: one for name, one in found.items() if name not in single}
    for (layer, part, kind), experts in stacks.items():
        for first, half in enumerate(_PARTS[part]):
            stack = _stacked(f"{layer}{half}_proj.{kind}", experts, first, len(_PARTS[part]))
            kept[stack.info.name] = stack
    return kept


def _stacked(name: str, experts: Mapping[int, JoinedTensor], first: int, every: int) -> ExpertStack:
    in_order = tuple(experts[number] for number in sorted(experts))
    one = in_order[0]
    if sorted(experts) != list(range(len(experts))):
        raise misfit(one.info, f"is of one of {len(experts):,} experts, and one with a smaller number is missing")
    if any((other.info.shape, other.info.qtype) != (one.info.shape, one.info.qtype) for other in in_order):
        raise misfit(one.info, "has another shape or type than that of other experts")
    if len(one.info.shape) not in (1, 2) or one.info.shape[0] % every:
        raise misfit(one.info, f"of shape {list(one.info.shape)} cannot be of an expert")
    shape = (len(experts), one.info.shape[0] // every, *one.info.shape[1:])
    parts = tuple(part for other in in_order for part in other.parts)
    return ExpertStack(appears_as(name, shape, one.info.qtype, one.info), parts, in_order, first, every)
