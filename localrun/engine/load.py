"""Loading of a model, from a path to a running engine: open, choose a backend, plan, load."""

import time
from dataclasses import replace
from functools import partial

from localrun.backends.executor import CachePlan, Executor, ExecutorRequest
from localrun.backends.interface import Backend
from localrun.backends.registry import backends_for, choose_gpu
from localrun.base.check import check_load
from localrun.base.dataclass import dataclass
from localrun.base.errors import DoesNotFitError, ModelFileError
from localrun.base.events import ModelInfo
from localrun.base.paths import writable_folder
from localrun.base.request import LoadOptions, ProgressCallback
from localrun.base.units import gib
from localrun.base.views import MemoryPart
from localrun.cache.store import CacheStore
from localrun.engine.constraints import Constraints
from localrun.engine.describe import describe
from localrun.engine.encode_rate import EncodeRate
from localrun.engine.engine import Engine
from localrun.engine.image_encoder import ImageEncoder
from localrun.engine.load_plan import plan_on
from localrun.engine.opened_draft import load_taps_of, with_draft
from localrun.engine.opened_model import OpenedModel, open_model
from localrun.engine.packed_weights import changed_note, files_of, kept_weights
from localrun.engine.runner import Runner, cache_layers
from localrun.engine.speculation.drafter import GuessingProgram
from localrun.engine.speculation.lookup import Lookups
from localrun.engine.speculation.speculation import Speculation
from localrun.engine.view import StoreView
from localrun.fit.fastest import why_slower
from localrun.fit.memory_plan import MemoryPlan
from localrun.formats.requantize import RequantizedSource, encode_on_one_thread_each
from localrun.formats.source import WIDE_SCALES
from localrun.model.decoder import Model
from localrun.model.load import load_model
from localrun.model.recording import record_shapes
from localrun.model.weight_sizes import allocated_bytes, files_in_use, work_per_token
from localrun.ops.kv import KVPlan
from localrun.ops.largest_step import max_sequences
from localrun.ops.layouts import Layout
from localrun.ops.types import ADAPTER_NUMERICS, NUMERICS_VERSION
from localrun.storage.block_files import DISK_FOLDER, BlockFiles
from localrun.storage.disk_cache import DiskCache
from localrun.storage.identity import fingerprint
from localrun.storage.idle_check import IdleCheck
from localrun.storage.image_rows import ImageRowFiles
from localrun.storage.label import Label
from localrun.storage.mapped_files import MappedFiles
from localrun.storage.weight_writer import WeightWriter
from localrun.text.model_text import ModelText

NO_ROOM = "images would take another {}: close other programs, choose a smaller precision, or a shorter context"


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """Everything a face needs: the engine, the model's text side, and what was decided on the way."""

    engine: Engine
    model: Model
    backend: Backend
    text: ModelText
    plan: MemoryPlan
    info: ModelInfo
    threads: int
    file_bytes_per_token: int  # of weights, in the file's own encoding
    macs_per_token: int
    kept: WeightWriter
    check: IdleCheck
    constraints: Constraints
    draft_bytes: int = 0  # of the weights of a program that drafts
    images: ImageEncoder | None = None  # of a model that sees
    why_blind: str = ""  # what would help one that does not

    def memory(self, held: StoreView) -> tuple[MemoryPart, ...]:
        """The planned peak of memory, and the memory in use, while the cache holds that."""
        plan, images = self.plan, self.images
        seeing = () if images is None else (MemoryPart("images", plan.sight_bytes, images.n_bytes),)
        return (
            MemoryPart("weights", plan.weights_bytes, allocated_bytes(self.model.weights) + self.draft_bytes),
            MemoryPart("KV cache", plan.kv_bytes, held.touched_bytes if plan.grows else plan.kv_bytes),
            *seeing,
        )

    def close(self) -> None:
        """End the engine, and what writes and checks packed weights."""
        self.engine.close()
        self.check.close()
        self.kept.close()
        self.constraints.close()


