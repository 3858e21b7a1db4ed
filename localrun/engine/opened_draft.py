"""Opened drafter of a model: a layer made for it, or the model that the user names."""

from dataclasses import replace

from localrun.backends.interface import Backend
from localrun.base.errors import UsageError
from localrun.base.request import LoadOptions
from localrun.engine.opened_model import OpenedModel
from localrun.model.draft_source import LOOKUP_HINT, DraftSource, find_draft
from localrun.model.dspark_weights import load_taps
from localrun.model.layer_weights import TapWeights
from localrun.ops.layouts import Layout
from localrun.text.load_text import load_text
from localrun.text.model_text import ModelText


def open_draft(options: LoadOptions, opened: OpenedModel) -> DraftSource | None:
    """Open what a load wishes for, or by itself a layer made for the model. Raises UsageError for what cannot draft, or
    ModelFileError."""
    found = find_draft(options.draft, opened.source, opened.config, options.name or options.path.stem)
    if found is not None and found.kind == "model":
        check_same_tokens(opened.text, load_text(found.source), found.source.path.name)
    return found


def with_draft(options: LoadOptions, opened: OpenedModel) -> OpenedModel:
    """A model with what it loads to draft, to which it gives the rows that it reads. Raises like `open_draft`."""
    draft = open_draft(options, opened)
    return opened if draft is None else replace(opened, draft=draft, config=replace(opened.config, taps=draft.taps))


def check_same_tokens(ours: ModelText, theirs: ModelText, name: str) -> None:
    """Raise UsageError where a smaller model reads other tokens."""
    n = ours.tokenizer.vocab_size
    same = n == theirs.tokenizer.vocab_size
    if not same or any(ours.tokenizer.piece(i) != theirs.tokenizer.piece(i) for i in range(n)):
        raise UsageError(f"{name} has other tokens than the model, and cannot draft for it", LOOKUP_HINT)


def load_taps_of(opened: OpenedModel, layout: Layout, backend: Backend) -> TapWeights | None:
    """Load what a model gives rows to its drafter by; None where that reads none of its own."""
    draft = opened.draft
    return None if draft is None else load_taps(draft.source, draft.refs, draft.config, layout, backend.device)
