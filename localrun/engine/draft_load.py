"""Programs that draft beside a model, its own layer or a smaller model of a file: checked, counted and loaded."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from localrun.backends.executor import CachePlan, Executor, ExecutorRequest
from localrun.backends.interface import Backend
from localrun.base.errors import UsageError
from localrun.base.request import DRAFTERS, LoadOptions
from localrun.cache.store import CacheStore
from localrun.engine.opened_model import OpenedDraft, OpenedModel, open_model
from localrun.engine.runner import Runner, cache_layers
from localrun.engine.speculation.draft_program import DraftProgram
from localrun.engine.speculation.model_drafts import ModelDrafts
from localrun.fit.memory_plan import DraftPlan
from localrun.formats.detect import open_model_file
from localrun.formats.helper_files import head_beside
from localrun.formats.source import TensorSource
from localrun.model.config import ModelConfig
from localrun.model.decoder import Model
from localrun.model.draft_weights import config_with_head, load_draft_layer, read_draft_refs
from localrun.model.load import held_bytes, load_model
from localrun.model.weight_ref import WeightRef
from localrun.ops.kv import KVPlan
from localrun.ops.layouts import Layout
from localrun.ops.recording import Forward
from localrun.text.model_text import ModelText

if TYPE_CHECKING:
    import torch

LOOKUP_HINT = "leave --draft out: guesses from the text so far need no program"


@dataclass(frozen=True, slots=True)
class LayerDraft:
    """The layer of the model itself (multi-token prediction)."""

    source: TensorSource
    config: ModelConfig
    refs: dict[str, WeightRef]
    name: str = "mtp"

    def held_bytes(self, layout: Layout) -> int:
        return held_bytes(self.source, self.refs, layout.nbytes)

    def load(self, model: Model, config: ModelConfig, layout: Layout, device: "torch.device | None") -> Forward:
        return load_draft_layer(self.source, self.refs, config, model.weights, layout, device).forward


@dataclass(frozen=True, slots=True)
class FileDraft:
    """A smaller model with the same tokens."""

    opened: OpenedModel
    name: str

    @property
    def config(self) -> ModelConfig:
        return self.opened.config

    def held_bytes(self, layout: Layout) -> int:
        return self.opened.held_bytes(layout)

    def load(self, model: Model, config: ModelConfig, layout: Layout, device: "torch.device | None") -> Forward:
        return load_model(self.opened.source, layout, device, config).forward


def open_draft(options: LoadOptions, opened: OpenedModel) -> OpenedDraft | None:
    """Open what a load wishes for, or by itself the layer of the model. Raises UsageError for what cannot draft, or
    ModelFileError."""
    drafting = opened.config.drafting
    if options.draft in ("auto", "mtp") and drafting is not None:
        return LayerDraft(opened.source, drafting, read_draft_refs(opened.source, opened.config))
    if options.draft == "mtp":
        if (beside := head_beside(options.path)) and (head := open_head(beside, opened.config)):
            return head
        told = f"{options.name or options.path.stem} has no layer that drafts tokens (MTP)"
        raise UsageError(told, LOOKUP_HINT)
    if options.draft in DRAFTERS:
        return None
    path = Path(options.draft)
    if head := open_head(path, opened.config):
        return head
    found = open_model(LoadOptions(path, draft="off"))
    if any(spec.mixer is not None for spec in found.config.layers):
        raise UsageError(f"{path.name} has layers with a state, and cannot draft", LOOKUP_HINT)
    check_same_tokens(opened.text, found.text, path.name)
    return FileDraft(found, path.stem)


def open_head(path: Path, config: ModelConfig) -> LayerDraft | None:
    """Open a layer made for a model in a GGUF of its own; None where the file is something else. Raises
    ModelFileError."""
    source = open_model_file(path)
    with_head = config_with_head(config, source)
    if with_head is None or with_head.drafting is None:
        return None
    return LayerDraft(source, with_head.drafting, read_draft_refs(source, with_head), path.stem)


def check_same_tokens(ours: ModelText, theirs: ModelText, name: str) -> None:
    """Raise UsageError where a smaller model reads other tokens."""
    n = ours.tokenizer.vocab_size
    same = n == theirs.tokenizer.vocab_size
    if not same or any(ours.tokenizer.piece(i) != theirs.tokenizer.piece(i) for i in range(n)):
        raise UsageError(f"{name} has other tokens than the model, and cannot draft for it", LOOKUP_HINT)


def start_drafts(
    name: str,
    forward: Forward,
    plan: DraftPlan,
    backend: Backend,
    beside: Executor,
    threads: int,
    n_tokens: int,
    keep_prefixes: bool,
) -> ModelDrafts:
    """A program that drafts on a backend, with the planned cache and the threads of the model's executor."""
    config = plan.config
    cache = CachePlan(cache_layers(config, plan.codecs), KVPlan(plan.codecs), plan.blocks, plan.ring_blocks)
    size = config.hidden_size if config.reads_hidden else 0
    request = ExecutorRequest.of(forward, cache, threads, (size,) if size else (), beside)
    runner = Runner(config, backend.executor(request), plan.codecs)
    store = CacheStore(runner.groups, plan.blocks, plan.ring_blocks, runner.copy, keep_prefixes)
    return ModelDrafts(DraftProgram(runner, store, n_tokens, size), name)