def load(options: LoadOptions, progress: ProgressCallback = lambda done, total: None) -> LoadedModel:
    """Open, check and load a model. One that a GPU has no memory for, or where the CPU is faster, runs in main memory,
    unless the GPU was asked for.

    Raises ModelFileError, DoesNotFitError, NotFoundError or UsageError.
    """
    started = time.perf_counter()
    check_load(options)
    choose_gpu(options.device)
    try:
        return load_opened(options, open_model(options), progress, started)
    except ModelFileError as error:
        if error.code != WIDE_SCALES:
            raise
    # Here the error, and with it what was loaded so far, is gone.
    return load_opened(options, open_model(options, wide_scales=True), progress, started)


def load_opened(options: LoadOptions, opened: OpenedModel, progress: ProgressCallback, started: float) -> LoadedModel:
    """Load an opened model on the first backend that can run it. Raises like `load`."""
    opened = with_draft(options, opened)
    refused: list[str] = []
    model = record_shapes(opened.config, opened.adapter_ranks)
    slower = partial(why_slower, model=model, bits=opened.bits)
    for backend, notes in backends_for(options.backend, model, opened.matrix_types, slower):
        try:
            return load_on(backend, (*notes, *refused), options, opened, progress, started)
        except DoesNotFitError as error:
            if options.backend != "auto" or backend.in_main_memory:
                raise
            refused.append(f"slow: the {backend.name} backend cannot run this: {error.message}")
    raise AssertionError("the reference runs everything")


def load_on(
    backend: Backend,
    notes: tuple[str, ...],
    options: LoadOptions,
    opened: OpenedModel,
    progress: ProgressCallback,
    started: float,
) -> LoadedModel:
    """Plan and load an opened model on a backend. Raises like `load`."""
    planned = plan_on(backend, options, opened)
    opened, layout, plan, threads = planned.opened, planned.layout, planned.plan, planned.threads
    if isinstance(opened.source, RequantizedSource) and layout.reads_side_by_side:
        encode_on_one_thread_each()
    files, kept = files_of(plan, options, opened, layout), kept_weights(options, opened, backend, layout, plan)
    notes = (*notes, *changed_note([*files.values(), *kept.missing]))
    model = load_model(
        opened.source, layout, backend.device, plan.config, progress, files, kept.matrices, opened.adapters
    )
    model = replace(model, taps=load_taps_of(opened, layout, backend))
    tables = {file: opened.files.stamps[file] for file in files_in_use(opened.source, opened.refs)}
    mapped = MappedFiles(tables, [*files.values(), *kept.found])
    engine = start_engine(options, opened, backend, layout, plan, model, threads, mapped)
    images, why_blind = open_eyes(opened, backend, layout, plan, threads, engine.disk)
    text = opened.text if images is None else replace(opened.text, image_tokens=images.tokens)
    info = describe(options, opened, backend, notes, layout, plan, engine, time.perf_counter() - started)
    kept.write()
    check = IdleCheck(mapped, engine.resting, engine.wake)
    if kept.found:
        check.start()
    file_bytes, macs = work_per_token(opened.source, opened.refs)
    return LoadedModel(
        engine=engine,
        model=model,
        backend=backend,
        text=text,
        plan=plan,
        info=replace(info, why_blind=why_blind),
        threads=threads,
        file_bytes_per_token=file_bytes,
        macs_per_token=macs,
        kept=kept,
        check=check,
        constraints=Constraints(text, plan.config.vocab_size),
        draft_bytes=0 if opened.draft is None else opened.draft.held_bytes(layout.nbytes),
        images=images,
        why_blind=why_blind,
    )


