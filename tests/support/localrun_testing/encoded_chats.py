"""The ids of a chat, from its messages and a template alone."""

from collections.abc import Mapping, Sequence
from typing import Any

from localrun.text.prompt import encode_rendered, render_chat
from localrun.text.template import ChatTemplate
from localrun.text.tokenizer import Tokenizer


def encode_chat(
    tokenizer: Tokenizer, template: ChatTemplate, messages: Sequence[Mapping[str, Any]], **kwargs: Any
) -> list[int]:
    """The ids of a rendered chat, with exactly one BOS if the model wants one. Takes and raises as `render_chat`."""
    return encode_rendered(tokenizer, render_chat(tokenizer, template, messages, **kwargs))
