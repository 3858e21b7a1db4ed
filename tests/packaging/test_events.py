"""An event of an engine is handled wherever events are: a new kind is a type error until it is."""

import ast
from collections.abc import Iterator

from localrun_testing import REPOSITORY

SOURCES = [path for room in ("localrun", "tui") for path in sorted((REPOSITORY / room).rglob("*.py"))]


def takers(tree: ast.Module) -> Iterator[ast.FunctionDef]:
    """Functions that are given one event of `localrun.base.events`, or of an answer with tools."""
    imported = {
        name.asname or name.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module in ("localrun.base.events", "localrun.base.tool_events")
        for name in node.names
        if name.name in ("Event", "TurnEvent")
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            given = [argument.annotation for argument in node.args.args]
            is_declared_only = isinstance(node.body[-1], ast.Expr)  # of a protocol: "..."
            if any(isinstance(kind, ast.Name) and kind.id in imported for kind in given) and not is_declared_only:
                yield node


def is_exhaustive(function: ast.FunctionDef) -> bool:
    """Whether a type checker has to see that no kind of event is left."""
    calls = [node.func for node in ast.walk(function) if isinstance(node, ast.Call)]
    return any(isinstance(called, ast.Name) and called.id == "assert_never" for called in calls)


def test_every_match_on_events_is_exhaustive() -> None:
    found = [
        (path.name, function) for path in SOURCES for function in takers(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert {name for name, _ in found} >= {"turn.py", "output.py"}, "the search finds nothing any more"
    assert not [f"{name}: {function.name}" for name, function in found if not is_exhaustive(function)]
