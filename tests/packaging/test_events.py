"""An event of an engine is handled wherever events are: a new kind is a type error until it is."""

import ast
from collections.abc import Iterator

from localrun_testing.product import sources

HOMES = ("localrun.base.events", "localrun.base.tool_events")  # of the types of events


def takers(tree: ast.Module) -> Iterator[ast.FunctionDef]:
    """Functions that are given one event of `localrun.base.events`, or of an answer with tools."""
    imported = {
        name.asname or name.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module in HOMES
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
    texts = ((path.name, path.read_text("utf-8")) for _, path in sources())
    naming = ((name, text) for name, text in texts if any(home in text for home in HOMES))
    found = [(name, function) for name, text in naming for function in takers(ast.parse(text))]
    assert {name for name, _ in found} >= {"turn.py", "output.py"}, "the search finds nothing any more"
    assert not [f"{name}: {function.name}" for name, function in found if not is_exhaustive(function)]
