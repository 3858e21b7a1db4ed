"""Orders of messages that templates refuse, or lose a part of, are brought into one that they show."""

import itertools
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localrun.text.message_order import arrange, order_of
from localrun.text.template import CHATML, ChatTemplate

LOOP = "{%- for m in messages -%}[{{ m.role }}]{{ m.content }}{%- endfor -%}"
TEMPLATES = {
    "takes all": CHATML,
    "wants functions": "{{- 'Functions: ' + functions + datetime -}}" + LOOP,
    "system first": "{%- for m in messages -%}{%- if m.role == 'system' and not loop.first -%}"
    "{{- raise_exception('System message must be at the beginning') -}}{%- endif -%}{{ m.content }}{%- endfor -%}",
    "drops later systems": "{%- if messages[0].role == 'system' -%}{{ messages[0].content }}{%- endif -%}"
    "{%- for m in messages if m.role != 'system' -%}{{ m.content }}{%- endfor -%}",
    "knows no system": "{%- for m in messages -%}{%- if m.role not in ('user', 'assistant') -%}"
    "{{- raise_exception('no such role') -}}{%- endif -%}{{ m.content }}{%- endfor -%}",
    "alternates": "{%- set turns = messages[1:] if messages[0].role == 'system' else messages -%}"
    "{%- if messages[0].role == 'system' -%}{{ messages[0].content }}{%- endif -%}"
    "{%- for m in turns -%}{%- if (m.role == 'user') != (loop.index0 % 2 == 0) -%}"
    "{{- raise_exception('must alternate') -}}{%- endif -%}{{ m.content }}{%- endfor -%}",
}
CODEX = ("developer", "developer", "user", "user", "assistant", "user")
CLAUDE_CODE = ("system", "system", "user", "assistant", "system", "user")
GREETED = ("system", "assistant", "user", "assistant", "user")  # as by a character of a chat


def numbered(roles: Sequence[str]) -> list[dict[str, Any]]:
    return [{"role": role, "content": f"zz{number}yy"} for number, role in enumerate(roles)]


def lost(template: ChatTemplate, messages: list[dict[str, Any]]) -> list[str]:
    """The messages that are not in the prompt, or not in their order."""
    text = template.render(arrange(template, messages).messages)
    said = [message["content"] for message in messages if message["content"]]
    places = [text.find(one) for one in said]
    if -1 not in places and places != sorted(places):
        return ["the order"]
    return [one for one, place in zip(said, places, strict=True) if place < 0]


@pytest.mark.parametrize("name", TEMPLATES)
@pytest.mark.parametrize("roles", [CODEX, CLAUDE_CODE, ("user", "user"), GREETED, ("user", "assistant", "assistant")])
def test_nothing_is_lost(name: str, roles: tuple[str, ...]) -> None:
    assert lost(ChatTemplate(TEMPLATES[name]), numbered(roles)) == []


@given(st.lists(st.sampled_from(["system", "developer", "user", "assistant"]), max_size=7))
def test_any_order_is_shown_whole(roles: list[str]) -> None:
    for source in TEMPLATES.values():
        assert lost(ChatTemplate(source), numbered([*roles, "user"])) == []


def test_who_has_to_begin_is_said() -> None:
    arranged = arrange(ChatTemplate(TEMPLATES["alternates"]), numbered(GREETED))
    assert arranged.messages[1] == {"role": "user", "content": "Hello."}
    assert arranged.notes == ("the chat template wants the user to begin: 'Hello.' was put before the first answer",)


@pytest.mark.parametrize("roles", [("user",), ("system", "user"), ("system", "user", "assistant", "user")])
def test_usual_chats_are_left_alone_and_tried_with_nothing(roles: tuple[str, ...]) -> None:
    messages = numbered(roles)
    broken = ChatTemplate("{{ raise_exception('not even looked at') }}")
    arranged = arrange(broken, messages)
    assert (arranged.messages, arranged.notes) == (messages, ())


def test_a_template_that_takes_all_is_given_all_as_it_is() -> None:
    messages = numbered(CLAUDE_CODE)
    assert arrange(ChatTemplate(LOOP), messages).messages == messages
    assert order_of(ChatTemplate(LOOP)).developer


