"""Token counts and finish reasons in OpenAI's terms."""

from collections.abc import Sequence

from localrun.base.events import Completion
from localrun.base.request import Json


def usage(completions: Sequence[Completion], n: int | None = None) -> Json:
    """Token counts of prompts and their answers, `n` to each, prompt by prompt; None: all are to one. Cached ones
    count as prompt tokens."""
    firsts = completions[:: n or len(completions)]
    prompt = sum(completion.prompt_tokens or 0 for completion in firsts)
    cached = sum(completion.cached_tokens or 0 for completion in firsts)
    written = sum(completion.completion_tokens for completion in completions)
    return {
        "prompt_tokens": prompt,
        "completion_tokens": written,
        "total_tokens": prompt + written,
        "prompt_tokens_details": {"cached_tokens": cached},
        "completion_tokens_details": {"reasoning_tokens": sum(one.thinking_tokens or 0 for one in completions)},
    }


def finish_reason(completion: Completion) -> str:
    """Why an answer ended. `length` also where the context is full or a call was cut; `stop` also for answers that were
    cancelled or only repeated themselves."""
    if completion.ends_in_calls:
        return "tool_calls"
    return "length" if completion.stop_reason == "length" else "stop"
