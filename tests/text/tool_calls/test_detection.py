"""The dialect of a template and the form of its history, found by rendering: templates of our own, in many forms."""

import os
from pathlib import Path

import pytest

from localrun.base.request import TemplateMessage
from localrun.text.message_order import arrange
from localrun.text.template import ChatTemplate
from localrun.text.tool_calls.detect import CallForm, call_form
from localrun.text.tool_calls.dialects import DIALECTS
from localrun.text.tool_calls.history import HistoryForm
from localrun.text.tool_calls.written import render_written

PARAMETERS = {"type": "object", "properties": {"where": {"type": "string", "description": "a place"}}}
TOOL = {"type": "function", "function": {"name": "look", "description": "look there", "parameters": PARAMETERS}}
TURN = "{{ '<' + m.role + '>' + (m.content or '') }}"
SHOWS_TOOLS = "{% if tools %}{{ tools | tojson }}{% endif %}"
HERMES = (
    "{{ '\n<tool_call>\n{\"name\": \"' + f.name + '\", \"arguments\": ' + f.arguments | tojson + '}\n</tool_call>' }}"
)


def template(call: str, turn: str = TURN, tools: str = SHOWS_TOOLS, loop: str = "m.tool_calls or []") -> ChatTemplate:
    """A template that writes each call `c` of function `f` in the given form."""
    calls = f"{{% for c in {loop} %}}{{% set f = c.function %}}{call}{{% endfor %}}"
    return ChatTemplate(f"{tools}{{% for m in messages %}}{turn}{calls}<end>{{% endfor %}}<assistant>")


XML_CALL = (
    "{{ '<tool_call>\n<function=' + f.name + '>\n' }}{% for k, v in f.arguments | items %}"
    "{{ '<parameter=' + k + '>\n' + (v if v is string else v | tojson) + '\n</parameter>\n' }}{% endfor %}"
    "{{ '</function>\n</tool_call>\n' }}"
)
GEMMA_CALL = (
    "{{ '<|tool_call>call:' + f.name + '{' }}{% for k, v in f.arguments | items %}"
    "{{ k + ':' + ('<|\"|>' + v + '<|\"|>' if v is string else v | tojson) + ('' if loop.last else ',') }}{% endfor %}"
    "{{ '}<tool_call|>' }}"
)
GLM_CALL = (  # as GLM-4.7 has it, all in one line
    "{{ '<tool_call>' + f.name }}{% for k, v in f.arguments | items %}{{ '<arg_key>' + k + '</arg_key><arg_value>' + "
    "(v if v is string else v | tojson) + '</arg_value>' }}{% endfor %}</tool_call>"
)
LLAMA_CALL = "{{ '{\"name\": \"' + f.name + '\", \"parameters\": ' + f.arguments | tojson + '}' }}"
HARMONY_CALL = (
    "<|end|><|start|>assistant to=functions.{{ f.name }}<|channel|>commentary json<|message|>"
    "{{ f.arguments | tojson }}<|call|>"
)
APERTUS = (
    "{% if m.tool_calls %}<|tools_prefix|>[{% for c in m.tool_calls %}{{ '{\"' + c.function.name + '\": ' + "
    "(c.function.arguments ~ '') + '}' + ('' if loop.last else ', ') }}{% endfor %}]<|tools_suffix|>{% endif %}"
)
ONE = "{% if m.tool_calls and m.tool_calls | length > 1 %}{{ raise_exception('one call only') }}{% endif %}"
DROPS_TEXT = "{{ '<' + m.role + '>' + ('' if m.tool_calls else m.content) }}"
REFUSES_TOOLS = (
    "{% if m.role not in ['user', 'assistant', 'system'] %}{{ raise_exception('no such role') }}{% endif %}" + TURN
)

# The dialect that is found, and what has to be done to the history for nothing of it to be lost.
FOUND: dict[str, tuple[ChatTemplate, str, HistoryForm]] = {
    "Hermes": (template(HERMES), "Hermes", HistoryForm()),
    "tagged XML": (template(XML_CALL), "tagged XML", HistoryForm()),
    "GLM": (template(GLM_CALL), "GLM", HistoryForm()),
    "Gemma": (template(GEMMA_CALL), "Gemma 4", HistoryForm()),
    "arguments as a text": (template("", TURN + APERTUS), "Apertus", HistoryForm(text_arguments=True)),
    "one call a turn": (template(HERMES, ONE + TURN), "Hermes", HistoryForm(one_a_turn=True)),
    "the second call is dropped": (
        template(HERMES, loop="(m.tool_calls or [])[:1]"),
        "Hermes",
        HistoryForm(one_a_turn=True),
    ),
    "text beside calls is dropped": (template(HERMES, DROPS_TEXT), "Hermes", HistoryForm(text_put_in=True)),
    "Llama": (
        template("{{ '<|python_tag|>' if false }}" + LLAMA_CALL, ONE + DROPS_TEXT),
        "Llama 3",
        HistoryForm(one_a_turn=True, text_apart=True),
    ),
    "Harmony": (template(HARMONY_CALL), "Harmony", HistoryForm()),
    "Mistral": (
        template("[TOOL_CALLS]{{ f.name }}[ARGS]{{ f.arguments | tojson }}"),
        "Mistral",
        HistoryForm(),
    ),
    "calls are dropped": (template("", TURN + "{{ '<tool_call>' if false }}"), "Hermes", HistoryForm(written=True)),
    "calls and results are dropped": (
        template("", REFUSES_TOOLS),
        "Hermes",
        HistoryForm(written=True, user_results=True),
    ),
    "a form of its own": (
        template("<|call|>{{ f.name }}<|with|>{{ f.arguments | tojson }}<|done|>"),
        "of its template",
        HistoryForm(),
    ),
    "no tools": (template("", TURN, tools=""), "Hermes", HistoryForm(written=True, user_results=True)),
}


