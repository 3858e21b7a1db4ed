"""A model's own weights as 16-bit floats, whatever its file holds them in: what other precisions are made of."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from localrun.formats.quant import QUANT_TYPES
from localrun.formats.requantize import FLOAT_TYPES, MAPPED_NAME
from localrun.formats.source import TensorInfo, TensorSource


@dataclass(frozen=True)
class OwnFloats:
    """`source` with its quantised matrices decoded to F16 as they are read. What is float stays as it is."""

    source: TensorSource

    @property
    def path(self) -> Path:
        return self.source.path

    @property
    def format(self) -> str:
        return self.source.format

    @property
    def metadata(self) -> Mapping[str, Any]:
        return self.source.metadata

    @property
    def warnings(self) -> tuple[str, ...]:
        return self.source.warnings

    @cached_property
    def tensors(self) -> Mapping[str, TensorInfo]:
        return {name: self._as_read(info) for name, info in self.source.tensors.items()}

    def read(self, name: str, first_row: int = 0, n_rows: int | None = None) -> bytearray:
        raw, stored = self.source.read(name, first_row, n_rows), self.source.tensors[name]
        if self.tensors[name].qtype == stored.qtype:
            return raw
        import torch

        qtype, n_cols = QUANT_TYPES[stored.qtype], stored.shape[-1]
        shape = (len(raw) // qtype.nbytes((n_cols,)), n_cols)
        weights = qtype.decode(torch.frombuffer(raw, dtype=torch.uint8), shape)
        return bytearray(weights.to(torch.float16).numpy().tobytes())

    def read_turned(self, name: str, matrix: int, columns: slice) -> bytearray:
        return self.source.read_turned(name, matrix, columns)  # of floats, which stay as they are

    def _as_read(self, info: TensorInfo) -> TensorInfo:
        if len(info.shape) < 2 or info.qtype in FLOAT_TYPES or info.name.endswith(MAPPED_NAME):
            return info
        return replace(info, qtype="F16", nbytes=QUANT_TYPES["F16"].nbytes(info.shape))
