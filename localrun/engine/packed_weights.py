"""Packed weights of a model on disk: those that do not fit in memory, and those kept for the next start."""

import secrets
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace

from localrun.backends.interface import Backend
from localrun.base.errors import DoesNotFitError
from localrun.base.machine import Memory
from localrun.base.paths import writable_folder
from localrun.base.processors import memory_nodes
from localrun.base.request import LoadOptions
from localrun.base.units import gib, tps
from localrun.engine.opened_model import OpenedModel
from localrun.fit.disk_rate import disk_rate, may_map
from localrun.fit.machine_rates import machine_rates
from localrun.fit.mapped import Mappable, mappable, missed_bytes
from localrun.fit.memory_plan import MemoryPlan
from localrun.model.weight_ref import WeightRef
from localrun.ops.layouts import KeptMatrix, Layout
from localrun.ops.types import NUMERICS_VERSION
from localrun.storage.identity import Identity, fingerprint, known_identity
from localrun.storage.label import Label
from localrun.storage.packed_file import PackedFile
from localrun.storage.weight_store import WeightStore
from localrun.storage.weight_writer import PackedFiles, WeightWriter

LEAST_BYTES = 64 << 20  # of a model's matrices: fewer are packed in no time


def mappable_weights(opened: OpenedModel, backend: Backend, layout: Layout, main: Memory) -> list[Mappable]:
    """The matrices that may stay on disk, in the order in which they go there; none where that would not help."""
    if main.counts_files or not may_map(backend):
        return []

    def nbytes(ref: WeightRef) -> int:
        return layout.nbytes(opened.source.tensors[ref.name].qtype, *ref.shape)

    return mappable(opened.config, opened.refs, nbytes)


def files_of(plan: MemoryPlan, options: LoadOptions, opened: OpenedModel, layout: Layout) -> Mapping[str, PackedFile]:
    """A file for each matrix that the plan leaves on disk. Raises DiskError."""
    home = writable_folder("cache")
    if not plan.mapped or home is None:
        return {}
    store, sizes = WeightStore(home), {part.name: part.nbytes for part in plan.mapped}
    store.check_room(sum(sizes.values()))  # before a file is read through that may be larger than memory
    weights = (opened.identity or Identity(opened.files)).result()
    if not weights:  # the model file may have been replaced: these must not be found again
        weights = secrets.token_hex(16)
    return packed_files_of(store, weights, options, opened, layout, sizes)


def packed_files_of(
    store: WeightStore,
    weights: str,
    options: LoadOptions,
    opened: OpenedModel,
    layout: Layout,
    sizes: Mapping[str, int],
    limit: int | None = None,
) -> Mapping[str, PackedFile]:
    """A file of `store` for each matrix of `sizes` of a model whose weights `weights` identifies. Raises DiskError,
    also where that and the files of other models would take more than `limit` bytes."""
    made_of = fingerprint(weights, options.precision, layout.name, NUMERICS_VERSION, opened.refs, *opened.own_types)
    label = Label(options.name or options.path.stem, str(options.path), options.precision, weights=weights)
    return store.files(made_of, replace(label, numerics=NUMERICS_VERSION), sizes, limit)


def changed_note(files: Iterable[PackedFile]) -> tuple[str, ...]:
    """Note for the user where packed weights are not what was written; empty where they are."""
    n = sum(file.was_changed() for file in files)
    what = "a file" if n == 1 else f"{n} files"
    return (f"{what} of packed weights on the disk changed since they were written: packed again",) * bool(n)


def notes_of(plan: MemoryPlan, active_bytes: int) -> tuple[str, ...]:
    """Notes for the user where weights stay on disk. A token reads `active_bytes` of all of them."""
    if not plan.mapped:
        return ()
    note = f"memory is short: {gib(plan.mapped_bytes)} of weights stay on disk and are read as they are used"
    rates, disk = machine_rates(), disk_rate()
    if not disk:
        return (f"{note}, as fast as the disk gives them",)
    missed = missed_bytes(plan.mapped, plan.budget_bytes - plan.needed_bytes)
    seconds = missed / disk + (active_bytes - missed) / rates.read_bytes / rates.share("decode", active_bytes)[0]
    return (f"{note}: expect about {tps(1 / seconds)} (the disk gives {disk / 1e9:.1f} GB/s)",)


def kept_weights(
    options: LoadOptions, opened: OpenedModel, backend: Backend, layout: Layout, plan: MemoryPlan
) -> WeightWriter:
    """Packed weights of a model about to be loaded, and the files for the rest; empty where nothing is kept."""
    matrices = {name: ref for name, ref in opened.refs.items() if len(ref.shape) == 2 and not ref.mapped}
    tensors = opened.source.tensors
    sizes = {name: layout.nbytes(tensors[ref.name].qtype, *ref.shape) for name, ref in matrices.items()}
    is_one_node = len(memory_nodes()) == 1  # with several, weights belong on the node that reads them
    is_wanted = options.packed_weights != 0 and backend.maps_weights and not plan.mapped and is_one_node
    home = writable_folder("cache") if is_wanted and sum(sizes.values()) >= LEAST_BYTES else None
    if home is None:
        return WeightWriter({}, dict)
    store = WeightStore(home)
    limit = store.limit(options.packed_weights)

    def files(weights: str) -> PackedFiles:
        return packed_files_of(store, weights, options, opened, layout, sizes, limit) if weights else {}

    there: PackedFiles = {}
    with suppress(DoesNotFitError):
        there = files(known_identity(opened.files))
    found = {name: file.found() for name, file in there.items()}
    kept = {name: KeptMatrix(found.get(name)) for name in sizes}
    identity = opened.identity

    def all_files() -> PackedFiles:
        return there or files((identity or Identity(opened.files)).result())

    missing = [there[name] for name, matrix in found.items() if matrix is None]
    return WeightWriter(kept, all_files, [file for file in there.values() if file not in missing], missing)
