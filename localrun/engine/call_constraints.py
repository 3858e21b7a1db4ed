"""Choice of the constraint on an answer: that of the request, or the schemas of its tools."""

import re
from collections.abc import Sequence

from localrun.base.errors import ConstraintError, ToolSchemaError
from localrun.base.request import Request
from localrun.engine.constraints import Constraints, Held
from localrun.text.tool_calls.held_tool import HeldTool
from localrun.text.tool_calls.request_tools import RequestTools

_COMPILING = "failed to compile JSON schema: "
_SHOWN_SOURCE = re.compile(r" \d+ \| ")  # lines of the grammar behind an error


def held_to(constraints: Constraints, request: Request) -> Held | None:
    """The constraint on the answer to a request; None for none.

    Required calls take precedence over a constraint on the answer. Raises ConstraintError.
    """
    tools = constraints.text.tools(request)
    if tools is not None and tools.may_call and (tools.must_call or request.constraint is None):
        return _held_calls(constraints, tools)
    if request.constraint is None:
        return None
    grammar = constraints.compile(request.constraint)
    return Held(grammar, grammar.notes)


def _held_calls(constraints: Constraints, tools: RequestTools) -> Held | None:
    """The constraint on calls.

    A schema that cannot be compiled leaves the arguments of its tool open, with a note.
    """
    held = tools.held
    try:
        return _compiled(constraints, tools, held)
    except ToolSchemaError:
        raise
    except ConstraintError:
        loosened = [_loosened(constraints, tools, tool) for tool in held]
        return _compiled(constraints, tools, loosened)


def _loosened(constraints: Constraints, tools: RequestTools, tool: HeldTool) -> HeldTool:
    """The tool, with any arguments where its schema cannot be compiled."""
    try:
        _compiled(constraints, tools, [tool])
    except ConstraintError as error:
        return tool.loose(_SHOWN_SOURCE.split(error.message.rpartition(_COMPILING)[2])[0])
    return tool


def _compiled(constraints: Constraints, tools: RequestTools, held: Sequence[HeldTool]) -> Held | None:
    calls = tools.calls(held)
    if calls is None:
        return None
    grammar = constraints.compile(calls.constraint)
    told = tuple(f"calls are not held to all of their tools' schemas: {warning}" for warning in grammar.warnings)
    return Held(grammar, (*calls.notes, *told), calls)
