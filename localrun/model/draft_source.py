"""The program that a load wants to draft tokens with: found, checked, and its bytes counted. Torch-free."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Literal

from localrun.base.dataclass import dataclass
from localrun.base.errors import UsageError
from localrun.base.request import DRAFTERS
from localrun.formats.detect import open_model_file
from localrun.formats.helper_files import head_beside
from localrun.formats.source import TensorSource
from localrun.model.archs import ASSISTANT, DSPARK
from localrun.model.archs.gemma4_assistant import for_body
from localrun.model.assistant_weights import assistant_refs, cluster_bytes, searched_in_clusters
from localrun.model.config import ModelConfig
from localrun.model.draft_weights import config_with_head, read_draft_refs
from localrun.model.dspark_weights import dspark_refs, for_taps, head_bytes
from localrun.model.headers import read_config, read_weight_refs
from localrun.model.weight_ref import WeightRef
from localrun.model.weight_sizes import held_bytes

LOOKUP_HINT = "leave --draft out: guesses from the text so far need no program"


@dataclass(frozen=True, slots=True)
class DraftSource:
    """A layer made for the model (multi-token prediction), an assistant, a drafter of blocks, or a smaller model with
    the same tokens."""

    kind: Literal["layer", "assistant", "block", "model"]
    name: str  # for people
    source: TensorSource
    config: ModelConfig
    refs: dict[str, WeightRef]

    def held_bytes(self, matrix_bytes: Callable[[str, int, int], int]) -> int:
        """Exact bytes of its weights, beside those of the model; a matrix of a type, n_rows and n_cols takes
        `matrix_bytes` of them."""
        in_clusters = self.config.clusters is not None
        refs = {name: ref for name, ref in self.refs.items() if name != "output" or not in_clusters}
        beside = cluster_bytes(self.source, self.config, self.refs) + head_bytes(self.config)
        return held_bytes(self.source, refs, matrix_bytes) + beside

    @property
    def taps(self) -> tuple[int, ...]:
        """Layers of the model whose rows it reads, beside those after the last norm."""
        return () if self.config.block is None else self.config.block.taps


def find_draft(draft: str, source: TensorSource, config: ModelConfig, name: str = "") -> DraftSource | None:
    """Find what drafts for the model in `source`: its own layer for "auto" and "mtp", one beside it for "mtp", or what
    is in a FILE; None where no program is wanted, or "auto" finds none. `name`: of the model for people.

    Raises UsageError for what cannot draft, or ModelFileError.
    """
    if draft not in DRAFTERS:
        return draft_of_file(Path(draft), config)
    if draft not in ("auto", "mtp"):
        return None
    if config.drafting is not None:
        return DraftSource("layer", "mtp", source, config.drafting, read_draft_refs(source, config))
    if draft == "auto":
        return None
    beside = head_beside(source.path)
    if beside and (head := head_of_file(open_model_file(beside), beside.stem, config)):
        return head
    raise UsageError(f"{name or source.path.name} has no layer that drafts tokens (MTP)", LOOKUP_HINT)


def draft_of_file(path: Path, config: ModelConfig) -> DraftSource:
    """Find what drafts in a file or folder. Raises UsageError, or ModelFileError."""
    source = open_model_file(path)
    try:
        if DSPARK.matches(source):
            found = for_taps(DSPARK.config(source), config)
            return DraftSource("block", path.stem, source, found, dspark_refs(source, found))
        assistant = for_body(ASSISTANT.config(source), config) if ASSISTANT.matches(source) else None
    except ValueError as error:
        raise UsageError(f"{path.name} cannot draft for this model: {error}", LOOKUP_HINT) from error
    if assistant is not None:
        found = assistant if searched_in_clusters(source, assistant) else replace(assistant, clusters=None)
        return DraftSource("assistant", path.stem, source, found, assistant_refs(source, found))
    if head := head_of_file(source, path.stem, config):
        return head
    found = read_config(source)
    if any(spec.mixer is not None for spec in found.layers):
        raise UsageError(f"{path.name} has layers with a state, and cannot draft", LOOKUP_HINT)
    return DraftSource("model", path.stem, source, found, read_weight_refs(source, found))


def head_of_file(source: TensorSource, name: str, config: ModelConfig) -> DraftSource | None:
    """A layer made for a model in a GGUF of its own; None where the file is something else. Raises ModelFileError."""
    with_head = config_with_head(config, source)
    if with_head is None or with_head.drafting is None:
        return None
    return DraftSource("layer", name, source, with_head.drafting, read_draft_refs(source, with_head))
