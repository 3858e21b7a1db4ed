"""Names and sizes: one type a name, so that a search ends at its first hit; files and functions that can be read."""

import ast
from collections import defaultdict
from collections.abc import Iterator

from localrun_testing import REPOSITORY

from localrun.backends.cpu.abi import AnyOp

ROOMS = ("localrun", "tui")
MAX_FILE_LINES = 300
MAX_FUNCTION_LINES = 60
ABI = {f"localrun/backends/cpu/{name}.py" for name in ("abi", "abi_recurrent", "abi_step", "abi_values")}
# Structures of the C ABI are called as what they are translated from, and are used as `abi.Name`.
MIRRORED = {kind.__name__ for _, kind, *_ in AnyOp._fields_} | {"Candidates", "Instruction", "Value"}


def modules() -> Iterator[tuple[str, ast.Module, int]]:
    """Path, syntax tree and number of lines of every module of the product."""
    for room in ROOMS:
        for path in sorted((REPOSITORY / room).rglob("*.py")):
            text = path.read_text("utf-8")
            yield path.relative_to(REPOSITORY).as_posix(), ast.parse(text), len(text.splitlines())


def public_types(tree: ast.Module) -> list[str]:
    """Classes and type aliases at the top of a module, without private ones and type variables."""
    names = [node.name for node in tree.body if isinstance(node, ast.ClassDef)]
    for node in tree.body:
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        if isinstance(target, ast.Name) and target.id != target.id.upper() and target.id[0].isupper():
            names += [] if is_type_variable(node) else [target.id]
    return [name for name in names if not name.startswith("_")]


def is_type_variable(node: ast.stmt) -> bool:
    value = getattr(node, "value", None)
    return isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "TypeVar"


def homonyms(found: Iterator[tuple[str, ast.Module, int]]) -> dict[str, list[str]]:
    """Names of types that more than one module has, with those modules."""
    places = defaultdict(list)
    for path, tree, _ in found:
        for name in public_types(tree):
            if not (path in ABI and name in MIRRORED):
                places[name].append(path)
    return {name: paths for name, paths in places.items() if len(paths) > 1}


def test_every_public_type_has_a_name_of_its_own() -> None:
    assert homonyms(modules()) == {}, "say of what it is: DownloadProgress, not Progress"


def test_homonyms_are_noticed() -> None:
    sources = {
        "a.py": "class Box: ...\nclass Lid: ...\nT = TypeVar('T')",
        "b.py": "Box = int | str\nKey: TypeAlias = int\nT = TypeVar('T')",
        "c.py": "Key = str\nLID = 1\nclass _Lid: ...",
    }
    found = ((path, ast.parse(source), 3) for path, source in sources.items())
    assert homonyms(found) == {"Box": ["a.py", "b.py"], "Key": ["b.py", "c.py"]}


def test_files_are_short() -> None:
    assert {path: lines for path, _, lines in modules() if lines > MAX_FILE_LINES} == {}


def test_functions_are_short() -> None:
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    long = [
        f"{path}:{node.lineno} {node.name}"
        for path, tree, _ in modules()
        for node in ast.walk(tree)
        if isinstance(node, functions) and (node.end_lineno or 0) - node.lineno >= MAX_FUNCTION_LINES
    ]
    assert long == []
