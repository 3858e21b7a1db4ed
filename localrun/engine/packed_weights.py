"""Weights that memory has no room for: which may stay on disk, where they are kept, and what a user is told of it."""

import secrets
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from localrun.backends.interface import Backend
from localrun.base.machine import Memory
from localrun.base.paths import writable_folder
from localrun.base.request import LoadOptions
from localrun.base.units import gib, tps
from localrun.cache.label import Label
from localrun.cache.packed_weights import PACKED_FOLDER, packed_files
from localrun.engine.fingerprint import fingerprint
from localrun.engine.identity import Identity
from localrun.engine.opened_model import OpenedModel
from localrun.fit.disk_rate import disk_rate, may_map
from localrun.fit.machine_rates import machine_rates
from localrun.fit.mapped import Mappable, mappable, missed_bytes
from localrun.fit.memory_plan import MemoryPlan
from localrun.formats.packed_file import PackedFile
from localrun.model.weight_ref import WeightRef
from localrun.ops.layouts import Layout
from localrun.ops.numerics import NUMERICS_VERSION


def mappable_weights(opened: OpenedModel, backend: Backend, layout: Layout, main: Memory) -> list[Mappable]:
    """The matrices that may stay on disk, those first that go first; none where that would help nothing."""
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
    weights = (opened.identity or Identity(opened.files)).result()
    if not weights:  # they may be of a file that is another now: nobody is to find them again
        weights = secrets.token_hex(16)
    sizes = {part.name: part.nbytes for part in plan.mapped}
    return packed_files_of(home / PACKED_FOLDER, weights, options, opened, layout, sizes)


def packed_files_of(
    root: Path,
    weights: str,
    options: LoadOptions,
    opened: OpenedModel,
    layout: Layout,
    sizes: Mapping[str, int],
    limit: int | None = None,
) -> Mapping[str, PackedFile]:
    """A file below `root` for each matrix of `sizes` of a model whose weights are told by `weights`. Raises DiskError,
    also where that and the files of other models would take more than `limit` bytes."""
    made_of = fingerprint(weights, options.precision, layout.name, NUMERICS_VERSION, opened.refs)
    label = Label(options.name or options.path.stem, str(options.path), options.precision, weights=weights)
    return packed_files(root, made_of, replace(label, numerics=NUMERICS_VERSION), sizes, limit)


def changed_note(files: Iterable[PackedFile]) -> tuple[str, ...]:
    """What a user should know where packed weights are not what was written; empty where they are."""
    n = sum(file.was_changed() for file in files)
    what = "a file" if n == 1 else f"{n} files"
    return (f"{what} of packed weights on the disk changed since they were written: packed again",) * bool(n)


def notes_of(plan: MemoryPlan, active_bytes: int) -> tuple[str, ...]:
    """What a user should know where weights stay on disk. A token reads `active_bytes` of all of them."""
    if not plan.mapped:
        return ()
    told = f"memory is short: {gib(plan.mapped_bytes)} of weights stay on disk and are read as they are used"
    rates, disk = machine_rates(), disk_rate()
    if not disk:
        return (f"{told}, as fast as the disk gives them",)
    missed = missed_bytes(plan.mapped, plan.budget_bytes - plan.needed_bytes)
    seconds = missed / disk + (active_bytes - missed) / rates.read_bytes / rates.share("decode", active_bytes)[0]
    return (f"{told}: expect about {tps(1 / seconds)} (the disk gives {disk / 1e9:.1f} GB/s)",)
