"""Fit of a model's precisions: those of the hub, before a download, and those on disk."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

from localrun.backends.registry import usual_backend
from localrun.base.adapter_choice import AdapterChoice
from localrun.base.errors import HubError, LocalrunError, NotFoundError
from localrun.base.machine import memory
from localrun.fit.adapters import NO_ADAPTERS, added_by
from localrun.fit.disk_rate import disk_rate, may_map
from localrun.fit.draft_memory import draft_memory
from localrun.fit.estimate import Candidate, Fit, Question, fit_table
from localrun.fit.fastest import fastest_backend, why_not_usual
from localrun.fit.machine_rates import machine_rates
from localrun.fit.shape import ModelShape, loadable_shape
from localrun.formats.requantize import PRECISIONS
from localrun.hub.candidates import in_memory, is_wide
from localrun.hub.disk.stored import StoredModel
from localrun.hub.names import RECOMMENDED, same_precision
from localrun.hub.projectors import cost_on_disk
from localrun.hub.remote.preview import RepoPreview
from localrun.hub.remote.variants import Variant, choose_variant
from localrun.model.recording import record_shapes


def fit_preview(
    found: RepoPreview,
    budget: int,
    ctx: int | None = None,
    parallel: int = 1,
    adapters: Sequence[AdapterChoice] = (),
    what_if: bool = False,
) -> Fit:
    """The table for a model on the hub; with a precision in its name only rows of that one. `budget`: free bytes where
    the usual backend computes, or, as a `what_if`, wherever this model is computed. Raises like `added_by`."""
    if found.shape is None:
        raise HubError(f"cannot tell what {found.wanted.name} needs: {found.obstacle}", "choose another model")
    wanted = found.wanted.precision
    asked = [one for one in found.candidates if not wanted or same_precision(one.precision, wanted)]
    candidates = tuple(asked) or found.candidates
    readable = [one for one in candidates if one.precision not in found.unreadable]
    if not readable:
        return Fit((), found.obstacle)
    added, sight = added_by(adapters, found.shape), found.images.room_bytes if found.images else 0
    question = Question(budget, machine_rates(), ctx, parallel, added=added, sight_bytes=sight)
    fit = _fit(found.shape, readable, question, what_if)
    return replace(fit, reason=found.obstacle) if found.obstacle else fit


def fit_stored(
    stored: Sequence[StoredModel],
    budget: int,
    ctx: int | None = None,
    parallel: int = 1,
    adapters: Sequence[AdapterChoice] = (),
    what_if: bool = False,
    draft: str = "auto",
) -> Fit:
    """The table for precisions of one model that are on disk, and for those made of them while they are loaded;
    `budget` as for `fit_preview`. Raises like `loadable_shape`, `added_by` and `draft_memory`."""
    from localrun.formats.detect import open_model_file

    candidates, shape, added, sight, drafting = [], None, NO_ADAPTERS, 0, None
    made: dict[str, Candidate] = {}
    for model in stored:
        source = open_model_file(model.path)
        shape = loadable_shape(source)
        added, images = added_by(adapters, shape), cost_on_disk(source, shape.config.hidden_size)
        sight, drafting = images.room_bytes if images else 0, draft_memory(draft, source)[0]
        candidates.append(in_memory(source, model.precision, shape, added.ranks, draft))
        if model.format == "safetensors" and is_wide(candidates[-1]):
            made |= {precision: in_memory(source, precision, shape, added.ranks, draft) for precision in PRECISIONS}
    if shape is None:
        raise NotFoundError("there is no model to fit")
    question = Question(budget, machine_rates(), ctx, parallel, added=added, sight_bytes=sight, drafting=drafting)
    return _fit(shape, [*candidates, *made.values()], question, what_if)


def recommended_variant(found: RepoPreview, budget: int) -> tuple[Variant, str]:
    """The precision to download when none was asked for, and the reason."""
    assert found.repo is not None
    if found.wanted.precision:
        return choose_variant(found.repo.name, found.variants, found.wanted.precision), "as requested"
    try:
        fit = fit_preview(found, budget)
    except LocalrunError:
        fit = None
    if fit is not None and fit.recommended is not None:
        precision = fit.recommended.precision
        how = f"; run it with --precision {precision}" if precision in PRECISIONS else ""
        return choose_variant(found.repo.name, found.variants, precision), fit.reason + how
    by_precision = {variant.precision: variant for variant in reversed(found.variants)}
    usual = next((by_precision[name] for name in RECOMMENDED if name in by_precision), None)
    return usual or found.variants[0], fit.reason if fit else "the default"


def _fit(shape: ModelShape, candidates: Sequence[Candidate], question: Question, what_if: bool) -> Fit:
    """Models that cannot be run have sizes, too, but are never recommended."""
    model = record_shapes(shape.config, question.added.ranks)
    backend, elsewhere = fastest_backend(model), why_not_usual(model)
    if backend is not usual_backend():
        budget = question.budget if what_if else backend.memory(memory()).available
        question = replace(question, budget=budget, rates=machine_rates(backend=backend))
    if not backend.in_main_memory or shape.obstacle:  # it reads text alone
        question = replace(question, sight_bytes=0)
    disk = cache(disk_rate) if may_map(backend) else None
    fit = replace(fit_table(shape, candidates, replace(question, disk=disk)), backend=backend.name, elsewhere=elsewhere)
    if not shape.obstacle:
        return fit
    return replace(fit, rows=tuple(replace(row, recommended=False) for row in fit.rows), reason=shape.obstacle)
