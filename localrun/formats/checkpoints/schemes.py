"""Schemes of compressed-tensors: bits and group sizes of the weights of each module."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from localrun.base.dataclass import dataclass
from localrun.formats.checkpoints.joined import misfit
from localrun.formats.checkpoints.patterns import pattern_of
from localrun.formats.source import TensorInfo

_ORDERED = ("group", "dynamic", True)  # values of actorder with which columns are in groups in any order
_PATTERN = "re:"
_ANY = "Linear"  # the class of all matrices


@dataclass(frozen=True, slots=True)
class Scheme:
    """How the weights of some modules are quantised to integers."""

    targets: tuple[str, ...]
    bits: int
    group: int  # columns with a scale; 0: all of a row, or of the matrix
    is_ordered: bool
    has_zeros: bool

    def columns(self, codes: TensorInfo, scales: TensorInfo) -> int:
        """Columns of a matrix of this scheme, by its tensors; 0 where their shapes do not fit."""
        words = codes.shape[-1]
        if not self.group:
            is_of_rows = scales.shape in ((), (1,), codes.shape[:-1], (*codes.shape[:-1], 1))
            return words * 32 // self.bits if is_of_rows else 0
        columns = self.group * scales.shape[-1] if scales.shape else 0
        return columns if -(-columns * self.bits // 32) == words else 0

    def names(self, path: str) -> bool:
        """Whether one of the targets is the module, or a pattern that matches the start of its name."""
        return path in self.targets or any(pattern.match(path) for pattern in self.patterns if pattern)

    @property
    def patterns(self) -> list[re.Pattern[str] | None]:
        return [pattern_of(target.removeprefix(_PATTERN)) for target in self.targets if target.startswith(_PATTERN)]


def weights_of(config: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], Mapping[str, Any]]]:
    """The modules of each group of a config, and its entries about weights."""
    groups = config.get("config_groups")
    for group in groups.values() if isinstance(groups, dict) else ():
        if isinstance(group, dict) and isinstance(weights := group.get("weights"), dict):
            targets = group.get("targets")
            yield (
                tuple(filter(lambda name: isinstance(name, str), targets if isinstance(targets, list) else ())),
                weights,
            )


def schemes_of(config: Mapping[str, Any]) -> list[Scheme]:
    """Integer schemes of a config; for other kinds the tensors are enough."""
    found = []
    for targets, weights in weights_of(config):
        bits, size = weights.get("num_bits"), weights.get("group_size")
        if type(bits) is int and 1 <= bits <= 8 and weights.get("type", "int") == "int":
            group = size if type(size) is int and size > 0 else 0
            is_ordered, has_zeros = weights.get("actorder") in _ORDERED, weights.get("symmetric") is False
            found.append(Scheme(targets, bits, group, is_ordered, has_zeros))
    return found


def scheme_of(path: str, codes: TensorInfo, scales: TensorInfo, schemes: Sequence[Scheme]) -> Scheme:
    """Scheme of a module: the one that fits its tensors or, of several, the one that the config names for it.

    Raises ModelFileError where there is none.
    """
    fitting = [scheme for scheme in schemes if len(codes.shape) in (2, 3) and scheme.columns(codes, scales)]
    if _differ(fitting):
        named = [scheme for scheme in fitting if scheme.names(path)]
        fitting = named or [scheme for scheme in fitting if _ANY in scheme.targets]
        if _differ(fitting) or any(None in scheme.patterns for scheme in schemes):
            raise misfit(codes, "is of one of several schemes, and by its name the config does not tell which")
    if not fitting:
        raise misfit(codes, "has a shape that no scheme of the config fits (config_groups)")
    return fitting[0]


def _differ(schemes: Sequence[Scheme]) -> bool:
    return len({(scheme.bits, scheme.group, scheme.is_ordered, scheme.has_zeros) for scheme in schemes}) > 1
