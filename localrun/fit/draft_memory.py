"""Memory that a program that drafts adds to a load: the layer of the model, or a smaller model. Torch-free."""

from pathlib import Path

from localrun.base.errors import UsageError
from localrun.base.request import DRAFTERS
from localrun.fit.fastest import fastest_backend
from localrun.fit.weights import held
from localrun.formats.detect import open_model_file
from localrun.formats.helper_files import head_beside
from localrun.formats.source import TensorSource
from localrun.model.config import ModelConfig
from localrun.model.recording import record_shapes


def draft_config(draft: str, source: TensorSource) -> ModelConfig | None:
    """The program that a load of a model would hold for `draft`, "mtp" or a FILE, as a model of its own; None for what
    needs none. Raises UsageError or ModelFileError."""
    from localrun.model.draft_weights import config_with_head  # with numpy
    from localrun.model.load import read_config

    config, head = read_config(source), head_file(draft, source)
    if head is not None:
        with_head = config_with_head(config, head)
        return read_config(head) if with_head is None else with_head.drafting
    if draft == "mtp" and config.drafting is None:
        raise UsageError(f"{source.path.name} has no layer that drafts tokens (MTP)", "leave --draft out")
    return config.drafting if draft == "mtp" else None


def head_file(draft: str, source: TensorSource) -> TensorSource | None:
    """The file that a program which drafts is read from, where it is another one than the model's."""
    if draft == "mtp" and (beside := head_beside(source.path)):
        return open_model_file(beside)
    return None if draft in DRAFTERS else open_model_file(Path(draft))


def draft_bytes(draft: str, source: TensorSource) -> int:
    """Bytes of its weights, beside those of a model of this precision."""
    from localrun.model.draft_weights import read_draft_refs  # with numpy
    from localrun.model.load import held_bytes, read_config

    if (head := head_file(draft, source)) is not None:
        return held(head).nbytes
    if draft == "mtp":
        config = read_config(source)
        backend = fastest_backend(record_shapes(config))
        return held_bytes(source, read_draft_refs(source, config), backend.matrix_bytes)
    return 0
