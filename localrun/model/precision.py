"""A model in the precision to load, which may differ from that of its files. Torch-free."""

from contextlib import suppress

from localrun.base.errors import ModelFileError
from localrun.formats.requantize import PRECISIONS, RequantizedSource
from localrun.formats.source import TensorSource
from localrun.model.archs import arch_of


def in_precision(source: TensorSource, precision: str) -> TensorSource:
    """`source` with its float matrices quantised while they are read, where `precision` asks for that.

    Matrices of all experts in one tensor are quantised like separate ones, row by row; so are those that a checkpoint
    stores transposed.
    """
    if source.format != "safetensors" or precision not in PRECISIONS:
        return source
    transposed = False
    with suppress(ModelFileError):  # sizes are told of architectures that cannot run, too
        rules = arch_of(source).experts
        transposed = rules is not None and rules.are_transposed(source.tensors)
    return RequantizedSource(source, PRECISIONS[precision], transposed)
