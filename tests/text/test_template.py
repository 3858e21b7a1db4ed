"""Chat templates: what transformers makes of them, and what happens to bad ones."""

import enum
import json
import threading
import time
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import psutil
import pytest
from localrun_testing.conversations import ASSISTANT, CONVERSATIONS, SYSTEM, TOOL_RESULT, TOOLS, USER, tool_call

from localrun.base.errors import ModelFileError, UsageError
from localrun.text import render_process
from localrun.text.template import ChatTemplate, default_template

HI = [{"role": "user", "content": "hi"}]


def render(source: str, messages: list[dict[str, Any]] = HI, **kwargs: Any) -> str:
    return ChatTemplate(source, "<s>", "</s>").render(messages, **kwargs)


def test_the_default_is_chatml() -> None:
    template = default_template()
    assert template.name == "chatml"
    assert template.render([SYSTEM, *HI]) == (
        "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n"
    )
    assert template.render(HI, add_generation_prompt=False).endswith("<|im_end|>\n")


SOURCES = {
    "variables": "{{ bos_token }}{{ eos_token }}{{ unk_token }}{{ tools }}{{ documents }}{{ add_generation_prompt }}",
    "white space": "  {% if true %}\n  a\n  {% endif %}\n  {%- set x = 1 -%}  \n{{ x }}\n\n",
    "json": "{{ tools|tojson }} {{ tools|tojson(indent=2) }} {{ messages|tojson(sort_keys=true) }} "
    "{{ 'é'|tojson(ensure_ascii=true) }} {{ {'a': 1}|tojson(separators=(',', ':')) }}",
    "loop controls": "{% for i in range(9) %}{% if i == 2 %}{% continue %}{% endif %}{% if i > 4 %}"
    "{% break %}{% endif %}"
    "{{ i }}{% endfor %}",
    "generation": "{% set x = 1 %}{% generation %}{% set x = 2 %}{{ x }}{{ messages[0].content }}"
    "{% endgeneration %}{{ x }}",
    "namespace": "{% set ns = namespace(a=1, self=2) %}{% set ns.a = ns.a + 1 %}{{ ns.a }}{{ ns.self }}",
    "dict": "{{ dict(a=1, **{'b': 2}) }}{{ dict.fromkeys(['x'], 1) }}",
    "reasoning": "{% for m in messages %}{{ m.thinking }}|{{ m.reasoning_content }}|{{ m.reasoning }};{% endfor %}",
    "missing": "{{ nothing }}{{ messages[0].nothing }}{{ nothing is defined }}{{ none }}"
    "{{ messages[0].content is none }}"
    "{{ messages[0].nothing is defined }}",
    "python": "{{ messages }} {{ true }} {{ 1.0 }} {{ 3 // 2 }} {{ '%05d' % 3 }} {{ 'a' ~ 1 ~ none }} "
    "{{ [('a', 'b')] }}",
    "strings": "{{ 'a-b'.split('-')[-1].strip().title() }}{{ '{:>5}'.format('x') }}{{ 'abc'[::-1] }}"
    "{{ 'a\nb'|indent }}",
    "filters": "{{ [3, 1]|sort|first }}{{ 'Abc'|lower|upper|trim|length }}"
    "{{ messages|map(attribute='role')|join(',') }}"
    "{{ {'b': 1, 'a': 2}|dictsort }}{{ messages|selectattr('role', 'equalto', 'user')|list|length }}",
    "markup": "{{ '<b>'|e }}{{ '<b>'|safe }}{{ '<b>' }}",
    "macros": "{% macro m(x, y=2) %}[{{ x }}{{ y }}{{ caller() if caller }}]{% endmacro %}{{ m(1) }}"
    "{% call m(3) %}!{% endcall %}",
    "appending": "{% set x = [] %}{% set _ = x.append(1) %}{{ x }}",
    "private name": "{% set ns = namespace() %}{% set ns._x = 1 %}{{ ns._x }}",
    "refusing": "{{ raise_exception('no ' + messages[0].role) }}",
    "adding": "{% for m in messages %}{{ m.content + '!' }}{% endfor %}",
    "calls": "{% for m in messages %}{% for c in m.tool_calls %}{{ c.function|tojson }}{% endfor %}{% endfor %}",
    "undefined filter": "{{ 1|nonesuch }}",
    "broken": "{% if %}",
}


def transformers_renders(source: str, messages: list[dict[str, Any]], kwargs: dict[str, Any]) -> str | None:
    """The text transformers makes of it as `apply_chat_template` does, or None where it fails."""
    from transformers.utils.chat_template_utils import render_jinja_template

    given = json.loads(json.dumps([{k: v for k, v in message.items() if v is not None} for message in messages]))
    arguments: dict[str, Any] = {"add_generation_prompt": True, "bos_token": "<s>", "eos_token": "</s>"} | kwargs
    try:
        rendered: str = render_jinja_template([given], chat_template=source, **arguments)[0][0]
    except Exception:
        return None
    return rendered


