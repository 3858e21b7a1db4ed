"""What a start of the program does not spend time on, and what it says where it cannot be."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

COUNTED = """
import atexit, gc, runpy, sys
atexit.register(lambda: print(gc.get_stats()[0]["collections"], file=sys.stderr))
sys.argv = ["localrun", "tokenize", "hello"]
runpy.run_module("localrun", run_name="__main__")
"""


def test_a_start_hardly_looks_for_garbage() -> None:
    done = subprocess.run([sys.executable, "-c", COUNTED], capture_output=True, text=True, check=True)
    assert int(done.stderr.splitlines()[-1]) < 30  # as Python comes it is hundreds


ENDED = """
import atexit, gc, runpy, sys
atexit.register(lambda: print(len(gc.get_objects()), gc.get_freeze_count(), file=sys.stderr))
sys.argv = ["localrun", "tokenize", "hello"]
runpy.run_module("localrun", run_name="__main__")
"""


def test_an_end_leaves_garbage_to_the_system() -> None:
    done = subprocess.run([sys.executable, "-c", ENDED], capture_output=True, text=True, check=True)
    n_watched, n_frozen = map(int, done.stderr.splitlines()[-1].split())
    assert n_watched < 1000 < n_frozen


IMPORTED = """
import atexit, runpy, sys
written = []
sys.addaudithook(lambda event, given: written.append(0) if event == "compile" and given[1] == "<string>" else None)
atexit.register(lambda: print(len(written), *sys.modules, file=sys.stderr))
sys.argv = ["localrun", "run", "--no-stdin", "--max-tokens", "1", "hello"]
runpy.run_module("localrun", run_name="__main__")
"""
UNUSED = ("localrun.model.vision", "localrun.images", "localrun.formats.checkpoints", "PIL", "torch", "jinja2")


@pytest.fixture(scope="module")
def answered(tmp_path_factory: pytest.TempPathFactory) -> tuple[int, list[str]]:
    """What answering a text from a GGUF compiled of methods that Python writes, and imported."""
    environ = {**os.environ, "LOCALRUN_HOME": str(tmp_path_factory.mktemp("home"))}
    done = subprocess.run([sys.executable, "-c", IMPORTED], capture_output=True, text=True, env=environ, check=True)
    n_written, *imported = done.stderr.splitlines()[-1].split()
    return int(n_written), imported


def test_a_text_from_a_gguf_imports_nothing_of_images_and_checkpoints(answered: tuple[int, list[str]]) -> None:
    _, imported = answered
    assert "localrun.engine.load" in imported
    assert not [name for name in imported if name.startswith(UNUSED)]


def test_an_answer_compiles_only_methods_of_classes_that_it_uses(answered: tuple[int, list[str]]) -> None:
    n_written, _ = answered
    assert 0 < n_written < 900  # with those of all classes that are imported it is 1,800


APP = """
import localrun.__main__
import localrun.cli.open_app
localrun.cli.open_app.begins_app = lambda arguments: not arguments
localrun.__main__.main()
"""
BROKEN = {  # a package: its code, and what is said of it
    "textual": (
        "raise ImportError('no such name', name='textual.app')",
        "textual.app cannot be imported: ImportError: no",
    ),
    "rich": ("raise RuntimeError('two\\nlines')", "rich cannot be imported: RuntimeError: two lines"),
    "typer": ("x = 1", "localrun.cli.completion cannot be imported: AttributeError: module 'typer' has no"),
    "tokenizers": ("def (", "SyntaxError: invalid syntax (tokenizers.py, line 1)"),
    "numpy": ("raise OSError('libblas.so: cannot open')", "numpy cannot be imported: OSError: libblas.so: cannot open"),
}


@pytest.mark.parametrize(
    ("package", "arguments"),
    [
        *(("textual", ()), ("rich", ())),
        ("typer", ("run", "--json")),
        *(("tokenizers", arguments) for arguments in (("run", "hi"), ("tokenize", "hi"))),
        ("numpy", ("chat",)),
    ],
)
def test_a_broken_package_is_reported_in_one_line(package: str, arguments: tuple[str, ...], tmp_path: Path) -> None:
    code, told = BROKEN[package]
    (tmp_path / f"{package}.py").write_text(code)
    environ = {**os.environ, "PYTHONPATH": str(tmp_path), "LOCALRUN_HOME": str(tmp_path / "home")}
    called = [sys.executable, "-c", APP, *arguments]
    done = subprocess.run(called, capture_output=True, text=True, input="hi\n", env=environ, check=False)
    assert done.returncode == 1
    first, hint = done.stderr.splitlines()
    assert first.startswith("localrun: ")
    assert told in first
    assert "pip check" in hint
    assert ("--json" in arguments) == (told in done.stdout)
