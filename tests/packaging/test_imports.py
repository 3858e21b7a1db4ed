"""The house: imports point down its list only, and nearly all of it imports where torch is not."""

import os
import subprocess
import sys
from collections.abc import Iterable
from graphlib import CycleError, TopologicalSorter
from itertools import starmap
from pathlib import Path

import pytest
from localrun_testing import REPOSITORY
from localrun_testing.product import Module, module_of, modules, sources

# From the top down; two rooms on one level do not import each other.
LEVELS = (
    ("localrun.__main__",),
    ("localrun.cli",),
    ("localrun_tui",),
    ("localrun.server",),
    ("localrun.client",),
    ("localrun.diagnose",),
    ("localrun.tools",),
    ("localrun.chat",),
    ("localrun.hub",),
    ("localrun.engine",),
    ("localrun.fit",),
    ("localrun.backends.registry",),
    ("localrun.backends.cuda", "localrun.backends.metal"),
    ("localrun.backends.gpu",),  # falls back on the reference
    ("localrun.backends.cpu", "localrun.backends.reference"),
    ("localrun.backends",),
    ("localrun.model",),
    ("localrun.storage",),
    ("localrun.cache",),
    ("localrun.ops",),
    ("localrun.text",),
    ("localrun.formats",),
    ("localrun.images",),
    ("localrun.base",),
)
LEVEL_OF = {room: len(LEVELS) - number for number, rooms in enumerate(LEVELS) for room in rooms}
BACKENDS = tuple(f"localrun.backends.{name}" for name in ("cpu", "cuda", "gpu", "metal", "reference"))
ROOT_MAY_IMPORT = {"localrun.base", "localrun.client"}  # the package root: version, and LLM lazily

# What is asked whether there is a GPU, and what fits it.
ASKED_OF_A_GPU = (
    *("__init__", "availability", "backend", "coverage", "device", "driver", "forms", "limits", "measured"),
    *("memory", "scratch", "system", "weight_layouts"),
)
NEEDS_TORCH = (  # the reference operations, and what compares with them; imported where one is used
    *(
        f"localrun.backends.reference.{name}"
        for name in (
            "attention",
            "delta_net",
            "encoder",
            "executor",
            "kv_codes",
            "logits",
            "moe",
            "ops",
            "pool",
            "rows",
            "selective_scan",
            "states",
        )
    ),
    *(
        f"localrun.backends.{name}.{path.stem}"
        for name in ("cuda", "gpu", "metal")
        for path in (REPOSITORY / "localrun" / "backends" / name).glob("*.py")
        if path.stem not in ASKED_OF_A_GPU
    ),
)


def room_of(module: str) -> str | None:
    """The innermost room a module stands in; None for the package root and for what is not ours."""
    rooms = [room for room in LEVEL_OF if module == room or module.startswith(room + ".")]
    return max(rooms, key=len, default=None)


def is_within(house: str, room: str | None) -> bool:
    return room is not None and (room == house or room.startswith(house + "."))


def offences(of: Module) -> list[str]:
    module, path, room = of.name, of.path, room_of(of.name)
    found = []
    for target, line in of.imports:
        other = room_of(target)
        if other is None or other == room:
            continue
        if is_within("localrun.backends", room) and other == "localrun.model":
            found.append(f"{path}:{line}: {module} may not import {target}: ask the recorded program, not the model")
        if other in BACKENDS and room not in BACKENDS and module != "localrun.backends.registry":
            found.append(f"{path}:{line}: {module} may not import a backend: ask localrun.backends.registry")
        allowed = other in ROOT_MAY_IMPORT if room is None else LEVEL_OF[other] < LEVEL_OF[room]
        if not allowed:
            found.append(f"{path}:{line}: {module} may not import {target}")
    return found


def test_imports_point_down_the_house() -> None:
    assert not [offence for module in modules() for offence in offences(module)]


def circle(among: Iterable[Module]) -> list[str]:
    """Modules each of which imports the next, and the last the first; inside functions and for types too."""
    graph, among = TopologicalSorter[str](), list(among)
    names = {module.name for module in among}
    for module in among:
        for target, _ in module.imports:
            found = next((name for name in (target, target.rpartition(".")[0]) if name in names), None)
            if found is not None and found != module.name:
                graph.add(module.name, found)
    try:
        graph.prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_no_modules_import_each_other_in_a_circle() -> None:
    packages = ("localrun", "localrun_tui")  # their roots hold versions, and names that are imported when asked for
    assert circle(module for module in modules() if module.name not in packages) == []


def test_a_circle_is_seen(tmp_path: Path) -> None:
    texts = {
        "r.a": "from . import b",
        "r.b": "def f():\n    from r.c import g",
        "r.c": "import r.a",
        "r.d": "import r.a",
    }
    files = {name: tmp_path / f"{name}.py" for name in texts}
    for name, text in texts.items():
        files[name].write_text(text)
    assert set(circle(starmap(module_of, files.items()))) == {"r.a", "r.b", "r.c"}
    files["r.c"].write_text("")
    assert circle(starmap(module_of, files.items())) == []


