"""Vocabularies with the marks of a dialect of calls, tools with schemas of every kind, and random answers."""

import json
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor, Future
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import numpy as np

from localrun.base.dataclass import dataclass
from localrun.base.events import ToolCall
from localrun.base.request import Request, Sampling
from localrun.engine.answer import AnswerStream
from localrun.engine.call_constraints import held_to
from localrun.engine.constrained import Constrained
from localrun.engine.constraints import Constraints
from localrun.ops.interface import Logits
from localrun.ops.sampling import Draw
from localrun.text.marks import Marks
from localrun.text.model_text import ModelText
from localrun.text.reasoning import KNOWN_TAGS, ReasoningTags
from localrun.text.template import CHATML, ChatTemplate
from localrun.text.tokenizer import tokenizer_from_gguf
from localrun.text.tool_calls.detect import CallForm
from localrun.text.tool_calls.dialects import Dialect
from localrun.text.tool_calls.history import HistoryForm
from localrun.text.tool_calls.request_tools import RequestTools
from localrun.text.vocabulary import BYTE_TO_CHAR
from localrun_testing.vocabularies import CONTROL, NORMAL, USER_DEFINED, byte_level

MARK_KINDS = {"letters": NORMAL, "special": CONTROL, "not special": USER_DEFINED}
HARMONY = next(tags for _, tags in KNOWN_TAGS if tags.headers)
_WORDS = ('"}', '": "', '{"', '", "', "true", "name", "\n\n")
_GREEDY = Draw(0, 0, 0.0, 1.0, 0.0, 0.0)
MOST_TOKENS = 600  # of a random answer; it is made to end long before

WEATHER: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "city": {"type": "string"},
        "days": {"type": "integer", "minimum": 0, "maximum": 99},
        "mode": {"enum": ["a", "b"]},
        "tags": {"type": "array", "items": {"type": "string", "maxLength": 3}, "maxItems": 3},
        "map": {
            "type": "object",
            "properties": {"x": {"type": "number"}, "text": {"type": "string"}},
            "required": ["x"],
        },
        "either": {"type": ["string", "integer"]},
        "any": {},
        "like": {"type": "string", "pattern": "^[ab]{1,4}$"},
        "yes": {"type": "boolean"},
        "none": {"anyOf": [{"type": "string", "maxLength": 5}, {"type": "null"}]},
        "one": {"$ref": "#/$defs/one"},
        "several": {
            "anyOf": [{"type": "boolean"}, {"type": "array", "items": {"type": "integer"}}, {"type": "string"}]
        },
    },
    "required": ["city", "mode"],
    "additionalProperties": False,
    "$defs": {"one": {"enum": ["1", "x", 2, None, True]}},
}
SCHEMAS: Mapping[str, Mapping[str, Any]] = {
    "get_weather": WEATHER,
    "now": {"type": "object", "properties": {}, "additionalProperties": False},
    "free": {"type": "object", "additionalProperties": {"type": "string"}},
}
TOOLS = tuple(
    {"type": "function", "function": {"name": name, "parameters": schema, "strict": True}}
    for name, schema in SCHEMAS.items()
)


@dataclass(frozen=True)
class CallText(ModelText):
    """The text side of a model that calls tools in one dialect."""

    dialect: Dialect

    def tools(self, request: Request) -> RequestTools | None:
        form = CallForm(self.dialect, HistoryForm(), None)
        return RequestTools(request, self.tokenizer, form) if request.tools else None

    @property
    def special_ids(self) -> frozenset[int]:
        marks = Marks.of(self.tokenizer, (*self.dialect.syntax.marks, *(self.tags.texts if self.tags else ())))
        return self.tokenizer.control_ids | marks.by_id.keys()