@pytest.mark.parametrize("name", SOURCES)
def test_small_templates_are_rendered_as_transformers_does(name: str) -> None:
    for messages, kwargs in CONVERSATIONS.values():
        expected = transformers_renders(SOURCES[name], messages, kwargs)
        if expected is not None:
            assert render(SOURCES[name], messages, **kwargs) == expected


def test_templates_of_published_models_are_rendered_as_transformers_does(shared_dir: Path) -> None:
    same, failed = 0, []
    for path in sorted((shared_dir / "vectors" / "templates").glob("*.jinja")):
        source = path.read_text(encoding="utf-8")
        for name, (messages, kwargs) in CONVERSATIONS.items():
            expected = transformers_renders(source, messages, kwargs)
            if expected is None:
                failed.append((path.name, name))
            else:
                assert render(source, messages, **kwargs) == expected, (path.name, name)
                same += 1
    assert same > 1000
    assert len(failed) < same / 5


SEEING = (  # SmolVLM's, in short
    "{% for m in messages %}{{ m.role|capitalize }}{% if m.content[0]['type'] == 'image' %}:{% else %}: {% endif %}"
    "{% for part in m.content %}{% if part['type'] == 'text' %}{{ part['text'] }}{% endif %}{% endfor %}<end>\n"
    "{% endfor %}{% if add_generation_prompt %}Assistant:{% endif %}"
)


def test_a_template_that_knows_only_parts_is_given_some() -> None:
    messages = [SYSTEM, *HI, {"role": "assistant", "content": ""}, {"role": "user", "content": "type"}]
    in_parts = [{**m, "content": [{"type": "text", "text": m["content"]}]} for m in messages]
    expected = transformers_renders(SEEING, in_parts, {})
    assert expected == "System: Be brief.<end>\nUser: hi<end>\nAssistant: <end>\nUser: type<end>\nAssistant:"
    assert render(SEEING, messages) == render(SEEING, in_parts) == expected


def test_dates_are_now_or_frozen() -> None:
    source = "{{ strftime_now('%Y-%m-%d %H') }}"
    assert render(source).startswith(str(datetime.now().year))
    assert ChatTemplate(source, now=datetime(2031, 5, 6, 7)).render(HI) == "2031-05-06 07"
    asks = "{{ 'Today is ' + datetime }}"  # which transformers does not know
    assert ChatTemplate(asks, now=datetime(2031, 5, 6, 7)).render(HI) == "Today is May 06 2031"


@pytest.mark.parametrize(
    ("source", "messages", "kwargs", "expected"),
    [
        ("{% for t in tools %}{{ t }}{% endfor %}ok", HI, {}, "ok"),
        (
            "{{ messages[0].content + '!' }}",
            [{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}],
            {},
            "a\nb!",
        ),
        (
            "{% for k in messages[0].tool_calls[0].function.arguments.items() %}{{ k }}{% endfor %}",
            [tool_call('{"city": "Oslo"}')],
            {},
            "('city', 'Oslo')",
        ),
        (
            "{{ messages[0].tool_calls[0].function.arguments + '!' }}",
            [tool_call({"city": "Oslo"})],
            {},
            '{"city": "Oslo"}!',
        ),
        (
            "{% if messages[0].role == 'system' %}{{ raise_exception('no system') }}{% endif %}"
            "{{ messages[0].content }}",
            [SYSTEM, *HI],
            {},
            "Be brief.\n\nhi",
        ),
        ("{{ messages[0].content + '!' }}", [tool_call({})["tool_calls"] and {"role": "assistant"}], {}, "!"),
        ("{% set x = [] %}{{ x.append(1) or x }}", HI, {}, "[1]"),
        ("{{ ('{\"a\": 1}'|from_json).a }}", HI, {}, "1"),
        ("{{ messages|map(attribute='role')|tojson }}", HI, {}, '["user"]'),
        ("{{ 'You have ' + functions + '!' }}", HI, {}, "You have !"),
        (
            "{{ 'You have ' + functions + '!' }}",
            HI,
            {"tools": [{"type": "function", "function": {"name": "f"}}]},
            'You have [\n    {\n        "name": "f"\n    }\n]!',
        ),
        (  # Command R+
            "{% for p, s in tools[0].function.parameters.properties|items %}{{ p + ': ' + s.description }}{% endfor %}",
            HI,
            {"tools": [{"type": "function", "function": {"name": "f", "parameters": {"properties": {"x": {}}}}}]},
            "x: ",
        ),
        (
            "{% for p in tools[0].function.parameters.properties|items %}{{ p }}{% endfor %}none",
            HI,
            {"tools": [{"type": "function", "function": {"name": "f"}}]},
            "none",
        ),
    ],
    ids=[
        *("tools", "parts", "arguments", "arguments as text", "system", "content", "append", "from_json", "generator"),
        *("no functions", "functions", "no description", "no parameters"),
    ],
)
def test_where_transformers_fails_the_same_is_said_in_another_way(
    source: str, messages: list[dict[str, Any]], kwargs: dict[str, Any], expected: str
) -> None:
    assert transformers_renders(source, messages, kwargs) is None
    assert render(source, messages, **kwargs) == expected


