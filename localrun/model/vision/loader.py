"""Loading of a tower's weights, whole tensor by whole tensor: none is large."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from localrun.base.errors import ModelFileError
from localrun.base.sanitize import clean
from localrun.formats.floats import read_floats
from localrun.formats.source import TensorSource
from localrun.model.load import Loader
from localrun.model.vision.names import EARS
from localrun.model.weight_ref import WeightRef, check_tensor, gather_refs, scale_refs
from localrun.ops.layouts import Packed, RowReader, Vector


class EncoderLoader(Loader):
    """Reads and packs one weight of a tower at a time."""

    def matrix(self, name: str) -> Packed:
        """A matrix in its own type, but halves that bf16 holds exactly in that: AMX multiplies it four times as fast.

        Towers are trained in bf16, and projectors are mostly converted to halves.
        """
        ref = self.refs[name]
        n_rows, n_cols = ref.shape
        qtype = self.source.tensors[ref.name].qtype
        if qtype != "F16" and self.order(name) is None:
            return super().matrix(name)
        rows = self.read_rows(ref, 0, n_rows).reshape(n_rows, -1)
        if (order := self.order(name)) is not None:
            rows = rows[order]
        if qtype == "F16":
            qtype, rows = as_bf16(rows)
        return self.layout.pack(RowReader(qtype, n_rows, n_cols, lambda first, n: rows[first : first + n], self.device))

    def order(self, name: str) -> np.ndarray | None:
        """Where the file has each row of a matrix, [n_rows]; None: they lie there as they do here."""
        return None

    def whole(self, name: str) -> np.ndarray:
        """All numbers of a tensor, f32."""
        info = self.source.tensors[self.refs[name].name]
        return read_floats(info.qtype, self.read(info.name, 0, None), info.shape)

    def packed(self, rows: np.ndarray) -> Packed:
        """A matrix of numbers, f32 [n_rows, n_cols]."""
        raw = np.ascontiguousarray(rows, np.float32).view(np.uint8)
        n_rows, n_cols = rows.shape
        return self.layout.pack(RowReader("F32", n_rows, n_cols, lambda first, n: raw[first : first + n], self.device))

    def ones(self, n: int) -> Vector:
        """The weight of a norm that has none."""
        return self.layout.vector(np.ones(n, np.float32), self.device)


def as_bf16(halves: np.ndarray) -> tuple[str, np.ndarray]:
    """Rows of halves, uint8, as bf16 where that holds them exactly; the type of what they are now."""
    bits = halves.view(np.float16).astype(np.float32).view(np.uint32)
    if (bits & 0xFFFF).any():
        return "F16", halves
    return "BF16", (bits >> 16).astype(np.uint16).view(np.uint8)


def checked_refs(source: TensorSource, named: dict[str, WeightRef], prefixes: Iterable[str]) -> dict[str, WeightRef]:
    """The weights of a tower with the scales and orders of columns that packed ones have.

    Raises ModelFileError where one is not as it should be, or where a tensor of the file whose name begins like those
    of the tower has no place in it, but for those of ears.
    """
    refs = named | scale_refs(source, named) | gather_refs(source, named)
    for ref in refs.values():
        check_tensor(source, ref)
    used, begins = {ref.name for ref in refs.values()}, tuple(prefixes)
    for name in source.tensors:
        if name.startswith(begins) and name not in used and not (source.format == "gguf" and name.startswith(EARS)):
            told = f"tensor {clean(name)!r} has no place in the part of the model that sees"
            hint = "try another conversion of the model, or a newer localrun"
            raise ModelFileError("UNSUPPORTED", told, path=str(source.path), hint=hint)
    return refs
