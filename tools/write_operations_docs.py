"""Write docs/operations.md from the instructions of localrun/ops and what the backends say of them."""

import inspect
import re
from dataclasses import MISSING, Field, fields
from typing import Any, Literal, get_args, get_origin, get_type_hints

from localrun.backends.registry import BACKENDS
from localrun.ops.instructions import INSTRUCTIONS, Experts, Router, SharedExpert
from localrun.ops.types import Routing
from tools import ROOT

PAGE = ROOT / "docs" / "operations.md"
COMMENT = re.compile(r"^    (\w+): .*  # (.*)$", re.MULTILINE)  # of a field, behind it
PARTS = (Router, Routing, Experts, SharedExpert)
HEAD = """# Operations

A step of a model is a list of these. The decoder asks a recorder for them once; a backend executes the list, or
translates it into a program of its own. An operation without a kernel is computed by torch: by the reference
operations, which define what is correct. A backend's `why_not` says which models it refuses.

R is the number of rows, one for each token of the step; L is the number of those that want logits. A `Value` is what
an earlier operation gave. A `Packed` is a matrix in the backend's layout, a `Vector` f32 numbers, a `LinearWeight` a
matrix [n_out, n_in] with its bias [n_out] or None and the scale of its products.

This page is made by `python -m tools.write_operations_docs` from `instructions.py`, `recurrent.py`, `latent.py` and
`encoder.py` in `localrun/ops`; change those.

| operation | kernels | torch |
|---|---|---|
"""


def page() -> str:
    """The whole page."""
    sections = (*map(operation, INSTRUCTIONS), *map(part, PARTS))
    return HEAD + "".join(overview(cls.name) for cls in INSTRUCTIONS) + "".join(f"\n{text}" for text in sections)


def overview(name: str) -> str:
    """The table row of an operation: the backends with a kernel for it, and those where torch computes it."""
    kernels = ", ".join(backend for backend in BACKENDS if name in BACKENDS[backend].kernels)
    torch = ", ".join(backend for backend in BACKENDS if name not in BACKENDS[backend].kernels)
    return f"| [{name}](#{name}) | {kernels} | {torch} |\n"


def operation(cls: type[Any]) -> str:
    """The section of an operation. Its docstring is: what it computes -> its results. More about it."""
    what, arrow, rest = inspect.cleandoc(cls.__doc__ or "").partition("->")
    assert arrow, f"the docstring of {cls.__name__} does not say what it gives"
    results, _, more = rest.partition(".")
    return section(cls.name, f"{what.strip()}.\n\nResults: {results.strip()}.\n\n{more.strip()}", cls)


def part(cls: type[Any]) -> str:
    """The section of something that operands are made of."""
    return section(cls.__name__, inspect.cleandoc(cls.__doc__ or ""), cls)


def section(title: str, text: str, cls: type[Any]) -> str:
    types, comments = get_type_hints(cls), dict(COMMENT.findall(inspect.getsource(cls)))
    rows = (
        f"| `{f.name}` | {kind(types[f.name], str(f.type))} | {default(f)} | {comments.get(f.name, '')} |\n"
        for f in fields(cls)
    )
    return f"## {title}\n\n{text.strip()}\n\n| operand | type | default | |\n|---|---|---|---|\n{''.join(rows)}"


def kind(declared: Any, annotation: str) -> str:
    """A type as people read it: choices by name, parts by a link to their section."""
    if get_origin(declared) is Literal:
        return " or ".join(f"`{choice!r}`".replace("'", '"') for choice in get_args(declared))
    links = {cls.__name__: f"[{cls.__name__}](#{cls.__name__.lower()})" for cls in PARTS}
    return " or ".join(links.get(name, f"`{name}`") for name in annotation.split(" | "))


def default(field: Field[Any]) -> str:
    return "" if field.default is MISSING else f"`{field.default!r}`".replace("'", '"')


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
