"""Random calls of tools, written as models of each dialect write them, and what a parser makes of a stream."""

import json
import random
from collections.abc import Iterator, Sequence
from typing import Any

from localrun.base.events import ToolCallDelta
from localrun.text.harmony import HarmonySplitter
from localrun.text.marks import NO_MARKS, Marks
from localrun.text.reasoning import Splitter
from localrun.text.tool_calls.dialects import Dialect
from localrun.text.tool_calls.events import Piece
from localrun.text.tool_calls.harmony_syntax import HarmonySyntax
from localrun.text.tool_calls.literal_syntax import GemmaSyntax
from localrun.text.tool_calls.syntax import Tools, WrittenCall
from localrun.text.tool_calls.tagged_syntax import TaggedSyntax

NAMES = ("get_weather", "now", "write-file", "a.b")
KINDS = {"text": "string", "n": "integer", "x": "number", "yes": "boolean", "map": "object", "list": "array"}
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": name,
            "parameters": {"type": "object", "properties": {key: {"type": kind} for key, kind in KINDS.items()}},
        },
    }
    for name in NAMES
]
# What may be taken for something else: marks of calls, quotes, escapes, and characters of several bytes.
_SCRAPS = (
    *("a", " ", "\n", '"', "'", "\\", "\\n", "é", "😀", "{", "}", "[", "]", ",", ":", "(", ")", "=", "<", ">", "\t"),
    *("<tool_call>", "</tool_call>", "<function=now>", "[TOOL_CALLS]", "<|call|>", "]", "null", "\u2028", "\x07"),
)


def random_calls(rng: random.Random) -> list[WrittenCall]:
    """One to three calls with arguments of every kind."""
    calls = []
    for number in range(rng.randint(1, 3)):
        name = rng.choice(NAMES)
        keys = rng.sample(list(KINDS), rng.randint(0, len(KINDS)))
        arguments = {key: random_value(rng, KINDS[key]) for key in keys}
        calls.append(WrittenCall(f"functions.{name}:{number}", name, arguments))
    return calls


def random_value(rng: random.Random, kind: str, depth: int = 0) -> Any:
    """A value of a type of JSON Schema."""
    match kind:
        case "string":
            return "".join(rng.choices(_SCRAPS, k=rng.randint(0, 8)))
        case "integer":
            return rng.choice([0, -1, 71923, 1 << 70])
        case "number":
            return rng.choice([0.5, -1.25e-7, 3, 1e22])
        case "boolean":
            return rng.random() < 0.5
    kinds = list(KINDS.values())[: 4 if depth > 1 else None]
    inner = [random_value(rng, rng.choice(kinds), depth + 1) for _ in range(rng.randint(0, 3))]
    if kind == "array":
        return [*inner, None] if rng.random() < 0.3 else inner
    return {f"k{number}": value for number, value in enumerate(inner)}


def some_marks(rng: random.Random, dialect: Dialect) -> Marks:
    """Some of the marks of a dialect as tokens of a vocabulary."""
    tags = [tag for tag in dialect.syntax.marks if rng.random() < 0.5]
    texts = Marks.texts_in(tags)
    stand_ins = {text: chr(0xD800 + number) for number, text in enumerate(texts)}
    return Marks(dict(enumerate(stand_ins.values())), stand_ins)


def read(
    dialect: Dialect, chunks: Sequence[str], marks: Marks = NO_MARKS, splitter: Splitter | None = None
) -> tuple[str, str, list[tuple[str, str, bool]]]:
    """Answer, thinking and calls: names, arguments as text, and whether each is complete."""
    if dialect.name == "Harmony":
        splitter = splitter or HarmonySplitter()
    parser = dialect.parser(Tools(TOOLS), lambda index, name: f"id{index}", splitter, marks)
    pieces: list[Piece] = []
    for chunk in chunks:
        pieces += parser.push(chunk)
    pieces += parser.flush()
    texts = {"answer": "", "thinking": ""}
    calls: list[list[ToolCallDelta]] = []
    for piece in pieces:
        if not isinstance(piece, ToolCallDelta):
            assert piece[1]
            texts[piece[0]] += piece[1]
            continue
        if piece.begins:
            assert piece.index == len(calls)
            calls.append([])
        calls[-1].append(piece)
    found = [(parts[0].name, "".join(part.arguments for part in parts), parts[-1].is_complete) for parts in calls]
    return texts["answer"], texts["thinking"], found


def parsed(calls: Sequence[tuple[str, str, bool]]) -> list[tuple[str, Any]]:
    """Names and arguments of calls that have to be complete."""
    assert all(is_complete for _, _, is_complete in calls)
    return [(name, json.loads(arguments)) for name, arguments, _ in calls]


def cuts(rng: random.Random, text: str) -> Iterator[str]:
    """The text in pieces of any length."""
    most = rng.choice([1, 4, 30])
    position = 0
    while position < len(text):
        n = rng.randint(1, most)
        yield text[position : position + n]
        position += n


def wrong_readings(dialect: Dialect, rng: random.Random, n: int) -> list[str]:
    """Read `n` answers of random calls behind a text, as one model would write them, whole and cut anywhere -> those
    that are not read as what was meant, or not read alike."""
    wrong = []
    for _ in range(n):
        calls = random_calls(rng)
        while any(is_ambiguous(dialect, call) for call in calls):
            calls = random_calls(rng)
        marks = some_marks(rng, dialect)
        before = "" if dialect.is_at_start else rng.choice(["", "I look: 2 < 3 [1]."])
        text = dialect.syntax.spelled(marks.spell).write(calls)
        is_harmony = dialect.name == "Harmony"
        opens, closes = map(marks.spell, ("<|channel|>final<|message|>", "<|end|>") if is_harmony else ("", "\n\n"))
        text = f"{opens}{before}{closes}{text}"
        splitter = HarmonySplitter(spell=marks.spell) if is_harmony else None
        meant = before, "", [(call.name, dict(call.arguments)) for call in calls]
        whole = read(dialect, [text], marks, splitter)
        splitter = HarmonySplitter(spell=marks.spell) if is_harmony else None
        if read(dialect, list(cuts(rng, text)), marks, splitter) != whole or (*whole[:2], parsed(whole[2])) != meant:
            wrong.append(text)
    return wrong


def is_ambiguous(dialect: Dialect, call: WrittenCall) -> bool:
    """Whether an argument spells an end of its own, so that nobody could tell."""
    texts = [value for value in call.arguments.values() if isinstance(value, str)]
    match dialect.syntax:
        case HarmonySyntax():
            return "<|call|>" in json.dumps(call.arguments)
        case TaggedSyntax(value_end=end) | GemmaSyntax(quote=end):
            return any(end in text for text in texts)
    return False
