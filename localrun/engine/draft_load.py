"""Programs that draft beside a model: opened, loaded, and started with the model's threads."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from localrun.backends.executor import CachePlan, ExecutorRequest
from localrun.backends.interface import Backend
from localrun.base.errors import UsageError
from localrun.base.request import LoadOptions
from localrun.cache.store import CacheStore
from localrun.engine.opened_model import OpenedModel
from localrun.engine.runner import Runner, cache_layers
from localrun.engine.speculation.assistant_drafts import AssistantDrafts
from localrun.engine.speculation.draft_program import DraftProgram
from localrun.engine.speculation.drafter import GuessingProgram
from localrun.engine.speculation.model_drafts import ModelDrafts
from localrun.fit.memory_plan import DraftPlan, MemoryPlan
from localrun.model.assistant_weights import load_assistant, load_clusters
from localrun.model.decoder import Model
from localrun.model.draft_source import LOOKUP_HINT, DraftSource, find_draft
from localrun.model.draft_weights import load_draft_layer
from localrun.model.load import load_model
from localrun.ops.kv import KVPlan
from localrun.ops.layouts import Layout
from localrun.ops.recording import Forward
from localrun.text.load_text import load_text
from localrun.text.model_text import ModelText

if TYPE_CHECKING:
    pass


def open_draft(options: LoadOptions, opened: OpenedModel) -> DraftSource | None:
    """Open what a load wishes for, or by itself a layer made for the model. Raises UsageError for what cannot draft, or
    ModelFileError."""
    found = find_draft(options.draft, opened.source, opened.config, options.name or options.path.stem)
    if found is not None and found.kind == "model":
        check_same_tokens(opened.text, load_text(found.source), found.source.path.name)
    return found


def check_same_tokens(ours: ModelText, theirs: ModelText, name: str) -> None:
    """Raise UsageError where a smaller model reads other tokens."""
    n = ours.tokenizer.vocab_size
    same = n == theirs.tokenizer.vocab_size
    if not same or any(ours.tokenizer.piece(i) != theirs.tokenizer.piece(i) for i in range(n)):
        raise UsageError(f"{name} has other tokens than the model, and cannot draft for it", LOOKUP_HINT)


@dataclass(frozen=True, slots=True)
class DraftStart:
    """A program that drafts, planned on a backend, and the loaded model beside which it starts."""

    found: DraftSource
    plan: DraftPlan
    backend: Backend
    layout: Layout
    model: Model
    runner: Runner  # of the model
    threads: int
    n_tokens: int  # that the model knows

    def program(self, options: LoadOptions, plan: MemoryPlan) -> GuessingProgram:
        """Load its weights and start it; `plan`: of the model. Raises ModelFileError."""
        return self.assistant(plan) if self.found.kind == "assistant" else self.with_cache(options.prefix_cache)

    def with_cache(self, keep_prefixes: bool) -> ModelDrafts:
        """A program with a cache of its own."""
        config, plan = self.plan.config, self.plan
        cache = CachePlan(cache_layers(config, plan.codecs), KVPlan(plan.codecs), plan.blocks, plan.ring_blocks)
        given = (config.given_size,) if config.given_size else ()
        request = ExecutorRequest.of(self.forward(), cache, self.threads, given, self.runner.executor)
        runner = Runner(config, self.backend.executor(request), plan.codecs)
        store = CacheStore(runner.groups, plan.blocks, plan.ring_blocks, runner.copy, keep_prefixes)
        return ModelDrafts(DraftProgram(runner, store, self.n_tokens, config.given_size), self.found.name)

    def forward(self) -> Forward:
        found, config, device = self.found, self.plan.config, self.backend.device
        if found.kind == "model":
            return load_model(found.source, self.layout, device, config).forward
        return load_draft_layer(found.source, found.refs, config, self.model.weights, self.layout, device).forward

    def assistant(self, plan: MemoryPlan) -> AssistantDrafts:
        """A program that reads the model's cache."""
        found, config, device = self.found, self.plan.config, self.backend.device
        embed = self.model.weights.embed
        program = load_assistant(found.source, found.refs, config, embed, self.layout, device)
        of_model = cache_layers(plan.config, plan.codecs)
        sources = [(spec.shares_cache, spec.n_heads) for spec in config.layers]
        layers = [replace(of_model[source], n_heads=n) for source, n in sources if source is not None]
        cache = CachePlan(layers, KVPlan(plan.codecs), plan.blocks, plan.ring_blocks)
        beside = self.runner.executor
        request = ExecutorRequest.of(program.forward, cache, self.threads, (config.body_size,), beside, True)
        runner = Runner(config, self.backend.executor(request), groups=self.runner.groups)
        clusters = load_clusters(found.source, found.refs, config)
        return AssistantDrafts(runner, self.n_tokens, found.name, clusters, config.clusters)