def test_every_module_stands_in_a_room() -> None:
    assert [module for module, _ in sources() if room_of(module) is None and module != "localrun"] == []


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("localrun.base.x", "from localrun.text import y"),
        ("localrun.text.x", "def f():\n    import localrun.backends.reference.ops"),
        ("localrun.ops.x", "from ..cache import blocks"),
        ("localrun.cache.x", "from localrun.model.config import LayerSpec"),
        ("localrun.ops.x", "from localrun import engine"),
        ("localrun.x", "import localrun.engine"),
        ("localrun.engine.x", "from localrun.backends.cpu.library import load_library"),
        ("localrun.backends.cpu.x", "from localrun.backends.reference import ops"),
        ("localrun.backends.x", "from localrun.model.config import ModelConfig"),
        ("localrun.backends.cuda.x", "def f():\n    import localrun.model.decoder"),
        ("localrun.backends.registry", "from localrun.model.recording import record_shapes"),
    ],
)
def test_an_upward_import_is_seen(module: str, source: str, tmp_path: Path) -> None:
    path = tmp_path / "x.py"
    path.write_text(source)
    if module == "localrun.x":
        module = "localrun"
    assert offences(module_of(module, path))


def test_what_does_not_need_torch_imports_without() -> None:
    names = [module for module, _ in sources() if module not in NEEDS_TORCH]
    code = f"""
import importlib, sys

sys.modules["torch"] = None
for name in {names!r}:
    try:
        importlib.import_module(name)
    except ImportError as error:
        print(name, "cannot be imported:", error)
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        cwd=REPOSITORY,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY / "tui")},
    )
    assert (done.stdout, done.stderr) == ("", "")


@pytest.mark.parametrize("module", ["localrun.backends.registry", "localrun.model.archs", "localrun.cli.app"])
def test_asking_what_would_run_takes_neither_torch_nor_numpy(module: str) -> None:
    code = f"import {module}, sys; print([name for name in ('torch', 'numpy') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=REPOSITORY)
    assert (done.stdout, done.stderr) == ("[]\n", "")


@pytest.mark.parametrize(
    ("module", "spared"),
    [
        ("localrun_tui.start", ("localrun.backends.registry", "numpy", "pathspec", "typer")),
        ("localrun_tui.screens.first_run", ("localrun.backends.registry", "localrun.model", "http.client")),
        ("localrun.hub.resolve", ("localrun.fit", "localrun.model", "http.client")),
        ("localrun.cli.list", ("localrun.hub.network.http", "http.client", "localrun.fit", "numpy")),
        ("localrun.hub.disk.obstacles", ("localrun.engine.tower", "numpy", "tokenizers")),
        ("localrun.cli.app", ("localrun.cli.run", "localrun.hub", "localrun.backends")),
        ("localrun.cli.run", ("localrun.hub.network.http", "localrun.fit.estimate", "localrun.diagnose.bench")),
        ("localrun.tools.mcp.servers", ("mcp", "httpx2", "pydantic", "asyncio")),
        (
            "localrun.client.local",
            ("torch", "importlib.metadata", "http.client", "jinja2", "localrun.formats.checkpoints"),
        ),
    ],
)
def test_what_a_start_does_not_need_is_not_imported_for_it(module: str, spared: tuple[str, ...]) -> None:
    code = f"import {module}, sys; print([name for name in {spared!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=REPOSITORY)
    assert (done.stdout, done.stderr) == ("[]\n", "")


TYPED = {"_LOCALRUN_COMPLETE": "complete_bash", "COMP_WORDS": "localrun config temp", "COMP_CWORD": "2"}


@pytest.mark.parametrize(
    ("arguments", "asked"),
    [(["--version"], {}), (["config"], {}), ([], TYPED)],
    ids=["--version", "config", "completing config"],
)
def test_quick_commands_import_no_others(arguments: list[str], asked: dict[str, str]) -> None:
    code = f"""
import contextlib, io, sys
from localrun.cli.app import run_command_line

with contextlib.redirect_stdout(io.StringIO()):
    code = run_command_line({arguments!r})
print(code, [name for name in ("localrun.cli.run", "localrun.hub.disk.library", "numpy") if name in sys.modules])"""
    environ = {**os.environ, **asked}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=REPOSITORY, env=environ)
    assert done.stdout == "0 []\n", done.stderr


@pytest.mark.parametrize(
    ("commands", "spared"),
    [
        (
            [
                *(
                    "--help",
                    "list",
                    "list --json",
                    "show --help",
                    "fit builtin --ctx 512",
                    "config",
                    "history list -n 5",
                ),
                *("search --help", "pull --help"),
            ],
            ["numpy", "tokenizers", "torch", "pydantic", "starlette", "uvicorn"],
        ),
        (
            ["show builtin"],
            ["tokenizers", "torch", "pydantic", "starlette", "uvicorn"],
        ),  # which looks for numbers that are none
    ],
    ids=["lists", "show"],
)
def test_commands_import_only_libraries_that_they_use(commands: list[str], spared: list[str]) -> None:
    code = f"""
import contextlib, io, sys
from localrun.cli.app import run_command_line

with contextlib.redirect_stdout(io.StringIO()):
    codes = [run_command_line(command.split()) for command in {commands!r}]
print(codes, [name for name in {spared!r} if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=REPOSITORY)
    assert done.stdout == f"{[0] * len(commands)} []\n", done.stderr
