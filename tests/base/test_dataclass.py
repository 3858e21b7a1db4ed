"""`dataclass` beside Python's own: the same methods, the same words, and nothing compiled before the first call."""

import copy
import dataclasses
import inspect
import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError, field, replace
from functools import partial
from typing import Any

import pytest

from localrun.base.dataclass import dataclass as late

MAKERS = (late, dataclasses.dataclass)
FORMS: list[dict[str, bool]] = [
    {},
    {"slots": True},
    {"eq": False, "slots": True},
    {"kw_only": True},
    {"frozen": True},
    {"frozen": True, "kw_only": True},
    {"frozen": True, "slots": True},
    {"frozen": True, "eq": False, "slots": True},
]
CALLS: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
    ((), {}),
    ((1,), {}),
    ((1, "x"), {}),
    ((), {"number": 1, "rows": [4]}),
    ((1, "x", [], 2), {}),
    ((1,), {"number": 2}),
    ((1,), {"other": 2}),
]


def made(make: Callable[..., Any], form: dict[str, bool]) -> Any:
    """A class with a default, a factory, a field that is not compared, and one that is not asked for."""

    class Sample:
        """A sample."""

        number: int
        word: str = "none"
        rows: list[int] = field(default_factory=list, compare=False, repr=False)
        doubled: int = field(init=False, default=0)
        level: int = field(init=False, default=7, repr=False)
        seen: list[int] = field(init=False, default_factory=list, repr=False)
        last: int = field(init=False, repr=False, compare=False)

        def __post_init__(self) -> None:
            object.__setattr__(self, "doubled", 2 * self.number)
            object.__setattr__(self, "last", self.level + len(self.seen))

    return make(Sample, **form)


def told(do: Callable[[], object]) -> object:
    """The result, or the error and its words."""
    try:
        return do()
    except Exception as error:
        return type(error), str(error)


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_a_class_behaves_as_one_of_python(form: dict[str, bool]) -> None:
    kinds = [made(make, form) for make in MAKERS]
    for values, named in CALLS:
        ours, theirs = (told(partial(kind, *values, **named)) for kind in kinds)
        assert repr(ours) == repr(theirs)
    ours, theirs = (behaviour(kind) for kind in kinds)
    assert ours == theirs


def behaviour(kind: Any) -> dict[str, object]:
    one, same, other = kind(number=1), kind(number=1, rows=[1]), kind(number=2)
    return {
        "equal": (one == same, one == other, one != other, one == 1, one == one),
        "hash": told(lambda: hash(one) == hash(same)) if kind.__eq__ is not object.__eq__ else hash(one) == hash(one),
        "assigned": told(lambda: setattr(kind(number=1), "number", 2)),
        "deleted": told(lambda: delattr(kind(number=1), "word")),
        "copied": (copy.copy(one).doubled, copy.deepcopy(same).rows, replace(one, number=3).doubled),
        "not asked for": (one.level, one.seen, one.seen is not same.seen, one.last),
        "matched": kind.__match_args__,
        "fields": [(entry.name, entry.type, entry.default) for entry in dataclasses.fields(kind)],
        "slots": "__dict__" in dir(one),
    }


def test_a_subclass_has_its_own_methods_and_may_have_attributes_that_are_no_fields() -> None:
    for make in MAKERS:
        base = made(make, {"frozen": True})

        class More(base):  # type: ignore[misc, valid-type]
            more: float = 0.5

        class Plain(base):  # type: ignore[misc, valid-type]
            def __repr__(self) -> str:
                return f"plain {super().__repr__()}"

        more = make(More, frozen=True)
        assert repr(more(1, more=2.0)).endswith("More(number=1, word='none', doubled=2, more=2.0)")
        assert more(1) != base(1)
        plain = Plain(1)
        plain.note = "kept"
        assert (plain.note, plain.doubled) == ("kept", 2)
        assert repr(plain).startswith("plain test_a_subclass")
        with pytest.raises(FrozenInstanceError, match="cannot assign to field 'number'"):
            plain.number = 2


@late(frozen=True, slots=True)
class Pair:
    left: int
    right: str = ""

    def __repr__(self) -> str:
        return "a pair"


def test_a_frozen_class_with_slots_is_pickled_and_keeps_methods_of_its_own() -> None:
    pair = Pair(1, "x")
    assert pickle.loads(pickle.dumps(pair)) == pair
    assert hash(pickle.loads(pickle.dumps(pair))) == hash(pair)
    assert repr(pair) == "a pair"


def test_a_method_is_compiled_when_it_is_first_looked_up() -> None:
    kind = made(late, {"frozen": True})
    later = {name: vars(kind)[name] for name in ("__init__", "__repr__", "__eq__", "__hash__")}
    assert not any(callable(method) for method in later.values())
    one = kind(1)
    assert {name for name, method in later.items() if vars(kind)[name] is not method} == {"__init__"}
    compiled = kind.__init__
    assert compiled.__qualname__ == f"{kind.__qualname__}.__init__"
    assert one == kind(1)
    assert kind.__init__ is compiled


def test_a_signature_is_that_of_python() -> None:
    ours, theirs = (str(inspect.signature(made(make, {"frozen": True}))) for make in MAKERS)
    assert ours == theirs
