"""`localrun doctor`: what works on this machine, what does not, and what to do about it."""

import platform
import shutil
from contextlib import suppress
from typing import Any, get_args

from localrun.backends.interface import Backend
from localrun.base.errors import LocalrunError, UsageError
from localrun.base.paths import FolderKind, folder, what_is_not_kept, writable_folder
from localrun.base.settings import read_settings, settings_aside, unknown_settings
from localrun.base.units import gib
from localrun.cli.console import write, write_json, write_table
from localrun.cli.groups import JsonSwitch
from localrun.hub.catalogue import BUILTIN
from localrun.hub.network.access import hub_cache
from localrun.hub.resolve import resolve

LOW_MEMORY = 2 << 30
LOW_DISK = 1 << 30  # a small model, or the cache of some chats


def doctor(json: JsonSwitch = False) -> int:
    """Check backends, instruction sets, memory, folders and the default model, with advice where something fails."""
    try:
        read_settings()
        findings = examine()
        findings["problems"] += [{"what": what, "hint": hint} for what, hint in unknown_settings()]
    except UsageError as error:
        with settings_aside():
            findings = examine()
        problem = {"what": error.message, "hint": f"{error.hint}; the report below ignores all settings"}
        findings["problems"].insert(0, problem)
    if json:
        write_json(findings)
        return 0
    backends = findings["backends"].items()
    write_table(
        [(name, "ready" if row["available"] else "-", row["summary"] or row["reason"]) for name, row in backends]
    )
    machine = findings["machine"]
    limit = machine["memory_limit"] and f", under {machine['memory_limit']}"
    write(
        f"\n{machine['cpu']}, {machine['threads']} threads, {gib(machine['memory'])} of memory"
        f" ({gib(machine['memory_available'])} free{limit})\n"
        f"{machine['read_gbps']} GB/s read, {machine['gmacs']:.0f} G multiply-adds/s"
        f"{'' if machine['measured_idle'] else ', measured while other programs were busy'}\n"
        f"Python {machine['python']}, PyTorch {machine['torch']}, {machine['platform']}\n"
        f"default model: {findings['model']['name']}, chat template: {findings['model']['template']}\n"
    )
    if findings["model"]["elsewhere"]:
        write(f"{findings['model']['elsewhere']}\n")
    for problem in findings["problems"]:
        write_table([("! " + problem["what"],), ("  " + problem["hint"],)])
    if not findings["problems"]:
        write("\nNothing is missing.\n")
    return 0


def examine() -> dict[str, Any]:
    """The fields of `doctor --json`."""
    backends, machine, model = _backends(), _machine(), _model()
    problems = [
        *(problem for backend in backends.values() for problem in backend.pop("problems")),
        *_folder_problems(),
        *_space_problems(),
        *_memory_problem(machine["memory_available"]),
        *model.pop("problems"),
    ]
    return {"backends": backends, "machine": machine, "model": model, "problems": problems}


def _backends() -> dict[str, dict[str, Any]]:
    from localrun.backends.registry import BACKENDS

    return {name: _backend(backend) for name, backend in BACKENDS.items()}


def _backend(backend: Backend) -> dict[str, Any]:
    missing = backend.why_unavailable()
    reason = missing or backend.self_test()
    fault = f"the {backend.name} backend is not used" if reason and not missing else backend.degraded_reason()
    return {
        "available": not reason,
        "reason": reason,
        "summary": "" if reason else backend.summary(),
        **backend.details(),
        "problems": [{"what": fault, "hint": reason or backend.note}] if fault else [],
    }


def _machine() -> dict[str, Any]:
    import torch

    from localrun.base.machine import memory
    from localrun.base.processors import cpu_name, usual_threads
    from localrun.fit.machine_rates import machine_rates

    now, rates = memory(), machine_rates(refresh=True)
    return {
        "platform": platform.platform(),
        "cpu": cpu_name(),
        "threads": usual_threads(),
        "memory": now.total,
        "memory_available": now.available,
        "memory_limit": now.limit,
        "read_gbps": round(rates.read_bytes / 1e9, 1),
        "gmacs": round(rates.macs / 1e9, 1),
        "measured_idle": rates.idle,
        "python": platform.python_version(),
        "torch": torch.__version__,
    }


def _model() -> dict[str, Any]:
    """Check that the default model exists, opens, and has a chat template that renders; and where it is computed."""
    from localrun.fit.fastest import why_not_usual
    from localrun.formats.detect import open_model_file
    from localrun.model.headers import read_config
    from localrun.model.recording import record_shapes
    from localrun.text.load_text import load_text

    name = read_settings().model or BUILTIN
    try:
        stored = resolve(name)
        source = open_model_file(stored.path)
        text, elsewhere = load_text(source), why_not_usual(record_shapes(read_config(source)))
    except LocalrunError as error:
        problem = {"what": f"the default model: {error.message}", "hint": error.hint}
        return {"name": name, "path": None, "template": None, "elsewhere": "", "problems": [problem]}
    notes = [{"what": note, "hint": "another file of this model may have what is missing"} for note in text.notes]
    template = "ok" if not notes else "see below"
    return {"name": name, "path": str(stored.path), "template": template, "elsewhere": elsewhere, "problems": notes}


def _folder_problems() -> list[dict[str, str]]:
    kinds: tuple[FolderKind, ...] = get_args(FolderKind)
    hint = "set LOCALRUN_HOME to a folder you can write to"
    return [{"what": what_is_not_kept(kind), "hint": hint} for kind in kinds if writable_folder(kind) is None]


def _space_problems() -> list[dict[str, str]]:
    """Disks that are full, each named once, by the first folder on it."""
    places = [("models", hub_cache()), *((kind, folder(kind)) for kind in get_args(FolderKind))]
    found: dict[int, dict[str, str]] = {}
    for kind, place in places:
        there = next((path for path in (place, *place.parents) if path.is_dir()), None) if place else None
        with suppress(OSError):
            if there is not None and (free := shutil.disk_usage(there).free) < LOW_DISK:
                what = f"only {gib(free)} of disk is free for {kind} ({place})"
                hint = "free some space: `localrun cache` and `localrun list` show what localrun keeps"
                found.setdefault(there.stat().st_dev, {"what": what, "hint": hint})
    return list(found.values())


def _memory_problem(available: int) -> list[dict[str, str]]:
    if available >= LOW_MEMORY:
        return []
    return [{"what": f"only {gib(available)} of memory is free", "hint": "close other programs, or use a small model"}]
