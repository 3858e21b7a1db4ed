"""Calls that are held to the schemas of their tools, written by random models in every dialect."""

from itertools import product
from typing import Any

import pytest
from localrun_testing.call_models import TOOLS, Answer, RandomModel, assert_valid, call_text
from localrun_testing.tagged_models import THINK

from localrun.base.errors import ToolSchemaError
from localrun.base.request import Request
from localrun.engine.call_constraints import held_to
from localrun.text.tool_calls.dialects import DIALECTS, Dialect
from localrun.text.tool_calls.syntax import WrittenCall

BY_NAME = {dialect.name: dialect for dialect in DIALECTS}
NO_TRIGGER = ("Harmony", "MiniMax 3", "DeepSeek 3.2", "DeepSeek 4", "Kimi 3", "GigaChat 3", "MiniCPM", "Llama 4")
KINDS = ("letters", "special", "not special")


@pytest.mark.parametrize(("name", "kind"), [*product(BY_NAME, KINDS)])
def test_calls_that_have_to_be_made_hold_to_their_schemas(name: str, kind: str) -> None:
    model = RandomModel(call_text(BY_NAME[name], kind))
    answers = [model.answer(tool_choice="required", parallel_tool_calls=bool(n)) for n in range(2)]
    for answer in answers:
        assert_valid(answer.calls if answer.has_ended else answer.calls[:-1])
        assert answer.text == "" or name == "Harmony" or not answer.has_ended
        assert answer.notes == ()
    first, _ = answers
    assert len(first.calls) == 1 or not first.has_ended


@pytest.mark.parametrize("dialect", DIALECTS, ids=list(BY_NAME))
def test_calls_that_are_made_hold_to_their_schemas(dialect: Dialect) -> None:
    """What is written before a token that opens calls is free."""
    model = RandomModel(call_text(dialect, "special"))
    request = Request(messages=({"role": "user", "content": "?"},), tools=TOOLS)
    held = held_to(model.constraints, request)
    if held is None or held.calls is None or not held.calls.triggers:
        assert dialect.name in NO_TRIGGER
        return
    for trigger in held.calls.triggers:
        said = "So <|im_start|> {[" + model.text.tokenizer.piece_text(trigger)
        answer = model.answer(said, parallel_tool_calls=False)
        assert answer.written.startswith(said)
        assert answer.text
        assert_valid(answer.calls)
        assert len(answer.calls) == 1 or not answer.has_ended
    assert model.answer("Nothing.<|im_end|>").text == "Nothing."


@pytest.mark.parametrize("kind", ["special", "not special"])
def test_a_model_may_think_before_it_has_to_call(kind: str) -> None:
    model = RandomModel(call_text(BY_NAME["Hermes"], kind, THINK))
    thought = 'hm {"name": </tool_call>'
    answer = model.answer(f"{thought}</think>\n", "<|im_start|>assistant\n<think>\n", tool_choice="required")
    assert answer.written.startswith(f"{thought}</think>\n<tool_call>\n")
    assert answer.thinking == thought
    assert_valid(answer.calls)
    opened = model.answer("<think>well</think>", tool_choice="required")
    assert (opened.thinking, bool(opened.calls)) == ("well", True)
    held = model.answer("well<tool_call>", "<|im_start|>assistant\n<think>\n", tool_choice="required")
    assert (held.thinking, bool(held.calls)) == ("well", True), "a call in a thought is held, too"
    assert_valid(held.calls)


def test_messages_of_harmony_are_free_and_calls_in_them_are_held() -> None:
    model = RandomModel(call_text(BY_NAME["Harmony"], "special"))
    thought = "<|channel|>analysis<|message|>hm<|end|><|start|>assistant"
    for header in (" to=functions.free<|channel|>commentary json", "<|channel|>commentary to=functions.free"):
        for choice in ("auto", "required"):
            answer = model.answer(f"{thought}{header}<|message|>", tool_choice=choice)
            assert (answer.thinking, [call.name for call in answer.calls]) == ("hm", ["free"])
            assert_valid(answer.calls)
    said = f"{thought}<|channel|>final<|message|>Done.<|return|>"
    assert model.answer(said).text == "Done."
    assert model.answer(said, tool_choice="required").calls
    unknown = model.answer(f"{thought}<|channel|>commentary to=functions.gone<|message|>")
    assert "gone" not in unknown.written


@pytest.mark.parametrize("name", ["Hermes", "tagged XML"])
def test_a_line_behind_a_call_may_end_the_answer(name: str) -> None:
    dialect = BY_NAME[name]
    model = RandomModel(call_text(dialect, "special"))
    said = f"{dialect.syntax.write([WrittenCall('', 'now', {})])}\n"
    for choice in ("auto", "required"):
        answer = model.answer(f"{said}<|im_end|>", tool_choice=choice)
        assert (answer.written, [call.name for call in answer.calls], answer.text) == (said, ["now"], "")