def call_text(dialect: Dialect, kind: str, tags: ReasoningTags | None = None) -> CallText:
    """Every byte is a token, and some words; the marks of calls and thoughts are, too, unless they are letters."""
    tags = HARMONY if dialect.name == "Harmony" else tags
    texts = Marks.texts_in([*dialect.syntax.marks, *(tags.texts if tags else ())]) if kind != "letters" else []
    words = ["".join(BYTE_TO_CHAR[byte] for byte in word.encode()) for word in _WORDS]
    tokens = [*(BYTE_TO_CHAR[byte] for byte in range(256)), *words, "<|im_start|>", "<|im_end|>", *texts]
    n_letters = 256 + len(words)
    keys = byte_level(
        tokens=tokens,
        token_type=[NORMAL] * n_letters + [CONTROL] * 2 + [MARK_KINDS[kind]] * len(texts),
        merges=[],
        bos_token_id=None,
        eos_token_id=n_letters + 1,
    )
    return CallText(tokenizer_from_gguf(keys), ChatTemplate(CHATML), tags, Sampling(), (), dialect)


class AtOnce(Executor):
    """Does what it is asked to while it is asked."""

    def submit(self, work: Any, /, *arguments: Any, **more: Any) -> Future[Any]:
        work(*arguments, **more)
        return Future()


@dataclass(frozen=True)
class Answer:
    """A random answer: what is read of it, and its tokens."""

    calls: tuple[ToolCall, ...]
    text: str
    thinking: str
    written: str
    has_ended: bool
    notes: tuple[str, ...] = ()


class RandomModel:
    """Writes answers of random tokens, as far as they are held to nothing."""

    def __init__(self, text: CallText, seed: int = 0) -> None:
        self.text = text
        self.constraints = Constraints(text, text.tokenizer.vocab_size)
        self.constraints._pool = AtOnce()  # type: ignore[assignment]
        self._rng = np.random.default_rng(seed)
        ends = [*text.tokenizer.eog_ids, *range(256 + len(_WORDS) + 2, text.tokenizer.vocab_size)]
        self._closers = [*(ord(char) for char in "\"'}])<\n"), *ends]

    def answer(self, said: str = "", prompt: str = "", **fields: Any) -> Answer:
        """An answer, which begins with `said` as far as it may."""
        asked: dict[str, Any] = {"messages": ({"role": "user", "content": "?"},), "tools": TOOLS, **fields}
        request = Request(**asked)
        held = held_to(self.constraints, request)
        usual = "<|start|>assistant" if self.text.dialect.name == "Harmony" else "<|im_start|>assistant\n"
        ids = self.text.tokenizer.encode(prompt or usual, special=True)
        constraint = None if held is None else self.constraints.begin(held, request, ids, lambda: None)
        stream = AnswerStream(self.constraints.parser(held, request, ids), ())
        written = self._write(constraint, stream, self.text.tokenizer.encode(said, special=True))
        return Answer(
            stream.tool_calls,
            stream.text("answer"),
            stream.text("thinking"),
            self.text.tokenizer.decode(written, special=True),
            len(written) < MOST_TOKENS,
            () if held is None else held.notes,
        )

    def _write(self, constraint: Constrained | None, stream: AnswerStream, wishes: Sequence[int]) -> list[int]:
        written: list[int] = []
        while len(written) < MOST_TOKENS:
            wish = wishes[len(written)] if len(written) < len(wishes) else None
            token = self._next(constraint, len(written), wish)
            if token in self.text.tokenizer.eog_ids:
                break
            written.append(token)
            list(stream.push(token))
            if constraint is not None:
                constraint.take(token)
        list(stream.flush())
        return written

    def _next(self, constraint: Constrained | None, n: int, wish: int | None) -> int:
        """A random token; what closes something is the likelier, the longer the answer is."""
        logits = 2 * self._rng.standard_normal((1, self.text.tokenizer.vocab_size)).astype(np.float32)
        logits[0, self._closers] += 3 * self._rng.random() + 4 * (n > 150) + 8 * (n > 300)
        if wish is not None:
            logits[0, wish] = 1000.0
        if constraint is None or not constraint.restricts:
            return int(logits.argmax())
        top = np.argsort(-logits, kind="stable")[:, :256]
        values = np.take_along_axis(logits, top, 1)
        return constraint.choose(Logits(logits, top, values, np.zeros(1), np.ones(1)), _GREEDY)


def assert_valid(calls: Sequence[ToolCall]) -> None:
    """All calls are complete, and their arguments hold to the schemas of their tools."""
    for call in calls:
        assert call.is_complete, call
        jsonschema.validate(json.loads(call.arguments), SCHEMAS[call.name])
