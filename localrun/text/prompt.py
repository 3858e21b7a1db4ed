"""Messages to token ids. Control tokens come from the template only; message texts stay text.

The texts of messages are rendered a second time, with a hieroglyph for each character that begins a control token. If
that changes nothing else, it shows which control tokens in the prompt begin inside a message.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

from localrun.base.dataclass import dataclass
from localrun.base.errors import LocalrunError
from localrun.text.template import ChatTemplate
from localrun.text.template_fallbacks import called_functions, plain_messages
from localrun.text.tokenizer import Tokenizer

if TYPE_CHECKING:
    from localrun.text.tool_calls.syntax import Syntax

# Hieroglyphs are printable, have no case and are hardly ever in a chat; for a chat in hieroglyphs there are characters
# for private use.
_STAND_INS = range(0x13000, 0x13430), range(0x100000, 0x10FFFE)

Inputs = dict[str, Any]
Render = Callable[[Inputs], str]


@dataclass(frozen=True, slots=True)
class RenderedChat:
    """The text of a chat; `marked` is the same with a stand-in wherever a message spells a control token."""

    text: str
    marked: str


def render_chat(
    tokenizer: Tokenizer,
    template: ChatTemplate,
    messages: Sequence[Mapping[str, Any]],
    *,
    tools: Sequence[Mapping[str, Any]] | None = None,
    add_generation_prompt: bool = True,
    tags: Sequence[str] = (),
    calls: "Syntax | None" = None,
    **kwargs: Any,
) -> RenderedChat:
    """Render the text of a chat; `kwargs` are the template's own variables. Raises like `ChatTemplate.render`.

    A template that looks for the `tags` around a thought sees none in an answer whose thought is separate: tags in such
    an answer are text that the model wrote. `calls` says how calls inside a text are written.
    """
    stand_ins = _stand_ins({tag[0] for tag in tags}, _texts(messages))
    back = str.maketrans({mark: letter for letter, mark in stand_ins.items()})
    messages = [_hide(tags, stand_ins, message) for message in messages]

    def render(inputs: Inputs) -> str:
        variables = {name: value for name, value in inputs.items() if name != "messages"}

        def of(shown: Sequence[Mapping[str, Any]]) -> str:
            return template.render(shown, add_generation_prompt=add_generation_prompt, **variables)

        if calls is None:
            return of(inputs["messages"])
        from localrun.text.tool_calls.written import render_written

        return render_written(of, inputs["messages"], calls)

    inputs = {**kwargs, "messages": list(messages), "tools": tools}
    prompt, marked = _render_marked(tokenizer, render, inputs)
    if _shows_python(messages, prompt):
        prompt, marked = _render_marked(tokenizer, render, inputs | {"messages": plain_messages(messages)})
    return RenderedChat(prompt.translate(back), marked)


def encode_rendered(tokenizer: Tokenizer, rendered: RenderedChat) -> list[int]:
    """The ids of a rendered chat: control tokens of the template only, with exactly one BOS if the model wants one."""
    return tokenizer.with_bos(_encode_marked(tokenizer, rendered.text, rendered.marked))


def _render_marked(tokenizer: Tokenizer, render: Render, inputs: Inputs) -> tuple[str, str]:
    """The prompt, and the same with a stand-in wherever a message may begin to spell a control token."""
    letters, spelled = tokenizer.control_letters, _texts(inputs)
    if not any(letter in spelled for letter in letters):
        prompt = render(inputs)
        return prompt, prompt
    failure: LocalrunError | None = None
    try:
        prompt = render(inputs)
    except LocalrunError as error:  # a template may refuse control tokens in messages, which are only text to us
        prompt, failure = "", error
    stand_ins = _stand_ins(letters, spelled + prompt)
    letter_of = {mark: letter for letter, mark in stand_ins.items()}
    pattern = tokenizer.control_pattern
    marks: tuple[Callable[[str], str], ...] = (
        lambda text: _replaced(text, stand_ins),
        lambda text: pattern.sub(lambda match: stand_ins[match[0][0]] + match[0][1:], text),
    )
    for mark in marks:  # the second, for templates that look for tags in messages, leaves all but whole tokens alone
        try:
            marked = render(_map_texts(inputs, mark))
        except LocalrunError as error:
            failure = failure or error
            continue
        text = _replaced(marked, letter_of)
        if failure or text == prompt:
            return text, marked
    if failure:
        raise failure
    return text, marked  # the template looks at control tokens in messages: it has not seen any


def _replaced(text: str, others: Mapping[str, str]) -> str:
    """The text with other characters, none of which is among those replaced: faster than `str.translate`."""
    for letter, other in others.items():
        text = text.replace(letter, other)
    return text


def _encode_marked(tokenizer: Tokenizer, prompt: str, marked: str) -> list[int]:
    if marked == prompt:
        return tokenizer.encode(prompt, special=True)
    matches = list(tokenizer.control_pattern.finditer(prompt))
    genuine = [match for match in matches if marked[match.start()] == prompt[match.start()]]
    if len(genuine) == len(matches):
        return tokenizer.encode(prompt, special=True)
    ids: list[int] = []
    position = 0
    for match in genuine:
        token_id = tokenizer.control_tokens[match[0]]
        strips_left, strips_right = tokenizer.strips(token_id)
        text = prompt[position : match.start()]
        ids += [*tokenizer.encode(text.rstrip() if strips_left else text), token_id]
        position = match.end()
        if strips_right:
            position += len(prompt[position:]) - len(prompt[position:].lstrip())
    return ids + tokenizer.encode(prompt[position:])


def _hide(tags: Sequence[str], stand_ins: Mapping[str, str], message: Mapping[str, Any]) -> Mapping[str, Any]:
    if not isinstance(message, Mapping) or message.get("reasoning_content") is None:
        return message
    if not isinstance(content := message.get("content"), str):
        return message
    for tag in tags:
        content = content.replace(tag, stand_ins[tag[0]] + tag[1:])
    return {**message, "content": content}


def _shows_python(messages: Sequence[Mapping[str, Any]], prompt: str) -> bool:
    """Whether a template printed a list of parts as Python writes it, or JSON inside JSON."""
    for message in messages:
        content = message.get("content")
        if isinstance(content, list) and str(content) in prompt:
            return True
        for function in called_functions(message):
            arguments = function.get("arguments")
            if isinstance(arguments, str) and '"' in arguments and json.dumps(arguments, ensure_ascii=False) in prompt:
                return True
    return False


def _stand_ins(letters: set[str], used: str) -> dict[str, str]:
    """An unused character for each letter."""
    free = (char for char in map(chr, chain(*_STAND_INS)) if char not in used)
    return dict(zip(sorted(letters), free, strict=False))


def _texts(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        return "\0".join([*map(_texts, value), *map(_texts, value.values())])
    return "\0".join(map(_texts, value)) if isinstance(value, (list, tuple)) else ""


def _map_texts(value: Any, change: Callable[[str], str]) -> Any:
    """`value` with all texts changed, and keys that are not plain names."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {key if _is_name(key) else change(key): _map_texts(item, change) for key, item in value.items()}
    return [_map_texts(item, change) for item in value] if isinstance(value, (list, tuple)) else value


def _is_name(key: Any) -> bool:
    return not isinstance(key, str) or key.isidentifier()
