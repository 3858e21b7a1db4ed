"""Checks of typed values without pydantic, and the names of values in the help.

Typer checks every value with pydantic, whose import takes as long as most of a command.
"""

from collections.abc import Callable
from typing import Any, get_origin

from typer import core
from typer._coercion import RuntimeParam, TypeDescriptor, build_runtime_param

_PLAIN = {str: str, list[str]: str, tuple[str, str]: str, bool: bool}
_WHOLE = (int, list[int])


class _OwnCheck(RuntimeParam):
    """The parser of an option, or a text or switch unchanged; None, for an option that was not typed, stays None."""

    def _coerce_value(self, value: Any, param: Any, ctx: Any) -> Any:
        return _each(self.parameter_info.parser or _PLAIN[self.annotation], value, self.annotation)


class _NumberCheck(RuntimeParam):
    """Whole numbers in plain digits and within limits; anything else goes to typer, which knows what to say of it."""

    def _coerce_value(self, value: Any, param: Any, ctx: Any) -> Any:
        if all(map(self._is_plain, value if isinstance(value, list | tuple) else [value])):
            return _each(int, value, self.annotation)
        of_typer = build_runtime_param(TypeDescriptor(self.annotation, self.parameter_info, None))
        return of_typer.coerce(value, param, ctx)

    def _is_plain(self, value: int | str) -> bool:
        if isinstance(value, str) and not (value.isascii() and value.isdecimal()):
            return False
        least, most = self.parameter_info.min, self.parameter_info.max
        return (least is None or least <= int(value)) and (most is None or int(value) <= most)


def _each(parse: Callable[[Any], Any], value: Any, annotation: Any) -> Any:
    """Parse what was typed, one by one where an option takes several."""
    if not isinstance(value, list | tuple):
        return parse(value)
    parsed = map(parse, value)
    return tuple(parsed) if get_origin(annotation) is tuple else list(parsed)


def _check_of(descriptor: TypeDescriptor) -> RuntimeParam:
    if descriptor.parameter_info.parser or descriptor.annotation in _PLAIN:
        return _OwnCheck(descriptor.parameter_info, descriptor.annotation)
    if descriptor.annotation in _WHOLE:
        return _NumberCheck(descriptor.parameter_info, descriptor.annotation)
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
