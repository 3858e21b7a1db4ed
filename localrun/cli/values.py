"""Checks of what is typed, for values whose check is ours or that need none, and what the help calls values.

Typer has pydantic check everything, and importing that takes as long as most of a command line does.
"""

from typing import Any

from typer import core
from typer._coercion import RuntimeParam, TypeDescriptor, build_runtime_param

_PLAIN = {str: str, list[str]: str, bool: bool}


class _OwnCheck(RuntimeParam):
    """The parser of an option, or a text or a switch as it is; None, for what was not typed, stays None."""

    def _coerce_value(self, value: Any, param: Any, ctx: Any) -> Any:
        parse = self.parameter_info.parser or _PLAIN[self.annotation]
        return [parse(one) for one in value] if isinstance(value, list | tuple) else parse(value)


def _check_of(descriptor: TypeDescriptor) -> RuntimeParam:
    if descriptor.parameter_info.parser or descriptor.annotation in _PLAIN:
        return _OwnCheck(descriptor.parameter_info, descriptor.annotation)
    return build_runtime_param(descriptor)


def _own_words(parameter: core.TyperArgument | core.TyperOption, ctx: object) -> str | None:
    """The value of an option in the help, by our word for it, and no name of a Python type."""
    return parameter.metavar if isinstance(parameter, core.TyperOption) and parameter.metavar else None


def _usage(parameter: core.TyperArgument, ctx: object) -> list[str]:
    """An argument in the line that shows the call: as we write it, brackets where it may be left out."""
    return [parameter.display_name_raw]


def use_own_checks() -> None:
    """From now on, in all that typer parses and tells of."""
    core.build_runtime_param = _check_of  # type: ignore[attr-defined]
    core.TyperArgument.get_usage_pieces = _usage  # type: ignore[method-assign, assignment]
    for kind in (core.TyperArgument, core.TyperOption):
        kind.display_type_rich = _own_words  # type: ignore[method-assign, assignment]
