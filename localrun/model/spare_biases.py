"""Biases of packed matrices that a model does not use: early tools for GPTQ gave each matrix one, of zeros."""

from collections.abc import Mapping

from localrun.formats.files import bad_file, shown
from localrun.formats.source import TensorSource
from localrun.model.weight_ref import WeightRef


def spare_biases(source: TensorSource, refs: Mapping[str, WeightRef]) -> list[str]:
    """Names of biases that the model has no place for; loading checks that they are zero."""
    known = {name for ref in refs.values() for name in ref.tensors}
    beside = (name.removesuffix("weight") + "bias" for name in known if source.tensors[name].is_joined)
    return [name for name in beside if name in source.tensors and name not in known]


def check_spare_biases(source: TensorSource, refs: Mapping[str, WeightRef]) -> None:
    """Raise ModelFileError for a bias of them that is not zero."""
    import numpy as np

    from localrun.formats.floats import read_floats

    for name in spare_biases(source, refs):
        info = source.tensors[name]
        if read_floats(info.qtype, np.frombuffer(source.read(name), np.uint8), info.shape).any():
            told = f"the tensor {shown(name)} has no place in this model, and is not zero"
            raise bad_file("UNSUPPORTED", told, info.file, info.offset)
