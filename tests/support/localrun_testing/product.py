"""What tests of the house ask about the sources of the product, which are parsed once for all of them."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from localrun_testing import REPOSITORY

DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class Module(NamedTuple):
    """Facts about a module."""

    name: str
    path: str  # below the checkout
    imports: list[tuple[str, int]]  # every module it imports, inside functions too, with its line
    types: list[str]  # its public ones
    functions: dict[str, int]  # by place and name, with their lines
    docstrings: list[str]  # the first line of each
    n_lines: int


@cache
def modules() -> tuple[Module, ...]:
    """All modules of the product."""
    return tuple(module_of(name, path) for name, path in sources())


def sources() -> Iterator[tuple[str, Path]]:
    """Names of the modules of the product, and their files."""
    for root, package in ((REPOSITORY, "localrun"), (REPOSITORY / "tui", "localrun_tui")):
        for path in sorted((root / package).rglob("*.py")):
            parts = path.relative_to(root).with_suffix("").parts
            yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


def module_of(name: str, path: Path) -> Module:
    """Facts about a file."""
    text = path.read_text("utf-8")
    tree = ast.parse(text)
    nodes = list(ast.walk(tree))
    shown = path.relative_to(REPOSITORY).as_posix() if path.is_relative_to(REPOSITORY) else path.name
    functions = [node for node in nodes if isinstance(node, FUNCTIONS)]
    documents = (ast.get_docstring(node) for node in nodes if isinstance(node, DOCUMENTED))
    return Module(
        name,
        shown,
        list(imports_in(nodes, name if path.name == "__init__.py" else name.rpartition(".")[0])),
        public_types(tree),
        {f"{shown}:{one.lineno} {one.name}": (one.end_lineno or 0) - one.lineno + 1 for one in functions},
        [document.partition("\n")[0] for document in documents if document],
        len(text.splitlines()),
    )


def imports_in(nodes: list[ast.AST], package: str) -> Iterator[tuple[str, int]]:
    """Imports among these nodes of a module that stands in `package`."""
    parents = package.split(".") if package else []
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = parents[: len(parents) - node.level + 1] if node.level else []
            target = ".".join([*base, *([node.module] if node.module else [])])
            yield from ((f"{target}.{alias.name}", node.lineno) for alias in node.names)


def public_types(tree: ast.Module) -> list[str]:
    """Classes and type aliases at the top of a module, without private ones and type variables."""
    names = [node.name for node in tree.body if isinstance(node, ast.ClassDef)]
    for node in tree.body:
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        if isinstance(target, ast.Name) and target.id != target.id.upper() and target.id[0].isupper():
            names += [] if is_type_variable(node) else [target.id]
    return [name for name in names if not name.startswith("_")]


def is_type_variable(node: ast.stmt) -> bool:
    """Whether a name is given a type variable."""
    value = getattr(node, "value", None)
    return isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "TypeVar"
