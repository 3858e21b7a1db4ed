"""Plan of a load: what a backend takes of an opened model, and the memory for it."""

from dataclasses import replace

from localrun.backends.interface import Backend
from localrun.backends.registry import BACKENDS, usual_backend
from localrun.base.dataclass import dataclass
from localrun.base.errors import DoesNotFitError
from localrun.base.machine import memory, resident
from localrun.base.processors import most_threads, usual_threads
from localrun.base.request import LoadOptions
from localrun.engine.opened_model import OpenedModel, open_model
from localrun.engine.packed_weights import mappable_weights
from localrun.fit.memory_plan import MemoryPlan
from localrun.fit.plan import LoadRequest, plan_with_sight
from localrun.model.recording import record_shapes
from localrun.ops.layouts import F32, Layout
from localrun.storage.chat_codec import codec_before

LEAST_SHARE = 0.75  # of the context without a layer that drafts, for it to be loaded unasked
NO_ROOM = "the layer that drafts tokens is not loaded: it would take memory from the context; `--draft mtp` loads it"


@dataclass(frozen=True, slots=True)
class PlannedLoad:
    """An opened model as a backend takes it, with the memory that is planned for it there."""

    opened: OpenedModel
    threads: int
    layout: Layout
    plan: MemoryPlan


def plan_on(backend: Backend, options: LoadOptions, opened: OpenedModel) -> PlannedLoad:
    """Plan a load on a backend; without what drafts where nobody asked for it and there is no room. Raises
    DoesNotFitError or UsageError."""
    opened = opened.on(backend)
    if opened.draft is None or options.draft != "auto":
        return planned_as(backend, options, opened)
    plain = planned_as(backend, options, replace(opened, draft=None))
    try:
        drafting = planned_as(backend, options, opened)
    except DoesNotFitError:
        drafting = None
    if drafting is not None and is_worth(drafting.plan, plain.plan):
        return drafting
    return replace(plain, plan=replace(plain.plan, notes=(*plain.plan.notes, NO_ROOM)))


def is_worth(drafting: MemoryPlan, plain: MemoryPlan) -> bool:
    """Whether a plan with what drafts takes little from the model: no more weights on disk, no coarser codec, and most
    of the context."""
    same = drafting.mapped_bytes == plain.mapped_bytes and drafting.codec == plain.codec
    return same and drafting.ctx >= LEAST_SHARE * plain.ctx and drafting.sight_bytes == plain.sight_bytes


def planned_as(backend: Backend, options: LoadOptions, opened: OpenedModel) -> PlannedLoad:
    """Plan a load of all that is opened."""
    threads = threads_of(options)
    return PlannedLoad(opened, threads, *plan_memory(options, opened, backend, threads))


def check_ahead(options: LoadOptions, freed: int) -> None:
    """Check that a model can be loaded once `freed` more bytes of main memory are free: its files, and its plan where
    main memory computes it. Raises ModelFileError, NotFoundError, DoesNotFitError or UsageError."""
    opened = open_model(options)
    model = record_shapes(opened.config, opened.adapter_ranks)
    backend = usual_backend(model) if options.backend == "auto" else BACKENDS[options.backend]
    if backend.in_main_memory and not backend.why_unavailable():
        plan_memory(options, opened.on(backend), backend, threads_of(options), freed)


def threads_of(options: LoadOptions) -> int:
    return min(options.threads or usual_threads(), most_threads())


def plan_memory(
    options: LoadOptions, opened: OpenedModel, backend: Backend, threads: int, freed: int = 0
) -> tuple[Layout, MemoryPlan]:
    """Plan the memory of weights, cache and working memory, `freed` bytes more than are free now. Raises
    DoesNotFitError or UsageError."""
    now = backend.memory(memory())
    now = replace(now, available=now.available + freed)
    layout = backend.layout(opened.held_bytes(F32), now.available, threads)
    request = LoadRequest(
        opened.config,
        opened.held_bytes(layout),
        now.available,
        backend,
        ctx=options.ctx,
        kv=options.kv,
        window=options.window,
        resident=resident() if backend.in_main_memory else 0,
        threads=threads,
        keep_chats=options.prefix_cache,
        limit=now.limit,
        before=codec_before(options) if opened.identity else None,
        mappable=mappable_weights(opened, backend, layout, now),
        adapters=opened.adapter_ranks,
        sight_bytes=0 if (tower := opened.sight.tower) is None else tower.cost(backend, layout, threads).room_bytes,
        drafting=None if opened.draft is None else opened.draft.config,
    )
    return layout, plan_with_sight(request)
