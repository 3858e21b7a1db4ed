"""Arguments of a call, checked against the schema of a built-in tool before it runs."""

import json
from typing import Any

from localrun.base.request import Json
from localrun.tools.running_call import ToolError

_KINDS: dict[str, type | tuple[type, ...]] = {"string": str, "integer": int, "number": (int, float), "boolean": bool}
MAX_ARGUMENTS = 4 << 20  # characters


def parse_arguments(text: str) -> Json:
    """Parse the arguments that a model wrote. Raises ToolError for anything but a JSON object."""
    if len(text) > MAX_ARGUMENTS:
        raise ToolError(f"the arguments have {len(text):,} characters; {MAX_ARGUMENTS:,} are the most")
    try:
        arguments = json.loads(text) if text.strip() else {}
    except (ValueError, RecursionError) as error:
        raise ToolError(f"the arguments are not JSON: {error}") from None
    if not isinstance(arguments, dict):
        raise ToolError("the arguments are not a JSON object")
    return arguments


def check_arguments(parameters: Json, arguments: Json) -> Json:
    """Check the arguments of a tool whose parameters are plain values, and fill in defaults.

    Raises ToolError that says which argument is wrong, and what it should be.
    """
    known: dict[str, Json] = parameters["properties"]
    if strange := sorted(arguments.keys() - known.keys()):
        raise ToolError(f"there is no argument {strange[0]!r}: {', '.join(known) or 'none'} is what the tool takes")
    checked: Json = {}
    for name, schema in known.items():
        if arguments.get(name) is not None:
            checked[name] = _checked(name, schema, arguments[name])
        elif name in parameters.get("required", ()):
            raise ToolError(f"the argument {name!r} is missing: {schema['description']}")
        elif "default" in schema:
            checked[name] = schema["default"]
    return checked


def _checked(name: str, schema: Json, value: Any) -> Any:
    kind = schema["type"]
    if kind == "integer" and isinstance(value, str) and value.strip().lstrip("-").isdecimal() and len(value) < 20:
        value = int(value)  # as small models write numbers
    if not isinstance(value, _KINDS[kind]) or (isinstance(value, bool) and kind != "boolean"):
        raise ToolError(f"the argument {name!r} has to be of type {kind}")
    if isinstance(value, str) and "\0" in value:
        raise ToolError(f"the argument {name!r} has a NUL character in it")
    low, high = schema.get("minimum"), schema.get("maximum")
    if (low is not None and value < low) or (high is not None and value > high):
        raise ToolError(f"the argument {name!r} is {value}; it has to be from {low} to {high}")
    return value
