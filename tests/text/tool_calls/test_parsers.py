"""Calls of tools in every dialect: what was meant is what is read, wherever the stream is cut."""

import random
import re

import pytest
from localrun_testing.tool_calls import parsed, read, wrong_readings

from localrun.text.tool_calls.dialects import DIALECTS, Dialect
from localrun.text.tool_calls.syntax import WrittenCall

BY_NAME = {dialect.name: dialect for dialect in DIALECTS}


@pytest.mark.parametrize("dialect", DIALECTS, ids=list(BY_NAME))
def test_calls_are_parsed_at_any_cut_of_the_stream(dialect: Dialect) -> None:
    rng = random.Random(dialect.name)
    assert wrong_readings(dialect, rng, 30) == []


def test_the_end_of_a_value_in_its_text_is_text_if_no_part_of_a_call_follows() -> None:
    value = "<a>\n</parameter>\n</a></parameter>\n\n</a>."
    text = BY_NAME["tagged XML"].syntax.write([WrittenCall("", "now", {"text": value, "n": 1})])
    assert parsed(read(BY_NAME["tagged XML"], list(text))[2]) == [("now", {"text": value, "n": 1})]


# What a model may write, and what a client is told: answer, thinking, and names and arguments of the calls with whether
# they are complete. Marks are letters here, as in vocabularies that have no tokens for them.
CASES: dict[str, tuple[str, str, str, list[tuple[str, str, bool]]]] = {
    "text behind a call": (
        "Hermes",
        'So.\n<tool_call>{"name": "now", "arguments": {}}</tool_call>\n\nDone.\n',
        "So.\n\nDone.",
        [("now", "{}", True)],
    ),
    "no arguments at all": ("Hermes", '<tool_call>{"name": "now"}</tool_call>', "", [("now", "{}", True)]),
    "arguments before the name": (
        "Hermes",
        '<tool_call>{"arguments": {"a": 1}, "name": "now"}</tool_call>',
        "",
        [("now", '{"a": 1}', True)],
    ),
    "arguments as a text": (
        "Hermes",
        '<tool_call>{"name": "now", "arguments": "{\\"a\\": 1}"}</tool_call>',
        "",
        [("now", '{"a": 1}', True)],
    ),
    "escapes, and a line end within a string": (
        "Hermes",
        '<tool_call>{"name": "now", "arguments": {"a": "\\u00e9\\ud83d\\ude00\\/\n"}}</tool_call>',
        "",
        [("now", '{"a": "é😀/\\n"}', True)],
    ),
    "literals of Python": (
        "Hermes",
        "<tool_call>{'name': 'now', 'arguments': {'a': True, 'b': None,}}</tool_call>",
        "",
        [("now", '{"a": true, "b": null}', True)],
    ),
    "a tool that there is none of": (
        "Hermes",
        '<tool_call>{"name": "fly", "arguments": {}}</tool_call>',
        "",
        [("fly", "{}", True)],
    ),
    "cut within the arguments": (
        "Hermes",
        '<tool_call>{"name": "now", "arguments": {"a": "b',
        "",
        [("now", '{"a": "b', False)],
    ),
    "cut before the name": ("Hermes", 'So <tool_call>{"na', 'So <tool_call>{"na', []),
    "cut within the mark": ("Hermes", "So <tool_c", "So <tool_c", []),
    "arguments that break": (
        "Hermes",
        '<tool_call>{"name": "now", "arguments": {"a": rm}}</tool_call>',
        "rm}}</tool_call>",
        [("now", '{"a": ', False)],
    ),
    "no call between the marks": ("Hermes", "Say <tool_call> to call.", "Say <tool_call> to call.", []),
    "two calls between the same marks": (
        "Hermes",
        '<tool_call>{"name": "now"}\n{"name": "a.b"}</tool_call>',
        "",
        [("now", "{}", True), ("a.b", "{}", True)],
    ),
    "JSON in a fence, and nothing else": (
        "Hermes",
        '\n```json\n{\n  "name": "now",\n  "arguments": {\n    "n": 1.50,\n    "text": "a```"\n  }\n}\n```\n',
        "",
        [("now", '{"text": "a```", "n": 1.5}', True)],
    ),
    "a fence without a language": ("Hermes", '```\n{"name": "now", "parameters": {}}```', "", [("now", "{}", True)]),
    "JSON and nothing else": ("Hermes", '{"name": "a.b", "arguments": {"n": 2}}', "", [("a.b", '{"n": 2}', True)]),
    "JSON in doubled braces": (
        "Hermes",
        '```json\n{{"name": "now", "arguments": {"n": 2}}}\n```',
        "",
        [("now", '{"n": 2}', True)],
    ),
    **{
        f"no call in a fence: {why}": ("Hermes", text, text, [])
        for why, text in {
            "a text before it": 'So:\n```json\n{"name": "now", "arguments": {}}\n```',
            "a text behind it": '```json\n{"name": "now", "arguments": {}}\n```\nThat calls it.',
            "another one": '```json\n{"name": "now", "arguments": {}}\n{"name": "now", "arguments": {}}\n```',
            "an unknown tool": '```json\n{"name": "add", "arguments": {"a": 2}}\n```',
            "more keys": '```json\n{"name": "now", "arguments": {}, "version": 1}\n```',
            "other keys": '```json\n{"name": "now", "version": "1.0"}\n```',
            "another language": '```python\n{"name": "now", "arguments": {}}\n```',
            "no object": '```json\n{"name": "now", "arguments": [1]}\n```',
            "no fence behind": '```json\n{"name": "now", "arguments": {}}\n',
            "braces that are doubled once": '```json\n{{"name": "now", "arguments": {}}\n```',
            "cut": '```json\n{"name": "now", "argum',
        }.items()
    },
    "no call in a fence, and one with marks": (
        "Hermes",
        '```json\n{"name": "now", "arguments": {"text": "<tool_call>{"name": "now"}</tool_call>',
        '```json\n{"name": "now", "arguments": {"text": "',
        [("now", "{}", True)],
    ),
    "JSON behind a call": (
        "Hermes",
        '<tool_call>{"name": "now"}</tool_call>{"name": "now", "arguments": {}}',
        '{"name": "now", "arguments": {}}',
        [("now", "{}", True)],
    ),
    "JSON in a fence, of a form that begins calls otherwise": (
        "Mistral",
        '```json\n{"name": "now", "arguments": {}}\n```',
        '```json\n{"name": "now", "arguments": {}}\n```',
        [],
    ),
    "white space alone is an answer": ("Hermes", " \n", " \n", []),
    "XML whose opener was forgotten": (
        "tagged XML",
        "<function=now>\n<parameter=n>\n2\n</parameter>\n</function>\n</tool_call>",
        "",
        [("now", '{"n": 2}', True)],
    ),
    "XML of an unknown tool without its opener": ("tagged XML", "In <function=x> is", "In <function=x> is", []),
    "a number that is none": (
        "tagged XML",
        "<tool_call>\n<function=now>\n<parameter=n>\ntwo\n</parameter>\n</function>\n</tool_call>",
        "",
        [("now", '{"n": "two"}', True)],
    ),
    "an argument that no schema has": (
        "tagged XML",
        "<tool_call>\n<function=now>\n<parameter=z>\nNaN\n</parameter>\n</function>\n</tool_call>",
        "",
        [("now", '{"z": "NaN"}', True)],
    ),
    "JSON that calls nothing": ("Llama 3", '{"name": "Ada", "age": 3}', '{"name": "Ada", "age": 3}', []),
    "JSON behind a text": ("Llama 3", 'So: {"name": "now"}', 'So: {"name": "now"}', []),
    "a list that calls nothing": ("Llama 4", "[1, 2](3)", "[1, 2](3)", []),
    "no mark before the arguments": ("Mistral", '[TOOL_CALLS]now{"n": 1}', "", [("now", '{"n": 1}', True)]),
    "Harmony, recipient behind the channel": (
        "Harmony",
        "<|channel|>commentary to=functions.now <|constrain|>json<|message|>{}",
        "",
        [("now", "{}", True)],
    ),
    "Harmony, recipient before the channel": (
        "Harmony",
        ' to=functions.now<|channel|>commentary json<|message|>{"n": 1}',
        "",
        [("now", '{"n": 1}', True)],
    ),
    "Harmony, a message to nobody here": (
        "Harmony",
        "<|channel|>commentary to=browser<|message|>hm",
        "browser hm",
        [],
    ),
}


@pytest.mark.parametrize(("name", "text", "answer", "calls"), CASES.values(), ids=list(CASES))
def test_odd_answers(name: str, text: str, answer: str, calls: list[tuple[str, str, bool]]) -> None:
    for chunks in ([text], list(text), re.findall("(?s).{1,7}", text)):
        assert read(BY_NAME[name], chunks) == (answer, "", calls)


def test_bounds() -> None:
    deep = '<tool_call>{"name": "now", "arguments": ' + '{"a": ' * 100
    assert read(BY_NAME["Hermes"], [deep])[2][0][2] is False
    long = '<tool_call>{"name": "' + "n" * 300 + '", "arguments": {}}</tool_call>'
    assert read(BY_NAME["Hermes"], [long]) == (long, "", [])
    huge = "x" * 200_000
    text = BY_NAME["Hermes"].syntax.write([WrittenCall("", "now", {"text": huge})])
    assert parsed(read(BY_NAME["Hermes"], re.findall("(?s).{1,9}", text))[2]) == [("now", {"text": huge})]
