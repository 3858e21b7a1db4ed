"""Programs that draft beside a model: loaded, and started with the model's threads."""

from dataclasses import replace

from localrun.backends.executor import CachePlan, ExecutorRequest
from localrun.backends.interface import Backend
from localrun.base.dataclass import dataclass
from localrun.base.request import LoadOptions
from localrun.cache.store import CacheStore
from localrun.engine.runner import Runner, cache_layers
from localrun.engine.speculation.assistant_drafts import AssistantDrafts
from localrun.engine.speculation.block_drafts import BlockDrafts, BlockProgram
from localrun.engine.speculation.draft_program import DraftProgram
from localrun.engine.speculation.drafter import GuessingProgram
from localrun.engine.speculation.model_drafts import ModelDrafts
from localrun.fit.memory_plan import DraftPlan, MemoryPlan
from localrun.model.assistant_weights import load_assistant, load_clusters
from localrun.model.decoder import Model
from localrun.model.draft_source import DraftSource
from localrun.model.draft_weights import load_draft_layer
from localrun.model.dspark import ContextProgram
from localrun.model.dspark_weights import load_blocks
from localrun.model.load import load_model
from localrun.ops.kv import KVPlan
from localrun.ops.largest_step import max_sequences
from localrun.ops.layouts import Layout
from localrun.ops.recording import Forward


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
        if self.found.kind == "assistant":
            return self.assistant(plan)
        if self.found.kind == "block":
            return self.blocks(options.prefix_cache, max_sequences(plan.ctx))
        return self.with_cache(options.prefix_cache)

    def with_cache(self, keep_prefixes: bool) -> ModelDrafts:
        """A program with a cache of its own."""
        runner, store = self.own_cache(self.forward(), keep_prefixes)
        return ModelDrafts(DraftProgram(runner, store, self.n_tokens, self.plan.config.given_size), self.found.name)

    def blocks(self, keep_prefixes: bool, most_rows: int) -> BlockDrafts:
        """A program that stores what the model gives, and one that guesses blocks from that, of `most_rows` rows."""
        found, config, plan = self.found, self.plan.config, self.plan
        assert config.block is not None
        weights, head = load_blocks(found.source, found.refs, config, self.layout, self.backend.device)
        runner, store = self.own_cache(ContextProgram(config, weights).forward, keep_prefixes)
        forward, beside = Model(config, weights).forward, runner.executor
        request = ExecutorRequest.of(forward, self.cache(), self.threads, (), beside, shares_cache=True)
        guessing = Runner(config, self.backend.executor(request), plan.codecs)
        program = BlockProgram(
            runner, store, self.n_tokens, config.hidden_size, guessing, config.block, head, most_rows
        )
        return BlockDrafts(program, found.name)

    def own_cache(self, forward: Forward, keep_prefixes: bool) -> tuple[Runner, CacheStore]:
        """A program on the backend with the planned cache."""
        config, plan = self.plan.config, self.plan
        given = (config.given_size,) if config.given_size else ()
        request = ExecutorRequest.of(forward, self.cache(), self.threads, given, self.runner.executor)
        runner = Runner(config, self.backend.executor(request), plan.codecs)
        return runner, CacheStore(runner.groups, plan.blocks, plan.ring_blocks, runner.copy, keep_prefixes)

    def cache(self) -> CachePlan:
        plan = self.plan
        return CachePlan(cache_layers(plan.config, plan.codecs), KVPlan(plan.codecs), plan.blocks, plan.ring_blocks)

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
