"""A source that shows some tensors of another in a type of its own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from localrun.base.dataclass import dataclass
from localrun.formats.metadata import Metadata
from localrun.formats.quant import QUANT_TYPES
from localrun.formats.source import TensorInfo, TensorSource

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class RequantizingSource(ABC):
    """`source` with some tensors in another type, decoded and encoded row by row as they are read; the rest is as it
    was."""

    source: TensorSource

    @abstractmethod
    def as_read(self, info: TensorInfo) -> TensorInfo:
        """A tensor as it appears here."""

    @abstractmethod
    def encode(self, weights: Tensor, qtype: str) -> Tensor:
        """f32 [n, cols] in the bytes of that type."""

    @property
    def path(self) -> Path:
        return self.source.path

    @property
    def format(self) -> str:
        return self.source.format

    @property
    def metadata(self) -> Metadata:
        return self.source.metadata

    @property
    def warnings(self) -> tuple[str, ...]:
        return self.source.warnings

    @cached_property
    def tensors(self) -> Mapping[str, TensorInfo]:
        return {name: self.as_read(info) for name, info in self.source.tensors.items()}

    def read(self, name: str, first_row: int = 0, n_rows: int | None = None) -> bytearray:
        return self._recoded(name, self.source.read(name, first_row, n_rows))

    def mapped(self, name: str) -> memoryview:
        return self.source.mapped(name)

    def read_turned(self, name: str, matrix: int, columns: slice) -> bytearray:
        return self._recoded(name, self.source.read_turned(name, matrix, columns))

    def same(self, name: str, other: str) -> bool:
        return self.source.same(name, other)

    def _recoded(self, name: str, raw: bytearray) -> bytearray:
        """Whole rows of a tensor, as it appears."""
        stored, info = QUANT_TYPES[self.source.tensors[name].qtype], self.tensors[name]
        if stored.name == info.qtype:
            return raw
        import torch

        n_cols = info.shape[-1]
        weights = stored.decode(
            torch.frombuffer(raw, dtype=torch.uint8), (len(raw) // stored.nbytes((n_cols,)), n_cols)
        )
        return bytearray(self.encode(weights, info.qtype).numpy().tobytes())
