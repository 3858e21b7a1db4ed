"""Where a constraint begins to hold: after a thought, a header or what was written before."""

from concurrent.futures import Executor, Future
from typing import Any

import numpy as np
import pytest
from localrun_testing.tagged_models import THINK, tagged_model

from localrun.base.constraint import Constraint, of_schema
from localrun.base.errors import ConstraintError
from localrun.base.request import Request, Think
from localrun.engine.answer import AnswerStream
from localrun.engine.constrained import Constrained
from localrun.engine.constraints import Constraints, Held
from localrun.ops.interface import Logits
from localrun.ops.sampling import Draw
from localrun.text.model_text import ModelText
from localrun.text.reasoning import KNOWN_TAGS, ReasoningTags

HARMONY = next(tags for _, tags in KNOWN_TAGS if tags.headers)
GEMMA = next(tags for mark, tags in KNOWN_TAGS if mark == "<|channel>thought")
CHOICE = of_schema({"enum": ["a", "b"]})
GREEDY = Draw(0, 0, 0.0, 1.0, 0.0, 0.0)


class AtOnce(Executor):
    """Does what it is asked to while it is asked."""

    def submit(self, work: Any, /, *arguments: Any, **more: Any) -> Future[Any]:
        work(*arguments, **more)
        return Future()


def begin(text: ModelText, prompt: str, constraint: Constraint = CHOICE, **fields: Any) -> Constrained:
    """The constraint of an answer to a prompt; the messages are looked at only where an answer is gone on with."""
    messages = fields.pop("messages", ({"role": "user", "content": "?"},))
    request = Request(messages=messages, constraint=constraint, logprobs=0, **fields)
    constraints = Constraints(text, text.tokenizer.vocab_size)
    constraints._pool = AtOnce()  # type: ignore[assignment]
    ids = text.tokenizer.encode(prompt, special=True)
    return constraints.begin(Held(constraints.compile(constraint), ()), request, ids, lambda: None)


def next_of(text: ModelText, held: Constrained, wish: int) -> int:
    """The token that comes next where the model wants this one most."""
    logits = np.zeros((1, text.tokenizer.vocab_size), np.float32)
    logits[0, wish] = 9.0
    assert held.can_choose()
    top = np.argsort(-logits, kind="stable")[:, :256]
    return held.choose(Logits(logits, top, logits[:, top[0]], np.zeros(1), np.ones(1)), GREEDY)


def write(text: ModelText, held: Constrained, words: str) -> str:
    """Have the model want to write something -> what of it comes, up to the first token that does not."""
    written = ""
    for wish in text.tokenizer.encode(words, special=True):
        if next_of(text, held, wish) != wish:
            return written
        held.take(wish)
        written += text.tokenizer.piece_text(wish)
    return written


@pytest.mark.parametrize("kind", ["special", "not special"])
def test_a_thought_is_free_and_has_to_end(kind: str) -> None:
    text = tagged_model(THINK, kind)
    held = begin(text, "<|im_start|>assistant\n<think>\n")
    assert write(text, held, 'any {"words" <|im_start|>') == 'any {"words" <|im_start|>'
    assert write(text, held, "<|im_end|>") == "", "an answer does not end before it has begun"
    assert write(text, held, "</think>\n\n") == "</think>\n", "one token of line ends may follow"
    assert write(text, held, "c") == ""
    assert write(text, held, '"a"<|im_end|>') == '"a"<|im_end|>'


@pytest.mark.parametrize(("think", "comes"), [("auto", "<think>"), ("on", "<think>"), ("off", "")])
def test_a_model_may_open_a_thought_unless_it_is_not_to_think(think: Think, comes: str) -> None:
    text = tagged_model(THINK, "special")
    held = begin(text, "<|im_start|>assistant\n", think=think)
    assert write(text, held, "<think>") == comes
    assert write(text, held, "well</think>") == ("well</think>" if comes else "")
    assert write(text, held, "<think>") == "", "once"
    assert write(text, held, '"b"') == '"b"'
    without = begin(text, "<|im_start|>assistant\n", think=think)
    assert write(text, without, '"b"') == '"b"'


def test_a_tag_of_several_tokens_is_opened_to_its_end() -> None:
    text = tagged_model(GEMMA, "special")
    held = begin(text, "<|im_start|>assistant\n")
    assert write(text, held, "<|channel>") == "<|channel>"
    assert write(text, held, "thought\nhm<channel|>") == "thought\nhm<channel|>"
    assert write(text, held, "x") == ""


def test_tags_in_letters_open_nothing() -> None:
    text = tagged_model(THINK, "letters")
    assert write(text, begin(text, "<|im_start|>assistant\n"), "<") == ""


@pytest.mark.parametrize("kind", ["special", "not special"])
def test_a_message_is_held_to_its_constraint_and_headers_are_free(kind: str) -> None:
    text = tagged_model(HARMONY, kind)
    before = "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>"
    held = begin(text, "<|start|>assistant")
    assert write(text, held, before) == before
    assert write(text, held, "c") == ""
    assert write(text, held, '"a"') == '"a"'


def test_an_answer_that_was_cut_is_gone_on_with() -> None:
    text = tagged_model(THINK, "special")
    turns = ({"role": "user", "content": "?"}, {"role": "assistant", "content": '"'})
    held = begin(text, '<|im_start|>assistant\n"', continues=True, messages=turns)
    assert write(text, held, 'a"') == 'a"'
    with pytest.raises(ConstraintError, match="so far"):
        begin(text, "", continues=True, messages=(turns[0], {"role": "assistant", "content": "c"}))


@pytest.mark.parametrize("kind", ["letters", "special", "not special"])
@pytest.mark.parametrize("tags", [THINK, GEMMA])
def test_all_that_is_held_to_a_constraint_is_answer(tags: ReasoningTags, kind: str) -> None:
    """A tag in a string of JSON is text of it."""
    text = tagged_model(tags, kind)
    request = Request(messages=({"role": "user", "content": "?"},), constraint=CHOICE)
    said = f'"{tags.open}x{tags.close} y"'
    answer = AnswerStream(text.parser(request, text.tokenizer.encode("<|im_start|>assistant\n", special=True)), ())
    for token in said.encode():  # letters, not tokens: the first 256 ids are bytes
        list(answer.push(token))
    list(answer.flush())
    assert (answer.text("answer"), answer.text("thinking")) == (said, "")
