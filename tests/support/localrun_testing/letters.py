"""A vocabulary of letters, a token each, constraints on their texts, and all the texts that hold to these."""

import itertools
import json
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, cast

from localrun.base.constraint import Constraint, of_schema
from localrun.base.request import Request
from localrun.engine.constraints import Constraints, Held
from localrun.engine.generation import GenerationRequest
from localrun.engine.handle import GenerationHandle
from localrun.text.answer_start import AnswerStart
from localrun.text.marks import NO_MARKS
from localrun.text.model_text import ModelText
from localrun.text.tokenizer import Tokenizer
from localrun.text.tool_calls.held_calls import HeldCalls
from localrun_testing.small_model import finish

LETTERS = [chr(code) for code in range(32, 126)]  # a token each, so that a text has one spelling
TRIGGER, END = 94, 95


class LetterTokenizer:
    """Printable ASCII, a trigger, an end, and an id of padding beyond them."""

    eog_ids, control_ids, eos_id, bos_id = frozenset({END}), frozenset({TRIGGER, END}), END, None

    def piece(self, token_id: int) -> bytes:
        return LETTERS[token_id].encode() if token_id < TRIGGER else b""

    def encode(self, text: str) -> list[int]:
        return [LETTERS.index(letter) if letter in LETTERS else TRIGGER for letter in text]


class LetterText:
    """The text side of a model that thinks nothing."""

    tokenizer, special_ids = LetterTokenizer(), frozenset({TRIGGER, END})

    def answer_start(self, request: Request, prompt: Any, triggers: Any) -> AnswerStart:
        return AnswerStart(cast(Tokenizer, self.tokenizer), NO_MARKS, None)


@dataclass(frozen=True)
class Language:
    """A constraint, and every text that holds to it."""

    constraint: Constraint
    words: frozenset[str]


def words_of_regex() -> frozenset[str]:
    parts = [itertools.product(("ab", "bc", "bd"), repeat=n) for n in (1, 2, 3)]
    return frozenset("".join(word) + end for words in parts for word in words for end in ("", "x"))


def words_of_schema() -> frozenset[str]:
    objects = [{"city": city, "n": n} for city in ("Pisa", "Paris", "Rome") for n in (1, 12, 2)]
    return frozenset(json.dumps(value) for value in [*objects, *({"city": o["city"]} for o in objects)])


SCHEMA = {
    "type": "object",
    "properties": {"city": {"enum": ["Pisa", "Paris", "Rome"]}, "n": {"enum": [1, 12, 2]}},
    "required": ["city"],
    "additionalProperties": False,
}
LANGUAGES = {
    "regex": Language(Constraint("regex", "(ab|b[cd]){1,3}x?"), words_of_regex()),
    "schema": Language(of_schema(SCHEMA), words_of_schema()),
    "lark": Language(
        Constraint("lark", 'start: a b? a\na: "x" | "yy"\nb: /[0-2]/'),
        frozenset(a + b + c for a in ("x", "yy") for b in ("", "0", "1", "2") for c in ("x", "yy")),
    ),
}


def letter_constraints(n_logits: int = 97) -> Constraints:
    """Constraints on texts of these letters, for a model with so many logits; close them."""
    return Constraints(cast(ModelText, LetterText()), n_logits)


def held(
    constraints: Constraints, constraint: Constraint, request: GenerationRequest, trigger: int | None = None
) -> GenerationRequest:
    """The request, held to a constraint, from a trigger on if there is one."""
    asked = Request(constraint=constraint, logprobs=request.logprobs)
    calls = None if trigger is None else HeldCalls(constraint, "trigger", (trigger,), ())
    found = Held(constraints.compile(constraint), (), calls)
    return replace(
        request,
        stop_ids=frozenset({END}),
        begin_constraint=partial(constraints.begin, found, asked, request.prompt),
    )


def answer(handle: GenerationHandle) -> str:
    sequence = finish(handle)
    return "".join(LETTERS[token] for token in sequence.token_ids[sequence.n_prompt :])
