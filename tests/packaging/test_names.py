"""Names and sizes: one type a name, so that a search ends at its first hit; files and functions that can be read."""

import ast
from collections import defaultdict
from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

from localrun_testing import REPOSITORY

from localrun.backends.cpu.abi import AnyOp

ROOMS = ("localrun", "tui")
MAX_FILE_LINES = 300
MAX_FUNCTION_LINES = 60
ABI = {f"localrun/backends/cpu/{name}.py" for name in ("abi", "abi_recurrent", "abi_step", "abi_values")}
# Structures of the C ABI are called as what they are translated from, and are used as `abi.Name`.
MIRRORED = {kind.__name__ for _, kind, *_ in AnyOp._fields_} | {"Candidates", "Instruction", "Value"}


class Module(NamedTuple):
    """Facts about a module: its public types, and its functions by place and name with their lines."""

    path: str
    types: list[str]
    functions: dict[str, int]
    n_lines: int


def module_of(path: str, text: str) -> Module:
    tree = ast.parse(text)
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    functions = [node for node in ast.walk(tree) if isinstance(node, kinds)]
    lengths = {f"{path}:{one.lineno} {one.name}": (one.end_lineno or 0) - one.lineno + 1 for one in functions}
    return Module(path, public_types(tree), lengths, len(text.splitlines()))


@cache  # for all tests below: the product is parsed once
def modules() -> list[Module]:
    paths = [path for room in ROOMS for path in sorted((REPOSITORY / room).rglob("*.py"))]
    return [module_of(path.relative_to(REPOSITORY).as_posix(), path.read_text("utf-8")) for path in paths]


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


def homonyms(found: Iterable[Module]) -> dict[str, list[str]]:
    """Names of types that more than one module has, with those modules."""
    places = defaultdict(list)
    for module in found:
        for name in module.types:
            if not (module.path in ABI and name in MIRRORED):
                places[name].append(module.path)
    return {name: paths for name, paths in places.items() if len(paths) > 1}


def test_every_public_type_has_a_name_of_its_own() -> None:
    assert homonyms(modules()) == {}, "say of what it is: DownloadProgress, not Progress"


def test_homonyms_are_noticed() -> None:
    sources = {
        "a.py": "class Box: ...\nclass Lid: ...\nT = TypeVar('T')",
        "b.py": "Box = int | str\nKey: TypeAlias = int\nT = TypeVar('T')",
        "c.py": "Key = str\nLID = 1\nclass _Lid: ...",
    }
    found = (module_of(path, source) for path, source in sources.items())
    assert homonyms(found) == {"Box": ["a.py", "b.py"], "Key": ["b.py", "c.py"]}


def test_files_are_short() -> None:
    assert {one.path: one.n_lines for one in modules() if one.n_lines > MAX_FILE_LINES} == {}


def test_functions_are_short() -> None:
    lengths = {place: lines for module in modules() for place, lines in module.functions.items()}
    assert {place: lines for place, lines in lengths.items() if lines > MAX_FUNCTION_LINES} == {}