def test_a_template_may_refuse_messages_and_says_why() -> None:
    with pytest.raises(UsageError, match="refuses these messages: only user, not tool") as caught:
        render("{{ raise_exception('only \\x1b[31muser, not ' + messages[0].role) }}", [TOOL_RESULT])
    assert "\x1b" not in caught.value.message


@pytest.mark.parametrize(
    "messages",
    [["text"], [1], [{"role": "user", "content": [[[]]] * 3}, None]],
)
def test_messages_have_to_be_messages(messages: Any) -> None:
    with pytest.raises(UsageError):
        render("{{ messages }}", messages)


def test_a_tool_has_to_be_a_schema() -> None:
    with pytest.raises(UsageError, match="schema"):
        render("{{ tools }}", tools=[print])


def test_endlessly_nested_messages_are_refused() -> None:
    content: list[Any] = []
    content.append(content)
    with pytest.raises(UsageError):
        render("{{ messages }}", [{"role": "user", "content": content}])


def test_objects_reach_a_template_as_plain_data() -> None:
    class Text(str):
        secret = "s"

        def __str__(self) -> str:
            return "another text"

    class Level(enum.IntEnum):
        HIGH = 3

    source = "{{ messages[0].content }}{{ messages[0].content.secret }}{{ messages[0].x }}{{ y }}"
    message = {"role": "user", "content": Text("t"), "x": object()}
    assert render(source, [message], y=(1, True, None, Level.HIGH, 1.5)) == "t<object>(1, True, None, 3, 1.5)"


def test_text_that_is_no_unicode_survives() -> None:
    assert render("{{ messages[0].content }}", [{"role": "user", "content": "a\ud800"}]) == "a\ud800"


def test_long_prompts_are_no_attack() -> None:
    text = "word " * 400_000
    assert render("{{ messages[0].content }}", [{"role": "user", "content": text}]) == text


def test_capabilities() -> None:
    source = "{{ tools }}{{ documents }}{{ enable_thinking }}{% for m in messages %}{{ m.content }}{% endfor %}"
    found = ChatTemplate(source).capabilities
    assert (found.tools, found.documents, found.system, found.thinking) == (True, True, True, "enable_thinking")
    plain = ChatTemplate("{{ messages[-1].content }}").capabilities
    assert (plain.tools, plain.documents, plain.system, plain.thinking) == (False, False, False, None)
    assert plain.variables == {"messages"}


@pytest.mark.parametrize(
    ("source", "on", "off"),
    [
        ("{{ enable_thinking }}", {"enable_thinking": True}, {"enable_thinking": False}),
        ("{{ thinking }}{{ reasoning_effort }}", {"thinking": True}, {"thinking": False}),
        ("{{ thinking_mode }}", {"thinking_mode": "enabled"}, {"thinking_mode": "disabled"}),
        ("{{ reasoning_effort }}", {"reasoning_effort": "high"}, {"reasoning_effort": "low"}),
        ("{{ reasoning_effort == 'no_think' }}", {"reasoning_effort": "high"}, {"reasoning_effort": "no_think"}),
        ("{{ messages }}", {}, {}),
    ],
)
def test_thinking_is_switched_in_the_templates_own_way(source: str, on: dict[str, Any], off: dict[str, Any]) -> None:
    found = ChatTemplate(source).capabilities
    assert (found.thinking_arguments(True), found.thinking_arguments(False)) == (on, off)


