"""Arithmetic: the text is parsed, and only numbers, operators and a few functions are computed."""

import ast
import math
import operator
from collections.abc import Callable
from typing import Any

from localrun.base.request import Json
from localrun.tools.running_call import RunningCall, ToolError, ToolResult
from localrun.tools.tool import Tool

MAX_CHARACTERS = 1000
MAX_BITS = 4096  # of a whole number on the way
MAX_DIGITS = 400  # that a number is rounded to
_MAX_DEPTH = 60
_TOO_LARGE = f"a number on the way has more than {MAX_BITS} bits"

Computed = int | float
_OPERATORS: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.UAdd: operator.pos,
    ast.USub: operator.neg,
}
_CONSTANTS = {"pi": math.pi, "e": math.e, "tau": math.tau}
_FUNCTIONS: dict[str, Callable[..., Computed]] = {
    **{name: getattr(math, name) for name in ("sqrt", "exp", "log", "log2", "log10", "sin", "cos", "tan")},
    **{name: getattr(math, name) for name in ("asin", "acos", "atan", "atan2", "hypot", "degrees", "radians")},
    **{name: getattr(math, name) for name in ("floor", "ceil", "gcd")},
    "abs": abs,
    "min": min,
    "max": max,
    "round": lambda value, digits=0: round(value, min(max(digits, -MAX_DIGITS), MAX_DIGITS) or None),
}


def calculate(expression: str) -> Computed:
    """The value of an expression such as `2 * (3 + sqrt(4)) ** 2`; `^` is a power, too. Raises ToolError."""
    if len(expression) > MAX_CHARACTERS:
        raise ToolError(f"the expression has {len(expression):,} characters; {MAX_CHARACTERS:,} are the most")
    try:
        tree = ast.parse(expression.replace("^", "**").strip(), mode="eval")
        return _value(tree.body, 0)
    except ToolError:
        raise
    except (SyntaxError, RecursionError, MemoryError, TypeError, ValueError) as error:
        raise ToolError(f"this cannot be computed: {getattr(error, 'msg', None) or error}") from None
    except (OverflowError, ZeroDivisionError) as error:
        raise ToolError(f"{error}") from None


def _value(node: ast.AST, depth: int) -> Computed:
    if depth > _MAX_DEPTH:
        raise ToolError("the expression is nested too deeply")
    match node:
        case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
            return _bounded(value)
        case ast.Name(id=name) if name in _CONSTANTS:
            return _CONSTANTS[name]
        case ast.UnaryOp(op=op, operand=operand) if type(op) in _OPERATORS:
            return _bounded(_OPERATORS[type(op)](_value(operand, depth + 1)))
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            return _bounded(_power(_value(left, depth + 1), _value(right, depth + 1)))
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            return _bounded(_OPERATORS[type(op)](_value(left, depth + 1), _value(right, depth + 1)))
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if name in _FUNCTIONS:
            return _bounded(_FUNCTIONS[name](*(_value(one, depth + 1) for one in arguments)))
    raise ToolError("only numbers, + - * / // % ** and these are computed", ", ".join([*_CONSTANTS, *_FUNCTIONS]))


def _power(base: Computed, exponent: Computed) -> Computed:
    if isinstance(base, int) and isinstance(exponent, int) and exponent * base.bit_length() > 2 * MAX_BITS:
        raise ToolError(_TOO_LARGE)
    value = base**exponent
    if isinstance(value, complex):
        raise ToolError("the result is not a real number")
    return value


def _bounded(value: Computed) -> Computed:
    if isinstance(value, int) and value.bit_length() > MAX_BITS:
        raise ToolError(_TOO_LARGE)
    return value


def _run(arguments: Json, call: RunningCall) -> ToolResult:
    return call.result(f"{calculate(arguments['expression'])}")


CALCULATOR = Tool(
    "calculator",
    "Compute an arithmetic expression exactly. Use it for every calculation.",
    {
        "type": "object",
        "properties": {
            "expression": {"type": "string", "description": "such as 12.5 * (3 + 4) ** 2, with sqrt, log, sin, …"}
        },
        "required": ["expression"],
    },
    _run,
    asks="never",
)
