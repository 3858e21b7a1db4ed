"""What kept keys and values depend on, as one string: blocks saved under another one are of no use."""

import hashlib
from dataclasses import replace

from localrun.model.config import ModelConfig


def fingerprint(*parts: object) -> str:
    """A hash of the weights' identity, config, backend, instruction set, numerics, codecs, precision.

    They count by their repr, which names all fields of a dataclass.
    """
    hashed = hashlib.sha256()
    for part in map(repr, parts):
        hashed.update(len(part).to_bytes(8, "little") + part.encode())
    return hashed.hexdigest()


def without_sinks(config: ModelConfig) -> ModelConfig:
    """The config less the window beside the first block: what is computed before that hides anything does not depend
    on it, nor then on the size of the context that it derives from."""
    return replace(config, layers=tuple(replace(spec, sink_window=None) for spec in config.layers))
