"""Config and places of the weights of an opened model, by its headers. Torch-free, and without numpy."""

from localrun.formats.source import TensorSource
from localrun.model.archs import arch_of
from localrun.model.config import ModelConfig
from localrun.model.weight_ref import WeightRef
from localrun.model.weights import weight_refs


def read_config(source: TensorSource) -> ModelConfig:
    """The checked config of an opened model. Raises ModelFileError."""
    return arch_of(source).config(source)


def read_weight_refs(source: TensorSource, config: ModelConfig) -> dict[str, WeightRef]:
    """Every weight of the model and its place, checked by name, shape and type. Raises ModelFileError."""
    return weight_refs(arch_of(source), config, source)
