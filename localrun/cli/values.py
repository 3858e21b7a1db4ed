"""Checks of typed values without pydantic, and the names of values in the help.

Typer checks every value with pydantic, whose import takes as long as most of a command.
"""

from typing import Any

from typer import core
from typer._coercion import RuntimeParam, TypeDescriptor, build_runtime_param

_PLAIN = {str: str, list[str]: str, bool: bool}


class _OwnCheck(RuntimeParam):
    """The parser of an option, or a text or switch unchanged; None, for an option that was not typed, stays None."""

    def _coerce_value(self, value: Any, param: Any, ctx: Any) -> Any:
        parse = self.parameter_info.parser or _PLAIN[self.annotation]
        return [parse(one) for one in value] if isinstance(value, list | tuple) else parse(value)


def _check_of(descriptor: TypeDescriptor) -> RuntimeParam:
    if descriptor.parameter_info.parser or descriptor.annotation in _PLAIN:
        return _OwnCheck(descriptor.parameter_info, descriptor.annotation)
    return build_runtime_param(descriptor)


def _own_words(parameter: core.TyperArgument | core.TyperOption, ctx: object) -> str | None:
    """The metavar of an option as its type in the help, instead of the name of a Python type."""
    return parameter.metavar if isinstance(parameter, core.TyperOption) and parameter.metavar else None


def _usage(parameter: core.TyperArgument, ctx: object) -> list[str]:
    """An argument in the usage line, as written here: brackets where it may be left out."""
    return [parameter.display_name_raw]


def use_own_checks() -> None:
    """Install these checks and names in typer, for all that is parsed from now on."""
    core.build_runtime_param = _check_of  # type: ignore[attr-defined]
    core.TyperArgument.get_usage_pieces = _usage  # type: ignore[method-assign, assignment]
    for kind in (core.TyperArgument, core.TyperOption):
        kind.display_type_rich = _own_words  # type: ignore[method-assign, assignment]
