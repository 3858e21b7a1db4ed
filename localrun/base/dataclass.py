"""`dataclass` with methods that are compiled when they are first looked up.

Python's own compiles up to six methods of a class while its module is imported. That took a third of the imports of a
start, in which most classes have no instance.
"""

import dataclasses
from collections.abc import Callable
from copy import copy
from dataclasses import MISSING, Field, FrozenInstanceError, fields
from types import FunctionType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(kind=None, /, *, eq=True, frozen=False, slots=False, **form):
        """Make a dataclass with the parameters of `dataclasses.dataclass`, of which init, repr, order and unsafe_hash
        cannot be given."""
        if kind is None:
            return lambda kind: dataclass(kind, eq=eq, frozen=frozen, slots=slots, **form)
        written = vars(kind).keys() & METHODS
        kind = dataclasses.dataclass(kind, init=False, repr=False, eq=False, slots=slots, **form)
        for name, method in _methods(kind, eq, frozen, slots).items():
            if name not in written:
                setattr(kind, name, method)
        return kind


METHODS = {"__init__", "__repr__", "__eq__", "__hash__"}


def _methods(kind: type[Any], eq: bool, frozen: bool, slots: bool) -> dict[str, object]:
    """The methods that such a dataclass has: those compiled later, and those that are alike for all classes."""
    later = {"__init__", "__repr__"} | ({"__eq__"} if eq else set()) | ({"__hash__"} if eq and frozen else set())
    methods: dict[str, object] = {name: _CompiledLater(kind, name, frozen) for name in later}
    if eq and not frozen:
        methods["__hash__"] = None
    if frozen:
        methods |= _refusals(kind)
    if frozen and slots:  # copied and pickled without a change of a field
        methods |= {"__getstate__": _state, "__setstate__": _set_state}
    return methods


class _CompiledLater:
    """A method that is compiled, and takes this place, when it is first looked up."""

    __slots__ = ("_frozen", "_kind", "_name")

    def __init__(self, kind: type[Any], name: str, frozen: bool) -> None:
        self._kind, self._name, self._frozen = kind, name, frozen

    def __get__(self, instance: object, owner: type[Any]) -> Any:
        method = _init(self._kind, self._frozen) if self._name == "__init__" else self._compiled()
        setattr(self._kind, self._name, method)
        return method.__get__(instance, owner)

    def _compiled(self) -> FunctionType:
        """The method as Python compiles it, for a class of the same fields."""
        kind, name = self._kind, self._name
        space: dict[str, Any] = {field.name: copy(field) for field in fields(kind)}
        space["__annotations__"] = {field.name: field.type for field in fields(kind)}
        space |= {"__module__": kind.__module__, "__qualname__": kind.__qualname__, "__doc__": kind.__doc__}
        same: type[Any] = dataclasses.dataclass(
            type(kind.__name__, (), space),
            init=False,
            repr=name == "__repr__",
            eq=name == "__eq__",
            unsafe_hash=name == "__hash__",
            match_args=False,
        )
        method: FunctionType = getattr(same, name)
        return method


class _Factory:
    """Stands for an argument that was not given, of a field that makes its value."""

    def __repr__(self) -> str:
        return "<factory>"


def _init(kind: type[Any], frozen: bool) -> FunctionType:
    """`__init__` as Python compiles it, in a quarter of the time: no annotation is evaluated for it, and no refusal
    compiled beside it."""
    space: dict[str, Any] = {"__name__": kind.__module__, "_factory": _Factory(), "_set": object.__setattr__}
    by_place, by_name, lines = ["self"], ["*"], ["pass"]
    for entry in fields(kind):
        space |= {f"_default_{entry.name}": entry.default, f"_make_{entry.name}": entry.default_factory}
        if entry.init:
            (by_name if entry.kw_only else by_place).append(_parameter(entry))
        if value := _value(entry):
            lines.append(f"_set(self, {entry.name!r}, {value})" if frozen else f"self.{entry.name} = {value}")
    if hasattr(kind, "__post_init__"):
        lines.append("self.__post_init__()")
    parameters = ", ".join([*by_place, *(by_name if len(by_name) > 1 else [])])
    exec(f"def __init__({parameters}):\n  " + "\n  ".join(lines), space)
    method: FunctionType = space["__init__"]
    method.__qualname__ = f"{kind.__qualname__}.__init__"
    method.__annotations__ = {entry.name: entry.type for entry in fields(kind) if entry.init} | {"return": None}
    return method


def _parameter(entry: Field[Any]) -> str:
    """The parameter of a field, with its default."""
    if entry.default_factory is not MISSING:
        return f"{entry.name}=_factory"
    return entry.name if entry.default is MISSING else f"{entry.name}=_default_{entry.name}"


def _value(entry: Field[Any]) -> str:
    """The value of a field; empty for one that only `__post_init__` sets."""
    if entry.default_factory is not MISSING:
        made = f"_make_{entry.name}()"
        return f"{made} if {entry.name} is _factory else {entry.name}" if entry.init else made
    if entry.init:
        return entry.name
    return "" if entry.default is MISSING else f"_default_{entry.name}"


def _refusals(kind: type[Any]) -> dict[str, Callable[..., None]]:
    """Methods that change no field, and let a subclass have other attributes."""

    def set_attribute(self: object, name: str, value: object) -> None:
        if type(self) is kind or name in kind.__dataclass_fields__:
            raise FrozenInstanceError(f"cannot assign to field {name!r}")
        super(kind, self).__setattr__(name, value)

    def delete_attribute(self: object, name: str) -> None:
        if type(self) is kind or name in kind.__dataclass_fields__:
            raise FrozenInstanceError(f"cannot delete field {name!r}")
        super(kind, self).__delattr__(name)

    return {"__setattr__": set_attribute, "__delattr__": delete_attribute}


def _state(self: Any) -> list[Any]:
    return [getattr(self, field.name) for field in fields(self)]


def _set_state(self: Any, state: list[Any]) -> None:
    for field, value in zip(fields(self), state, strict=True):
        object.__setattr__(self, field.name, value)