def test_a_call_without_marks_holds_to_its_schema() -> None:
    model = RandomModel(call_text(BY_NAME["Hermes"], "special"))

    def answer(arguments: str, **fields: Any) -> Answer:
        return model.answer(f'```json\n{{"name": "get_weather", "arguments": {arguments}}}\n```<|im_end|>', **fields)

    (call,) = answer('{"mode": "a", "city": "Oslo"}').calls
    assert (call.name, call.arguments) == ("get_weather", '{"city": "Oslo", "mode": "a"}')
    for arguments in ('{"city": "Oslo"}', '{"city": "Oslo", "mode": "c"}', '{"city": "Oslo", "mode": "a", "zone": 1}'):
        refused = answer(arguments)
        assert refused.calls == ()
        assert refused.text == refused.written
    assert answer('{"city": "Oslo", "mode": "a"}', allowed_tools=("now",)).calls == ()


def test_only_allowed_tools_are_called() -> None:
    model = RandomModel(call_text(BY_NAME["Hermes"], "special"))
    for choice, said in (("required", ""), ("auto", "<tool_call>")):
        for allowed in (("now",), ("free", "now")):
            answer = model.answer(said, tool_choice=choice, allowed_tools=allowed)
            assert {call.name for call in answer.calls} <= {*allowed}
            assert answer.calls


def tool(schema: Any, is_strict: bool) -> dict[str, Any]:
    return {"type": "function", "function": {"name": "f", "parameters": schema, "strict": is_strict}}


# A schema that no call can be held to as a whole, and the word that says why, in each shape of calls.
NOT_HELD: dict[str, tuple[Any, str]] = {
    "uniqueItems": ({"type": "object", "properties": {"a": {"type": "array", "uniqueItems": True}}}, "uniqueItems"),
    "not": ({"type": "object", "properties": {"a": {"type": "string", "not": {"const": "b"}}}}, "not"),
    "look-ahead": ({"type": "object", "properties": {"a": {"type": "string", "pattern": "(?=a)b"}}}, "pattern|look"),
    "elsewhere": ({"type": "object", "properties": {"a": {"$ref": "https://example.org/x"}}}, "ref|example.org"),
    "no object": ({"type": "string"}, "object"),
    "multiples": (
        {"type": "object", "properties": {"a": {"type": "integer", "multipleOf": 100_000_007}}},
        "multipleOf",
    ),
}


@pytest.mark.parametrize("name", ["Hermes", "tagged XML", "Gemma 4", "pythonic", "Mistral"])
@pytest.mark.parametrize(("schema", "word"), NOT_HELD.values(), ids=list(NOT_HELD))
def test_what_calls_cannot_be_held_to_is_named_or_noted(name: str, schema: Any, word: str) -> None:
    model = RandomModel(call_text(BY_NAME[name], "special"))
    with pytest.raises(ToolSchemaError, match=word):
        model.answer(tools=(tool(schema, is_strict=True), *TOOLS), tool_choice="required")
    answer = model.answer(tools=(tool(schema, is_strict=False), *TOOLS), tool_choice="required", allowed_tools=("f",))
    assert any(word.split("|")[0] in note or word.split("|")[-1] in note for note in answer.notes)
    assert all(call.is_complete and call.name == "f" for call in answer.calls[:-1])


SELF = {"$ref": "#/properties/a"}
ROUND: dict[str, Any] = {
    "a choice of itself": {"properties": {"a": {"anyOf": [SELF, SELF, {"type": "string", "maxLength": 3}]}}},
    "only itself": {"properties": {"a": SELF}},
    "a list of itself": {"properties": {"a": {"type": "array", "items": SELF, "maxItems": 2}}},
    "doubled many times": {
        "$defs": {
            **{f"d{n}": {"anyOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(40)},
            "d40": {"type": "string", "maxLength": 3},
        },
        "properties": {"a": {"$ref": "#/$defs/d0"}},
    },
}


@pytest.mark.parametrize("name", ["Hermes", "tagged XML", "Gemma 4", "pythonic", "Kimi 3"])
@pytest.mark.parametrize("schema", ROUND.values(), ids=list(ROUND))
def test_schemas_that_go_round_end(name: str, schema: Any) -> None:
    model = RandomModel(call_text(BY_NAME[name], "special"))
    answer = model.answer(tools=(tool({"type": "object", **schema}, is_strict=False),), tool_choice="required")
    assert all(call.is_complete for call in answer.calls[:-1])
