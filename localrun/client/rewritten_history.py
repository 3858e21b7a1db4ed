"""Compute a chat as the next turn will render it, while the user reads, where a template rewrites history."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from localrun.base.errors import LocalrunError
from localrun.base.request import Request
from localrun.text.image_tokens import KnownImages
from localrun.text.model_text import NO_IMAGES, ModelText


def rewritten_history(
    text: ModelText,
    request: Request,
    answer: str,
    thinking: str,
    known: Sequence[int],
    images: KnownImages = NO_IMAGES,
) -> list[int]:
    """The ids that the next turn begins with, where the template will have rewritten `known`: prompt and answer so far.

    Empty where it leaves them alone, which is the rule; templates of thinking models drop the thoughts of old turns.
    """
    if not request.messages:
        return []

    def next_prompt(question: str) -> Request:
        turn: tuple[dict[str, Any], ...] = (
            {"role": "assistant", "content": answer, "reasoning_content": thinking},
            {"role": "user", "content": question},
        )
        return replace(request, messages=request.messages + turn, known_ids=tuple(known))

    try:
        one = text.prepare(next_prompt("1"), images=images)
        if not one.note:
            return []
        other = text.prepare(next_prompt("?"), images=images)
    except LocalrunError:  # a template that cannot show such a chat will say so when it is asked to
        return []
    end = next((i for i, (a, b) in enumerate(zip(one.ids, other.ids, strict=False)) if a != b), 0)
    return one.ids[:end]
