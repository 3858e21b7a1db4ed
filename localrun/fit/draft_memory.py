"""Memory that a program that drafts adds to a load, where one is asked for by name. Torch-free."""

from localrun.fit.fastest import fastest_backend
from localrun.formats.source import TensorSource
from localrun.model.config import ModelConfig
from localrun.model.headers import read_config
from localrun.model.recording import record_shapes


def draft_memory(draft: str, source: TensorSource) -> tuple[ModelConfig | None, int]:
    """The program that a load of a model would hold for `draft`, "mtp" or a FILE, as a model of its own, and the bytes
    of its weights beside those of a model of this precision; None and 0 for what needs none. Raises UsageError or
    ModelFileError."""
    if draft == "auto":  # which is loaded only where there is room
        return None, 0
    from localrun.model.draft_source import find_draft  # with numpy

    config = read_config(source)
    found = find_draft(draft, source, config)
    if found is None:
        return None, 0
    return found.config, found.held_bytes(fastest_backend(record_shapes(config)).matrix_bytes)
