"""`localrun fit`: the precision and context that fit this machine, before a download and offline."""

import re
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from localrun.backends.registry import BACKENDS, choose_gpu, usual_backend, usual_memory
from localrun.base.adapter_choice import AdapterChoice
from localrun.base.errors import NotFoundError, UsageError
from localrun.base.machine import memory as main_memory
from localrun.base.settings import read_settings
from localrun.cli.completion import complete_any_model, complete_precision
from localrun.cli.console import note, write, write_json
from localrun.cli.downloads import open_hub
from localrun.cli.failure import DOES_NOT_FIT
from localrun.cli.fit_table import image_words, show_fit
from localrun.cli.groups import DeviceOption, DraftOption, JsonSwitch, LoraOption, OfflineSwitch, adapters_named, switch
from localrun.cli.handover import as_json, print_hint, usual_plan
from localrun.fit.estimate import USUAL_CONTEXT, Fit
from localrun.fit.machine_rates import machine_rates
from localrun.hub.catalogue import BUILTIN
from localrun.hub.disk.aliases import without_aliases
from localrun.hub.fits import fit_preview, fit_stored
from localrun.hub.network.http import NetworkError
from localrun.hub.projectors import images_on_disk
from localrun.hub.remote.preview import find_on_hub, preview, preview_or_guess
from localrun.hub.resolve import resolve_all

if TYPE_CHECKING:
    from localrun.engine.image_cost import ImageCost

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*(?:(k|m|g|t)(?:i?b)?|b)?", re.IGNORECASE)
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}

_Name = Annotated[str | None, typer.Argument(metavar="[MODEL]", show_default=False, autocompletion=complete_any_model)]
Option = Annotated[
    str | None,
    typer.Option(
        "-m", "--model", metavar="MODEL", help="a name, a path or org/repo", autocompletion=complete_any_model
    ),
]
_Precision = Annotated[
    str,
    typer.Option("--precision", metavar="NAME", help="only this one: Q4_K_M …", autocompletion=complete_precision),
]
ContextOption = Annotated[int | None, typer.Option("--ctx", metavar="N", min=1, help="only this context, in tokens")]
Parallel = Annotated[int, typer.Option("--parallel", metavar="N", min=1, max=4096, help="conversations side by side")]
MemoryOption = Annotated[
    str | None, typer.Option("--memory", metavar="64GiB", help="memory of another machine, all of it free")
]
Check = Annotated[bool, switch("--check", "exit code 4 when it cannot run")]


def fit(
    named: _Name = None,
    model: Option = None,
    precision: _Precision = "auto",
    ctx: ContextOption = None,
    parallel: Parallel = 1,
    lora: LoraOption = None,
    draft: DraftOption = None,
    device: DeviceOption = None,
    memory: MemoryOption = None,
    check: Check = False,
    offline: OfflineSwitch = False,
    json: JsonSwitch = False,
) -> int:
    """Precision × context × KV codec for this machine: memory, speed, and the row to take."""
    if named and model:
        raise UsageError("two models are named", "leave one out")
    settings = read_settings()
    choose_gpu(settings.device if device is None else device)
    name = named or model or settings.model or BUILTIN
    adapters = adapters_named(lora) or ()
    what_if = parse_size(memory) if memory else None
    table, images = _table(name, precision, what_if, ctx, parallel, offline, adapters, draft or "auto")
    if table.elsewhere:
        note(table.elsewhere)
    machine = _machine(what_if, table.backend)
    made_for = max((row.ctx for row in table.rows), default=0)
    if ctx and made_for < ctx:
        asked = f"a context of {ctx:,} tokens is more than the {made_for:,} this model was made for"
        raise UsageError(asked, f"try --ctx {made_for}")
    found = table.recommended
    elsewhere = usual_plan(name, ctx or USUAL_CONTEXT, parallel, offline) if table.lacks_room else None
    if json:
        rows = [asdict(row) for row in table.rows]
        other = as_json(elsewhere) if elsewhere else None
        write_json(
            {
                "machine": machine,
                "rows": rows,
                "reason": table.reason,
                "backend": table.backend or None,
                "elsewhere": table.elsewhere or None,
                "handover": other,
                "images": images.as_fields() if images else None,
            }
        )
    else:
        show_fit(name, machine, table)
        if images:
            write(image_words(images, table))
        if elsewhere:
            print_hint(name, elsewhere)
    return DOES_NOT_FIT if check and (found is None or found.verdict == "no") else 0


def parse_size(text: str) -> int:
    """Bytes of `64GiB`, `64G`, `1.5 tb` or a plain number, in units of 1024. UsageError for anything else."""
    match = _SIZE.fullmatch(text.strip())
    size = float(match[1]) * _UNITS[(match[2] or "").lower()] if match else 0.0
    if not 1 <= size < 1 << 60:
        raise UsageError(f"{text!r} is not an amount of memory", "such as --memory 64GiB")
    return int(size)


def _machine(what_if: int | None, name: str) -> dict[str, Any]:
    """The machine where a backend computes, by default the usual one."""
    backend = BACKENDS[name] if name else usual_backend()
    now, rates = backend.memory(main_memory()), machine_rates(backend=backend)
    return {
        "total_bytes": now.total,
        "available_bytes": now.available,
        "budget_bytes": what_if or now.available,
        "what_if": what_if is not None,
        "read_gbps": round(rates.read_bytes / 1e9, 1),
        "gmacs": round(rates.macs / 1e9, 1),
    }


def _table(
    name: str,
    precision: str,
    what_if: int | None,
    ctx: int | None,
    parallel: int,
    offline: bool,
    adapters: Sequence[AdapterChoice],
    draft: str,
) -> "tuple[Fit, ImageCost | None]":
    """Table from the disk for a path or a name found only there; else from the hub, or offline the catalogue. Also what
    images cost, where the model sees."""
    asked = (what_if or usual_memory().available, ctx, parallel, adapters, what_if is not None)
    wanted = find_on_hub(name, precision)
    try:
        stored = without_aliases(resolve_all(name, precision))
    except NotFoundError:
        if wanted is None:
            raise
        stored = []
    with open_hub(offline) as http:
        if wanted is None or (stored and (draft != "auto" or http.access.offline or stored[0].source == "path")):
            return fit_stored(stored, *asked, draft), images_on_disk(stored[0])
        if draft != "auto":
            raise UsageError("what drafts is counted for a model on disk", "leave --draft out")
        try:
            found = preview(http, wanted) if stored else preview_or_guess(http, wanted)
        except NetworkError as error:
            if not stored:
                raise
            note(f"{error.message}: this is what is on disk")
            return fit_stored(stored, *asked), images_on_disk(stored[0])
    if found.approximate:
        note(f"{found.unreachable or 'offline'}: weights are estimated from the public shape (≈)")
    if found.obstacle and found.shape is not None:
        note(f"this version cannot run it: {found.obstacle}")
    for unread, why in found.unreadable.items():
        note(f"{unread} cannot be read: {why}")
    return fit_preview(found, *asked), found.images
