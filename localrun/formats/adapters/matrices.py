"""The matrices of an opened adapter, read one at a time. With numpy, which an adapter is opened and shown without."""

import numpy as np

from localrun.formats.adapters.adapter_file import AdapterFile
from localrun.formats.files import bad_file, read_range, shown
from localrun.formats.floats import FLOATS
from localrun.formats.source import TensorInfo


def read_a(file: AdapterFile, weight: str) -> np.ndarray:
    """A of a weight as f32 [rank, n_in]. Raises ModelFileError, also for NaN and infinity."""
    return _read(file, file.pairs[weight].a, file.pairs[weight].is_turned)


def read_b(file: AdapterFile, weight: str) -> np.ndarray:
    """B of a weight as f32 [n_out, rank]. Raises as `read_a` does."""
    return _read(file, file.pairs[weight].b, file.pairs[weight].is_turned)


def _read(file: AdapterFile, info: TensorInfo, is_turned: bool) -> np.ndarray:
    raw = np.frombuffer(read_range(info.file, info.offset, info.nbytes, file.stamps[info.file]), np.uint8)
    values = FLOATS[info.qtype](raw).reshape(info.shape)
    if not np.isfinite(values).all():
        raise bad_file("NOT_FINITE", f"the tensor {shown(info.name)} is not finite", info.file, info.offset)
    return np.ascontiguousarray(values.T if is_turned else values, np.float32)
