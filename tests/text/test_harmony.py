"""Harmony and Muse: channels of a stream wherever it is cut, and a chat whose template leaves thoughts out of the
history."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from localrun_testing.vocabularies import byte_level

from localrun.base.events import ToolCallDelta
from localrun.base.request import Request, Sampling
from localrun.client.rewritten_history import rewritten_history
from localrun.engine.answer import AnswerStream
from localrun.text.harmony import HARMONY, MUSE, HarmonySplitter, HeaderForm
from localrun.text.model_text import ModelText
from localrun.text.reasoning import reasoning_tags
from localrun.text.template import ChatTemplate
from localrun.text.tokenizer import tokenizer_from_gguf
from localrun.text.tool_calls.dialects import DIALECTS
from localrun.text.tool_calls.syntax import Tools

CONTROL = ("<|return|>", "<|channel|>", "<|start|>", "<|end|>", "<|message|>", "<|call|>", "<|constrain|>")
TEMPLATE = """<|start|>system<|message|>Reasoning: {{ reasoning_effort or 'medium' }}<|end|>
{%- for m in messages %}
{%- if m.role == 'assistant' %}<|start|>assistant<|channel|>final<|message|>{{ m.content }}<|end|>
{%- else %}<|start|>{{ m.role }}<|message|>{{ m.content }}<|end|>{% endif %}
{%- endfor %}
{%- if add_generation_prompt %}<|start|>assistant{% endif %}{# <|channel|>analysis #}"""
HEADERS = {
    "<|channel|>analysis": ("thinking", ""),
    "<|channel|>final": ("answer", ""),
    "<|channel|>commentary": ("answer", ""),
    "<|channel|>commentary to=functions.look_up <|constrain|>json": ("answer", "functions.look_up "),
    " to=functions.now<|channel|>commentary json": ("answer", "functions.now "),
}
MUSE_HEADERS = {
    " to=self": ("thinking", ""),
    " to=user": ("answer", ""),
    "": ("answer", ""),
    " to=self_service.look_up": ("answer", ""),  # the call itself names its function
}
FORMS = {HARMONY: (HEADERS, "<|end|>"), MUSE: (MUSE_HEADERS, "<|eom|>")}
PLACES = st.lists(st.tuples(st.integers(0, 99), st.text("ab<|>\n", min_size=1, max_size=12)), max_size=5)


@pytest.fixture(scope="module")
def text() -> ModelText:
    tokenizer = tokenizer_from_gguf(byte_level(specials=CONTROL, bos_token_id=None, eos_token_id=267))
    return ModelText(tokenizer, ChatTemplate(TEMPLATE), reasoning_tags(TEMPLATE), Sampling(), ())


def ask(question: str) -> Request:
    return Request(messages=({"role": "user", "content": question},))


@pytest.mark.parametrize("form", FORMS, ids=["harmony", "muse"])
@given(PLACES, st.lists(st.integers(1, 7), min_size=1, max_size=20))
def test_channels_are_those_of_the_messages(
    form: HeaderForm, messages: list[tuple[int, str]], sizes: list[int]
) -> None:
    headers, end = FORMS[form]
    stream = ""
    said: dict[str, list[str]] = {"answer": [], "thinking": []}
    for index, (place, body) in enumerate(messages):
        header, (channel, called) = list(headers.items())[place % len(headers)]
        stream += (f"{end}<|start|>assistant" if index else "") + f"{header}<|message|>{body}"
        said[channel].append(called + body)
    splitter, found, at = HarmonySplitter(form=form), {"answer": "", "thinking": ""}, 0
    while at < len(stream):
        size = sizes[at % len(sizes)]
        for name, piece in splitter.push(stream[at : at + size]):
            assert piece
            found[name] += piece
        at += size
    for name, piece in splitter.flush():
        found[name] += piece
    assert found == {name: "\n\n".join(texts) for name, texts in said.items()}


def test_a_header_that_never_ends_is_shown() -> None:
    splitter = HarmonySplitter()
    assert splitter.push("<|channel|>final and no more") == []
    assert splitter.flush() == [("answer", "<|channel|>final and no more")]


def test_a_prompt_may_open_the_thought() -> None:
    tags = reasoning_tags(TEMPLATE)
    assert tags is not None
    assert tags.splitter("<|start|>assistant<|channel|>analysis<|message|>").push("hm") == [("thinking", "hm")]
    assert tags.splitter("<|start|>assistant<|channel|>final<|message|>").push("hm") == [("answer", "hm")]
    assert tags.splitter("a raw prompt").push("hm<|end|>") == [("answer", "hm")]


def test_the_ids_of_an_answer_become_its_channels(text: ModelText) -> None:
    """Control tokens reach the splitter, and of these no more than return and call end an answer."""
    tokenizer = text.tokenizer
    assert {tokenizer.token_text(i) for i in tokenizer.eog_ids} == {"<|return|>", "<|call|>"}
    said = "<|channel|>analysis<|message|>hello?<|end|><|start|>assistant<|channel|>final<|message|>hello world"
    answer = AnswerStream(text.parser(ask("hi"), text.prepare(ask("hi")).ids), ())
    for token_id in tokenizer.encode(said, special=True):
        list(answer.push(token_id))
    list(answer.flush())
    assert (answer.text("thinking"), answer.text("answer")) == ("hello?", "hello world")
    assert answer.n_thinking == len(tokenizer.encode("hello?"))


@pytest.mark.parametrize("thought", ["hello? 12", ""])
def test_the_history_without_thoughts_is_known_before_the_next_turn(text: ModelText, thought: str) -> None:
    """Known ids are kept up to where the thought began, and the rest is what the next turn begins with."""
    tokenizer, request, said = text.tokenizer, ask("hi"), "hello world"
    prompt = text.prepare(request).ids
    analysis = f"<|channel|>analysis<|message|>{thought}<|end|><|start|>assistant" if thought else ""
    written = f"{analysis}<|channel|>final<|message|>{said}<|return|>"
    known = [*prompt, *tokenizer.encode(written, special=True)]
    again = rewritten_history(text, request, said, thought, known)
    turn = ({"role": "assistant", "content": said, "reasoning_content": thought}, {"role": "user", "content": "12?"})
    following = text.prepare(Request(messages=request.messages + turn, known_ids=tuple(known)))
    shown = tokenizer.decode(again, special=True)
    assert shown.endswith(f"<|start|>assistant<|channel|>final<|message|>{said}<|end|><|start|>user<|message|>")
    assert following.ids[: len(again)] == again
    assert following.n_kept == (len(prompt) + 1 if thought else len(known) - 1)
    assert "rewrote turn 1" in following.note


def test_the_published_template(shared_dir: Path) -> None:
    template = ChatTemplate((shared_dir / "vectors" / "templates" / "openai-gpt-oss-120b.jinja").read_text())
    tags, abilities = reasoning_tags(template.source), template.capabilities
    assert tags is not None
    assert tags.headers
    assert abilities.thinking_arguments(True) == {"reasoning_effort": "high"}
    assert abilities.thinking_arguments(False) == {"reasoning_effort": "low"}
    turns = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yo", "reasoning_content": "hm"}]
    written = template.render([*turns, {"role": "user", "content": "so?"}], reasoning_effort="low")
    assert "Reasoning: low" in written
    assert "hm" not in written
    assert written.endswith("<|channel|>final<|message|>yo<|end|><|start|>user<|message|>so?<|end|><|start|>assistant")


MUSE_CALL = """<atem:function_calls>
<atem:invoke name="look_up">
<atem:parameter name="word">kiwi</atem:parameter>
</atem:invoke>
</atem:function_calls>"""


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_a_call_of_muse_between_its_messages(size: int) -> None:
    """A header tells the kind of a message, and marks of their own where the call begins and ends."""
    (dialect,) = (dialect for dialect in DIALECTS if dialect.name == "Muse")
    again = "<|start|>assistant"
    written = f" to=self<|message|>I look.<|eom|>{again} to=look_up<|message|>{MUSE_CALL}<|eom|>{again}<|message|>Kiwi!"
    tool = {"type": "function", "function": {"name": "look_up", "parameters": {"properties": {"word": {}}}}}
    parser = dialect.parser(Tools([tool]), lambda index, name: "id", HarmonySplitter(form=MUSE))
    pieces = [piece for at in range(0, len(written), size) for piece in parser.push(written[at : at + size])]
    pieces += parser.flush()
    calls = [piece for piece in pieces if isinstance(piece, ToolCallDelta)]
    assert {call.name for call in calls} == {"look_up"}
    assert json.loads("".join(call.arguments for call in calls)) == {"word": "kiwi"}
    texts = {
        name: "".join(p[1] for p in pieces if not isinstance(p, ToolCallDelta) and p[0] == name)
        for name in ("thinking", "answer")
    }
    assert texts == {"thinking": "I look.", "answer": "Kiwi!"}


def test_the_published_template_of_muse(shared_dir: Path) -> None:
    template = ChatTemplate((shared_dir / "vectors" / "templates" / "muse-glimmer.jinja").read_text())
    tags, abilities = reasoning_tags(template.source), template.capabilities
    assert tags is not None
    assert tags.headers is MUSE
    assert abilities.thinking_arguments(False) == {"reasoning_strength": "low"}
    turns = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yo", "reasoning_content": "hm"}]
    written = template.render([*turns, {"role": "user", "content": "so?"}], reasoning_strength="low")
    assert "Reasoning strength: low." in written
    assert written.endswith("<|start|>user<|message|>so?<|eot|><|start|>assistant")
    answer = written.partition("<|start|>assistant")[2].partition("<|start|>user")[0]
    assert HarmonySplitter(form=MUSE).push(answer) == [("thinking", "hm"), ("answer", "yo")]