def test_a_user_who_speaks_after_results_is_heard() -> None:
    """As Mistral's templates: calls and results stand between turns that alternate."""
    strict = ChatTemplate(
        "{%- set seen = namespace(turns=0) -%}{%- for m in messages -%}{%- if m.role != 'tool' and not m.tool_calls -%}"
        "{%- if (m.role == 'user') != (seen.turns % 2 == 0) -%}{{- raise_exception('must alternate') -}}{%- endif -%}"
        "{%- set seen.turns = seen.turns + 1 -%}{%- endif -%}[{{ m.role }}]{{ m.content }}{%- endfor -%}"
    )
    call = {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "f", "arguments": "{}"}}]}
    messages = [*numbered(("user",)), call, {"role": "tool", "content": "1"}, {"role": "tool", "content": "2"}]
    later = [{"role": "user", "content": "stop"}, {"role": "user", "content": "now"}]
    arranged = arrange(strict, messages + later)
    assert arranged.messages[4:] == [
        {"role": "assistant", "content": "Done."},
        {"role": "user", "content": "stop\n\nnow"},
    ]
    assert "results" in arranged.notes[0]
    assert arrange(strict, messages).messages == messages
    assert arrange(ChatTemplate(LOOP), messages + later).messages == messages + later, "where it need not be"


def test_a_system_message_in_the_middle_is_marked_as_one() -> None:
    arranged = arrange(ChatTemplate(TEMPLATES["system first"]), numbered(("user", "assistant", "system", "user")))
    assert arranged.messages[2] == {"role": "user", "content": "<system-reminder>\nzz2yy\n</system-reminder>"}
    assert "user's" in arranged.notes[0]


def test_parts_are_joined_as_parts() -> None:
    parts = [{"type": "text", "text": "one"}]
    messages: list[dict[str, Any]] = [{"role": "user", "content": parts}, {"role": "user", "content": "two"}]
    (joined,) = arrange(ChatTemplate(TEMPLATES["alternates"]), messages).messages
    assert "".join(part["text"] for part in joined["content"]) == "one\n\ntwo"


def test_calls_and_their_results_stay_turns_of_their_own() -> None:
    call = {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "f", "arguments": "{}"}}]}
    messages = [*numbered(("user", "user")), {"role": "assistant", "content": "hm"}, call]
    messages += [{"role": "tool", "content": "1"}, {"role": "tool", "content": "2"}]
    arranged = arrange(ChatTemplate(TEMPLATES["alternates"]), messages).messages
    assert [message["role"] for message in arranged] == ["user", "assistant", "assistant", "tool", "tool"]


def published_templates() -> dict[str, ChatTemplate]:
    """Those that llama.cpp tests with."""
    if not (peers := os.environ.get("LOCALRUN_PEERS")):
        pytest.skip("no templates: LOCALRUN_PEERS is not set")
    paths = list(Path(peers, "templates").glob("*.jinja"))
    assert paths, "`make peers` brings them"
    return {path.stem: ChatTemplate(path.read_text("utf-8"), "<s>", "</s>") for path in paths}


def wrong(template: ChatTemplate, messages: list[dict[str, Any]]) -> list[str]:
    try:
        return lost(template, messages)
    except Exception as error:
        return [str(error)]


@pytest.mark.slow
def test_templates_of_published_models_lose_nothing() -> None:
    """One stands the system message in the last turn, which is its own order."""
    orders = (CODEX[:4], CODEX, CLAUDE_CODE[:3], CLAUDE_CODE, GREETED, GREETED[1:])
    tried = itertools.product(published_templates().items(), orders)
    found = [(name, wrong(template, numbered(roles))) for (name, template), roles in tried]
    assert not [(name, missing) for name, missing in found if missing not in ([], ["the order"])]


@pytest.mark.slow
def test_templates_of_published_models_hear_who_speaks_after_results() -> None:
    call = {"id": "call12345", "type": "function", "function": {"name": "f", "arguments": {"a": "b"}}}
    messages = numbered(("user", "assistant", "tool", "user"))
    messages[1] |= {"content": "", "tool_calls": [call]}
    messages[2] |= {"tool_call_id": call["id"], "name": "f"}
    showing = [one for one in published_templates().items() if not wrong(one[1], messages[:3])]
    assert len(showing) > 50
    assert not {name: missing for name, template in showing if (missing := wrong(template, messages))}