@pytest.mark.parametrize(("template", "dialect", "history"), FOUND.values(), ids=list(FOUND))
def test_found_by_rendering(template: ChatTemplate, dialect: str, history: HistoryForm) -> None:
    form = call_form(template, True)
    assert (form.dialect.name, form.history) == (dialect, history)
    assert_nothing_is_lost(template, form)


def assert_nothing_is_lost(template: ChatTemplate, form: CallForm) -> None:
    """Text, two calls, of which one was cut, and their results are in the prompt, in an order that makes sense."""
    calls = [
        {"id": "call_a", "type": "function", "function": {"name": "look", "arguments": '{"where": "zqhere"}'}},
        {"id": "call_b", "type": "function", "function": {"name": "look", "arguments": '{"where": "zqthere'}},
    ]
    messages: list[TemplateMessage] = [
        {"role": "user", "content": "zqask"},
        {"role": "assistant", "content": "zqtext", "tool_calls": calls},
        {"role": "tool", "tool_call_id": "call_b", "content": "zqsecond"},
        {"role": "tool", "tool_call_id": "call_a", "content": "zqfirst"},
        {"role": "assistant", "content": "zqdone"},
        {"role": "user", "content": "zqnext"},
    ]
    variables = form.tool_variables([TOOL]) if form.tool_variables else {}
    shown = arrange(template, form.history.apply(messages, form.dialect)).messages
    text = render_written(lambda shown: template.render(shown, **variables), shown, form.dialect.syntax)
    for order in (
        ("zqask", "zqtext", "zqhere", "zqthere", "zqdone", "zqnext"),
        ("zqhere", "zqfirst", "zqdone"),
        ("zqthere", "zqsecond", "zqdone"),
    ):
        places = [text.find(word) for word in order]
        assert -1 not in places
        assert places == sorted(places)


def test_workarounds_are_noted() -> None:
    told = {name: call_form(template, True).notes for name, (template, _, _) in FOUND.items()}
    assert {name for name, notes in told.items() if notes} == {
        *("calls are dropped", "calls and results are dropped", "a form of its own", "no tools"),
    }


def test_a_token_of_the_vocabulary_tells_of_a_dialect() -> None:
    assert call_form(template(""), True, {"<|tool_call_start|>": 7}).dialect.name == "pythonic"


def test_ids_become_those_that_a_dialect_knows() -> None:
    by_name = {dialect.name: dialect for dialect in DIALECTS}
    call = {"id": "toolu_01", "function": {"name": "look", "arguments": {}}}
    messages: list[TemplateMessage] = [
        {"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "toolu_01", "content": ""},
    ]
    for name, expected in (("Hermes", "toolu_01"), ("Kimi", "functions.look:0")):
        asked, answered = HistoryForm().apply(messages, by_name[name])
        assert asked["tool_calls"][0]["id"] == answered["tool_call_id"] == expected
    asked, answered = HistoryForm().apply(messages, by_name["Mistral"])
    assert asked["tool_calls"][0]["id"] == answered["tool_call_id"]
    assert len(answered["tool_call_id"]) == 9
    assert answered["name"] == "look"


PEERS_TEMPLATES = Path(os.environ.get("LOCALRUN_PEERS", "")) / "templates"
KNOWN_BY_RENDERING = 62  # of 70; the others leave calls out, or know no tools


@pytest.mark.slow
@pytest.mark.skipif(not os.environ.get("LOCALRUN_PEERS") or not PEERS_TEMPLATES.is_dir(), reason="no peers' templates")
def test_templates_of_llama_cpp() -> None:
    forms = {}
    for path in sorted(PEERS_TEMPLATES.glob("*.jinja")):
        template = ChatTemplate(path.read_text("utf-8"), "<BOS>", "<EOS>")
        forms[path.stem] = form = call_form(template, True)
        assert_nothing_is_lost(template, form)
    fallbacks = [name for name, form in forms.items() if form.history.written]
    assert len(forms) - len(fallbacks) >= KNOWN_BY_RENDERING, fallbacks
    assert all(forms[name].notes for name in fallbacks)
