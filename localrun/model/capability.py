"""Whether this version can run a model, for lists, `fit`, `show`, downloads and the app. Torch-free."""

from localrun.base.errors import ModelFileError
from localrun.base.sanitize import clean
from localrun.formats.source import TensorSource
from localrun.model.archs import ARCHS, arch_of
from localrun.model.archs.base import NO_MIXTURE
from localrun.model.config import ModelConfig
from localrun.model.weights import weight_refs
from localrun.text.gguf_kind import TokenizerKind

_TOKENIZER = "tokenizer.ggml.model"


def check_runnable(source: TensorSource) -> ModelConfig:
    """Check the key-values and return the config.

    Raises ModelFileError: UNSUPPORTED for an unsupported architecture, part or tokenizer, and other codes for invalid
    key-values.
    """
    config = arch_of(source).config(source)
    if source.format == "gguf" and source.metadata.get(_TOKENIZER) is not None:
        TokenizerKind.of(source.metadata, str(source.path)).check_kind()
    return config


def check_loadable(source: TensorSource) -> None:
    """Check also that every tensor exists with its shape and a supported type, by all headers.

    Raises ModelFileError like the loader.
    """
    weight_refs(arch_of(source), check_runnable(source), source)


def config_or_obstacle(source: TensorSource) -> tuple[ModelConfig | None, str]:
    """The config of a model that can be run, or why it cannot be, in half a sentence. Raises like check_runnable
    otherwise."""
    try:
        return check_runnable(source), ""
    except ModelFileError as error:
        if error.code != "UNSUPPORTED":
            raise
        return None, error.message.removeprefix(f"{error.path}: ")


def obstacle(source: TensorSource) -> str:
    """Why a model cannot be run, in half a sentence; empty when it can be. Raises like check_runnable otherwise."""
    return config_or_obstacle(source)[1]


def flaw(source: TensorSource) -> str:
    """The flaw of a model by its headers and vectors (a few MB), in half a sentence.

    For matrices the loader reports NaN and infinity.
    """
    import numpy as np  # takes a while to import

    from localrun.formats.finite import first_not_finite

    try:
        check_loadable(source)
    except ModelFileError as error:
        return error.message.removeprefix(f"{error.path}: ")
    for name, info in source.tensors.items():
        if (
            len(info.shape) == 1
            and first_not_finite(info.qtype, np.frombuffer(source.read(name), np.uint8)) is not None
        ):
            return f"the tensor {clean(name)!r} has a number that is not finite"
    return ""


def obstacle_of(arch: str, n_experts: int = 0) -> str:
    """The obstacle by a GGUF's architecture name alone; an unknown name, such as "", is none."""
    known = {name: one for one in ARCHS for name in one.gguf}
    if arch and arch not in known:
        return f"architecture {clean(arch)!r} is not supported"
    return NO_MIXTURE if n_experts and arch and known[arch].experts is None else ""
