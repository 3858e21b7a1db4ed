"""Constraints that cannot be compiled, or take too much, and what is said of them."""

from collections.abc import Iterator
from dataclasses import replace
from threading import Event
from typing import Any

import pytest
from localrun_testing.cache_engine import LLAMA, CacheCase
from localrun_testing.letters import answer, held, letter_constraints
from localrun_testing.small_model import finish, greedy, text
from localrun_testing.waiting import PATIENCE

from localrun.backends.cpu.library import load_library
from localrun.base.constraint import Constraint, check_constraint, of_schema
from localrun.base.errors import ConstraintError
from localrun.engine.constraints import Constraints, Grammar
from localrun.engine.sampler import SamplerSettings

NATIVE = load_library() is not None
CASE = CacheCase(LLAMA, "q8")
HOT = SamplerSettings(temperature=1.5, top_k=0, top_p=0.9, min_p=0.01, repeat_penalty=1.3, presence_penalty=0.5)


@pytest.fixture(scope="module")
def constraints() -> Iterator[Constraints]:
    made = letter_constraints()
    yield made
    made.close()


@pytest.mark.parametrize(
    ("constraint", "word"),
    [
        (of_schema({"type": "array", "uniqueItems": True}), "uniqueItems"),
        (of_schema({"type": "string", "pattern": "(?=a)b"}), "look-ahead"),
        (of_schema({"$ref": "#"}), "schema"),
        (of_schema({"$ref": "https://example.org/x"}), "example.org"),
        (Constraint("regex", "(a"), "regular expression"),
        (Constraint("lark", "start: nothing"), "nothing"),
        (of_schema({"allOf": [{"anyOf": [{"required": [f"{i}{j}"]} for j in range(9)]} for i in range(9)]}), "too"),
    ],
)
def test_what_cannot_be_held_to_is_named(constraints: Constraints, constraint: Constraint, word: str) -> None:
    with pytest.raises(ConstraintError, match=word):
        constraints.compile(constraint)


def test_lenient_leaves_out_and_says_so(constraints: Constraints) -> None:
    grammar = constraints.compile(of_schema({"type": "array", "uniqueItems": True}, is_lenient=True))
    assert [note for note in grammar.notes if "uniqueItems" in note] == list(grammar.notes) != []
    assert constraints.compile(of_schema({"type": "array"}, is_lenient=True)).notes == ()


def test_a_grammar_that_takes_too_much_ends_its_own_answer(constraints: Constraints) -> None:
    many = of_schema({"type": "object", "properties": {f"p{n}": {"type": "null"} for n in range(600)}})
    engine = CASE.engine(NATIVE)
    try:
        beside = engine.submit(greedy(text(30), 60))
        heavy = engine.submit(held(constraints, many, replace(greedy(text(40), 300), settings=HOT)))
        with pytest.raises(ConstraintError, match="too"):
            finish(heavy)
        assert finish(beside).stop_reason == "length"
    finally:
        engine.close()


def test_a_long_chain_of_references_is_followed(constraints: Constraints) -> None:
    """By recursion: on a usual stack that ends the process."""
    chain: dict[str, Any] = {f"d{n}": {"$ref": f"#/$defs/d{n + 1}"} for n in range(6000)}
    schema = of_schema({"$defs": {**chain, "d6000": {"enum": ["a"]}}, "$ref": "#/$defs/d0"})
    engine = CASE.engine(NATIVE)
    try:
        assert answer(engine.submit(held(constraints, schema, greedy(text(9))))) == '"a"'
    finally:
        engine.close()


def test_one_that_compiles_for_ever_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("localrun.engine.constraints.COMPILE_SECONDS", 0.01)
    stuck, compiled, go_on = letter_constraints(), Constraints._compile, Event()

    def compile_later(constraints: Constraints, constraint: Constraint) -> Grammar:
        assert go_on.wait(PATIENCE)
        return compiled(constraints, constraint)

    monkeypatch.setattr(Constraints, "_compile", compile_later)
    for _ in range(2):
        with pytest.raises(ConstraintError, match="seconds"):
            stuck.compile(Constraint("regex", "a"))
    go_on.set()
    monkeypatch.setattr("localrun.engine.constraints.COMPILE_SECONDS", PATIENCE)
    assert stuck.compile(Constraint("regex", "b")).notes == (), "others are compiled once it has ended"
    stuck.close()


@pytest.mark.parametrize("numbers", [(100_000_007,), (9973, 9967), (0.000_123_457,)])
def test_multiples_that_take_too_many_states_are_named(numbers: tuple[float, ...]) -> None:
    with pytest.raises(ConstraintError, match="multipleOf"):
        check_constraint(of_schema({"type": "number", "allOf": [{"multipleOf": number} for number in numbers]}))