BOMBS = {
    "nested range": "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
    "output": "{% for i in range(99999) %}{% for j in range(99999) %}aaaaaaaaaa{% endfor %}{% endfor %}",
    "one output": "{{ 'a' * 3000000 }}",
    "repeat": "{{ 'a' * 10000000000 }}",
    "power": "{{ 10 ** (10 ** 9) }}",
    "width": "{{ '{:>2000000000}'.format(1)|length }}",
    "percent": "{{ ('%2000000000d' % 1)|length }}",
    "center": "{{ 'a'.center(2000000000)|length }}",
    "doubling": "{% set ns = namespace(s='aaaaaaaa') %}{% for i in range(60) %}"
    "{% set ns.s = ns.s ~ ns.s %}{% endfor %}",
    "lists": "{% set ns = namespace(a=[0]) %}{% for i in range(60) %}{% set ns.a = ns.a + ns.a %}{% endfor %}",
    "indent": "{{ 'a\nb'|indent(1000000000)|length }}",
    "slice": "{{ [1]|slice(100000000)|list|length }}",
    "batch": "{{ [1]|batch(1000000000, 'x')|list|length }}",
    "wordwrap": "{{ ('a' * 2000000)|wordwrap(1)|length }}",
    "join": "{{ range(99999)|join('a' * 100000)|length }}",
    "json": "{{ {'a': [1, 2]}|tojson(indent=1000000000)|length }}",
    "laughs": "{% set ns = namespace(a=['x']) %}{% for i in range(40) %}{% set ns.a = [ns.a, ns.a] %}{% endfor %}"
    "{{ ns.a|string|length }}",
    "macros": "{% macro a(n) %}{% if n %}{{ a(n - 1) }}{{ a(n - 1) }}{% endif %}x{% endmacro %}{{ a(60) }}",
    "sums": "{% set r = [range(99999)] * 9999 %}{{ r|map('sum')|list|length }}",
    "long": "x" * 300_000,
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_stopped(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    peak = 0
    done = threading.Event()

    def watch() -> None:
        nonlocal peak
        while not done.wait(0.005):
            renderer = render_process.RENDERER._process
            with suppress(psutil.Error):
                peak = max(peak, psutil.Process(renderer.pid).memory_info().rss if renderer else 0)

    watcher = threading.Thread(target=watch)
    watcher.start()
    start = time.monotonic()
    try:
        with monkeypatch.context() as patch:
            patch.setattr(render_process, "RENDER_SECONDS", 0.5)
            with pytest.raises(ModelFileError) as caught:
                render(BOMBS[name])
    finally:
        done.set()
        watcher.join()
    assert caught.value.code == "TEMPLATE_LIMIT"
    assert time.monotonic() - start < 60  # 0.5, and more on a busy machine; a bomb would take for ever
    assert peak < 300 << 20
    assert render("{{ messages[0].content }}") == "hi"  # the next one finds everything in order


@pytest.mark.parametrize(
    "source",
    [
        "{% if %}",
        "{% for x in y %}",
        "{{ 1|nonesuch }}",
        "{{ undefined_function() }}",
        "{{ " + "(" * 20_000 + "1" + ")" * 20_000 + " }}",
        "{% if 1 %}" * 500 + "{% endif %}" * 500,
        "{{ range(10 ** 9) }}",
        "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
        "{% include '/etc/passwd' %}",
        "{% import 'os' as os %}",
        "{% extends 'x' %}",
    ],
    ids=range(11),
)
def test_a_wrong_template_fails_when_it_is_used(source: str) -> None:
    template = ChatTemplate(source)
    assert template.sha256
    with pytest.raises(ModelFileError) as caught:
        template.render(HI)
    assert caught.value.code == "BAD_TEMPLATE"


@pytest.mark.parametrize(
    "source",
    [
        "{{ ''.__class__.__mro__ }}",
        "{{ ''['__class__'] }}",
        "{{ ''|attr('__class__') }}",
        "{{ '{0.__class__}'.format('') }}",
        "{{ '{0.__class__.__base__}'|format('') }}",
        "{{ cycler.__init__.__globals__ }}",
        "{{ lipsum.__globals__['os'].popen('id').read() }}",
        "{{ self.__init__.__globals__ }}",
        "{{ dict.__base__ }}{{ dict.__call__.__globals__ }}",
        "{{ namespace.__init__.__globals__ }}",
        "{{ raise_exception.__globals__ }}",
        "{{ strftime_now.__closure__ }}",
        "{{ range.__self__ }}",
        "{{ namespace(__class__=1) }}",
        "{% set ns = namespace() %}{% set ns.__init__ = 1 %}",
        "{{ [].__class__.__base__.__subclasses__() }}",
        "{{ messages[0].items.__self__ }}",
        "{{ (messages|map('attr', '__class__')|list)[0] }}",
        "{% for x in (1).__class__.__mro__ %}{{ x }}{% endfor %}",
        "{{ x.__init__.__globals__.__builtins__ }}",
    ],
    ids=range(20),
)
def test_nothing_leads_out_of_the_sandbox(source: str) -> None:
    try:
        assert not any(sign in render(source) for sign in ("class", "function", "<module", "object at", "uid="))
    except ModelFileError as error:
        assert error.code == "BAD_TEMPLATE"  # noqa: PT017


@pytest.mark.parametrize(
    "source", ["{{ messages.append(1) }}", "{{ messages[0].update({'a': 1}) }}", "{{ messages.clear() }}"]
)
def test_a_template_cannot_change_what_it_was_given(source: str) -> None:
    messages = [USER, ASSISTANT]
    render(source, messages, tools=TOOLS)
    assert messages == [USER, ASSISTANT]