def open_eyes(
    opened: OpenedModel, backend: Backend, layout: Layout, plan: MemoryPlan, threads: int, disk: DiskCache | None
) -> tuple[ImageEncoder | None, str]:
    """The half of a model that sees, which is loaded with the first image; or why there is none."""
    tower = opened.sight.tower
    if tower is None:
        return None, opened.sight.why_not
    if not plan.sight_bytes:
        return None, NO_ROOM.format(gib(tower.cost(backend, layout, threads).room_bytes))
    projector = tower.projector(backend, layout)

    def files() -> ImageRowFiles | None:
        """Files for what is encoded, where blocks are kept on disk, and the weights of the projector are known."""
        if disk is None or not tower.identity():
            return None
        identity, n_parts = projector.identity, 1 + projector.n_added
        return ImageRowFiles(disk.files.root, identity, disk.files.label, n_parts, tower.config.out_size, disk.writer)

    rate, sees_itself = EncodeRate(backend), opened.config.image_spans
    return ImageEncoder(projector, opened.text.tokenizer, files, sees_itself=sees_itself, rate=rate), ""


def start_engine(
    options: LoadOptions,
    opened: OpenedModel,
    backend: Backend,
    layout: Layout,
    plan: MemoryPlan,
    model: Model,
    threads: int,
    mapped: MappedFiles,
) -> Engine:
    """The engine of a loaded model, with the disk cache of earlier chats."""
    runner = Runner(plan.config, start_executor(backend, model, plan, threads), plan.codecs)
    store = CacheStore(runner.groups, plan.blocks, plan.ring_blocks, runner.copy, options.prefix_cache)
    disk = None
    if opened.identity is not None and (weights := opened.identity.result()):
        bits = (*plan.config.computed, plan.codecs, options.precision, backend.rounding, layout.name)
        name = options.name or options.path.stem
        made_with = (options.precision, plan.codec.name, weights, NUMERICS_VERSION, store.block_tokens)
        label = Label(name, str(options.path), *made_with)
        changed_by = (*opened.own_types, *((*adapter.identity, ADAPTER_NUMERICS) for adapter in opened.adapters))
        disk = open_disk_cache(store, runner, fingerprint(weights, *bits, *changed_by), label, options.disk_cache)
    endless = all(rope.endless for rope in plan.config.ropes)
    guesses = load_drafts(options, opened, backend, layout, plan, model, runner, threads)
    drafts = speculation(options, runner, store, plan.ctx, guesses)
    return Engine(runner, store, plan.ctx, endless, disk, mapped, options.parallel, drafts)


def speculation(
    options: LoadOptions, runner: Runner, store: CacheStore, ctx: int, guesses: GuessingProgram | None
) -> Speculation | None:
    """Drafts by lookup, unless they are off, and by a program where one is loaded; a step has to verify several tokens
    as it would compute them one by one."""
    if options.draft == "off" or not runner.executor.exact_rows:
        return None
    return Speculation(ctx, max_sequences(ctx), Lookups(store.tree, options.prefix_cache), model=guesses)


def load_drafts(
    options: LoadOptions,
    opened: OpenedModel,
    backend: Backend,
    layout: Layout,
    plan: MemoryPlan,
    model: Model,
    runner: Runner,
    threads: int,
) -> GuessingProgram | None:
    """The program that drafts beside a loaded model; None for none."""
    draft, planned = opened.draft, plan.draft
    if draft is None or planned is None:
        return None
    from localrun.engine.draft_load import DraftStart  # and with it whatever can draft, which most loads do not need

    n_tokens = opened.text.tokenizer.vocab_size
    start = DraftStart(draft, planned, backend, layout, model, runner, threads, n_tokens)
    return start.program(options, plan)


def start_executor(backend: Backend, model: Model, plan: MemoryPlan, threads: int) -> Executor:
    """The model on a backend, with the cache that was planned."""
    layers = cache_layers(model.config, plan.codecs)
    cache = CachePlan(layers, KVPlan(plan.codecs), plan.blocks, plan.ring_blocks)
    return backend.executor(ExecutorRequest.of(model.forward, cache, threads))


def open_disk_cache(store: CacheStore, runner: Runner, identity: str, label: Label, budget: int) -> DiskCache | None:
    """The disk cache; None where nothing can be written."""
    home = writable_folder("cache")
    if home is None:
        return None
    files = BlockFiles(home / DISK_FOLDER, identity, runner.block_sizes, label, runner.sink_window)
    return DiskCache(store, files, runner.read, runner.write, budget)
