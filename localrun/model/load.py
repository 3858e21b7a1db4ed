"""Loading of weights from a file to a device, tensor by tensor: the peak is the result and one tensor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from localrun.base.errors import DoesNotFitError, ran_out
from localrun.base.request import ProgressCallback
from localrun.base.units import gib
from localrun.formats.files import bad_file, shown
from localrun.formats.finite import first_not_finite
from localrun.formats.floats import read_floats
from localrun.formats.quant import QUANT_TYPES
from localrun.formats.source import TensorSource
from localrun.model.assembly import Assembler
from localrun.model.config import ModelConfig
from localrun.model.decoder import Model
from localrun.model.headers import read_config, read_weight_refs
from localrun.model.layer_weights import ModelWeights
from localrun.model.row_order import row_order
from localrun.model.spare_biases import check_spare_biases
from localrun.model.weight_ref import WeightRef
from localrun.model.weight_sizes import held_bytes, stays_in_file
from localrun.ops.instructions import LowRank
from localrun.ops.layouts import MAPPED, KeptMatrix, Layout, Packed, RowReader, Vector
from localrun.storage.packed_file import DiskError, PackedFile

if TYPE_CHECKING:
    import torch

    from localrun.model.adapters import OpenedAdapter


def load_model(
    source: TensorSource,
    layout: Layout,
    device: torch.device | None = None,
    config: ModelConfig | None = None,
    progress: ProgressCallback = lambda done, total: None,
    files: Mapping[str, PackedFile] = MappingProxyType({}),
    kept: Mapping[str, KeptMatrix] = MappingProxyType({}),
    adapters: Sequence[OpenedAdapter] = (),
) -> Model:
    """Load all weights, with matrices in `layout`.

    Matrices with one of `files` stay there, and are written first if necessary. Weights that `kept` has are not read
    and packed again. `adapters` are loaded beside the weights they change. Raises ModelFileError, or DoesNotFitError
    when memory or the disk runs out.
    """
    config = config or read_config(source)
    refs = read_weight_refs(source, config)
    check_spare_biases(source, refs)
    loader = Loader(source, refs, layout, device, progress, files, kept, adapters)
    try:
        return Model(config, loader.weights(config))
    except DiskError:
        raise
    except DoesNotFitError:  # of the library, which cannot know what the memory is for
        pass
    except (MemoryError, RuntimeError) as error:
        if not ran_out(error):
            raise
    need = gib(held_bytes(source, refs, layout.nbytes))
    raise DoesNotFitError(f"memory ran out while loading {need} of weights", "try a smaller precision")


class Loader(Assembler):
    """Reads, permutes and packs one weight at a time."""

    def __init__(
        self,
        source: TensorSource,
        refs: dict[str, WeightRef],
        layout: Layout,
        device: torch.device | None,
        progress: ProgressCallback,
        files: Mapping[str, PackedFile] = MappingProxyType({}),
        kept: Mapping[str, KeptMatrix] = MappingProxyType({}),
        opened: Sequence[OpenedAdapter] = (),
    ) -> None:
        self.source, self.refs, self.layout, self.device, self.progress = source, refs, layout, device, progress
        self.files, self.kept, self.opened = files, kept, opened
        found = {name for name, matrix in kept.items() if matrix.found is not None}
        found |= {name for name, file in files.items() if file.is_there()}
        self.done, self.total = 0, sum(self.bytes_read(ref) for name, ref in refs.items() if name not in found)

    def weights(self, config: ModelConfig) -> ModelWeights:
        with self.layout.packing():
            return super().weights(config)

    def has(self, name: str) -> bool:
        return name in self.refs

    def matrix(self, name: str) -> Packed:
        ref = self.refs[name]
        n_rows, n_cols = ref.shape
        head_dim = n_rows // ref.interleaved[0] if ref.interleaved else 1

        def read(first: int, count: int) -> np.ndarray:
            raw = self.read_rows(ref, first, count).reshape(count, -1)
            if ref.part is not None:
                raw = np.ascontiguousarray(np.split(raw, ref.n_parts, axis=1)[ref.part])
            return raw if ref.interleaved is None else raw[row_order(count, count // head_dim, ref.interleaved[1])]

        granule = ref.part_rows if ref.transposed else head_dim
        qtype = self.source.tensors[ref.name].qtype
        in_parts = ref.n_used < ref.n_experts or (name == "embed" and "output" in self.refs)
        on_disk = self.files.get(name), self.kept.get(name)
        return self.layout.pack(RowReader(qtype, n_rows, n_cols, read, self.device, granule, in_parts, *on_disk))

    def table(self, name: str) -> Packed:
        """A matrix whose rows are looked up, in its form in the file."""
        ref = self.refs[name]
        n_rows, n_cols = ref.shape
        stays = stays_in_file(self.source, ref)
        rows = np.frombuffer(self.source.mapped(ref.name), np.uint8) if stays else self.read(ref.name, 0, None)
        qtype = self.source.tensors[ref.name].qtype
        return Packed(MAPPED, qtype, n_rows, n_cols, (rows.reshape(n_rows, -1),), mapped=stays)

    def scale(self, name: str) -> float | Vector:
        ref = self.refs.get(name := f"{name}.scale")
        if ref is None:
            return super().scale(name)
        return self.number(name) if ref.shape == (1,) else self.required_vector(name)

    def gather(self, name: str) -> Vector | None:
        if (ref := self.refs.get(f"{name}.gather")) is None:
            return None
        return self.layout.vector(self.read(ref.name, 0, None).view("<i4"), self.device)

    def adapters(self, name: str) -> tuple[LowRank, ...]:
        made = (adapter.low_rank(name, self.layout, self.device) for adapter in self.opened)
        return tuple(one for one in made if one is not None)

    def number(self, name: str) -> float:
        return float(self.floats(name)[0])

    def required_vector(self, name: str) -> Vector:
        return self.layout.vector(self.floats(name), self.device)

    def ones(self, n: int) -> Vector:
        return self.layout.vector(np.ones(n, np.float32), self.device)

    def floats(self, name: str) -> np.ndarray:
        """The f32 numbers of a vector."""
        ref = self.refs[name]
        info = self.source.tensors[ref.name]
        shape = info.shape or (1,)  # a single number
        read = [read_floats(info.qtype, self.read(name, 0, None), shape) for name in ref.tensors]
        values = (read[0] if len(read) == 1 else np.concatenate(read)).reshape(-1, shape[-1])[
            :, ref.first_row :: ref.every
        ]  # a row for each expert
        values = values[:, : ref.shape[0] // ref.n_experts].ravel()
        if ref.interleaved is not None:
            values = values[row_order(ref.shape[0], *ref.interleaved)]
        if ref.is_log:
            values = -np.exp(values)
        adjusted: np.ndarray = (values + np.float32(ref.offset)) * np.float32(ref.factor)
        return adjusted

    def read_rows(self, ref: WeightRef, first: int, count: int) -> np.ndarray:
        """Some rows of a weight as flat uint8, from all the places they are in."""
        in_each, parts = ref.part_rows, []
        for part in range(first // in_each, -(-(first + count) // in_each)):
            start, end = max(first - part * in_each, 0), min(first + count - part * in_each, in_each)
            if ref.transposed:
                assert (start, end) == (0, in_each), "slabs are whole experts"
                parts.append(self.read_turned(ref, part))
            else:
                parts.append(self.read_every(ref, part, start, end))
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def read_every(self, ref: WeightRef, part: int, start: int, end: int) -> np.ndarray:
        """Rows start … end of a part; where they alternate with those of another weight, all are read."""
        name, begin = ref.place(part)
        first, place = divmod(ref.first_row, ref.every)
        raw = self.read(name, begin + first * ref.every + start * ref.every, (end - start) * ref.every)
        return raw if ref.every == 1 else raw.reshape(end - start, ref.every, -1)[:, place].ravel()

    def read_turned(self, ref: WeightRef, part: int) -> np.ndarray:
        """The matrix of one expert from a tensor with consecutive columns."""
        columns = slice(ref.first_row, ref.first_row + ref.part_rows * ref.every, ref.every)
        raw = np.frombuffer(self.source.read_turned(ref.name, part, columns), np.uint8)
        info = self.source.tensors[ref.name]
        if first_not_finite(info.qtype, raw) is not None:
            told = f"expert {part:,} of the tensor {shown(ref.name)} is not finite"
            raise bad_file("NOT_FINITE", told, info.file, info.offset)
        return self.counted(raw)

    def bytes_read(self, ref: WeightRef) -> int:
        """Bytes read for a weight: vectors whole, else its rows and those that alternate with them."""
        if stays_in_file(self.source, ref):
            return 0
        if len(ref.shape) == 1:
            return sum(self.source.tensors[name].nbytes for name in ref.tensors)
        n_bytes = QUANT_TYPES[self.source.tensors[ref.name].qtype].nbytes(ref.shape)
        return n_bytes if ref.transposed else n_bytes * ref.every * (1 if ref.part is None else ref.n_parts)

    def read(self, name: str, first_row: int, n_rows: int | None) -> np.ndarray:
        """The bytes of a tensor, or of some of its rows, as flat uint8."""
        raw = np.frombuffer(self.source.read(name, first_row, n_rows), np.uint8)
        self.check_finite(name, first_row, raw)
        return self.counted(raw)

    def counted(self, raw: np.ndarray) -> np.ndarray:
        """Count the bytes of `raw`, report the progress, and return `raw`."""
        self.done += raw.nbytes
        self.progress(self.done, self.total)
        return raw

    def check_finite(self, name: str, first_row: int, raw: np.ndarray) -> None:
        """Raise ModelFileError for NaN and infinity, one of which makes every answer nonsense."""
        info = self.source.tensors[name]
        block = first_not_finite(info.qtype, raw)
        if block is not None:
            quant = QUANT_TYPES[info.qtype]
            row = first_row + block * quant.block_size // info.shape[-1]
            at = info.offset + first_row * quant.nbytes(info.shape[-1:]) + block * quant.block_bytes
            raise bad_file("NOT_FINITE", f"row {row:,} of the tensor {shown(name)} is not finite", info.file, at)
