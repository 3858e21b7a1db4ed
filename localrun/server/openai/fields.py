"""Fields that OpenAI's protocols share: how to choose tokens, and how many."""

from collections.abc import Iterable
from dataclasses import replace
from typing import cast

from localrun.base.check import MAX_BIAS
from localrun.base.request import Priority, Request, Sampling, Think
from localrun.server.inference import InferenceRequest
from localrun.server.request.fields import inference_request
from localrun.server.request.json_body import Body

MAX_ANSWERS = 8
MAX_STOPS = 16
MAX_TOKENS = 1 << 24
MAX_INTEGER = (1 << 63) - 1
N_SEEDS = 1 << 64
_EFFORT: dict[str, Think] = {
    **dict.fromkeys(("none", "minimal"), "off"),
    **dict.fromkeys(("low", "medium", "high", "xhigh", "max"), "on"),
}


def openai_request(body: Body, requests: tuple[Request, ...], ignored: Iterable[str]) -> InferenceRequest:
    """The request of a body, with the class and the session that it names. Raises Refusal, naming the field."""
    asked = inference_request(body, requests, ignored)
    return replace(asked, priority=priority(body), session=body.text("prompt_cache_key"))


def sampling(body: Body) -> Sampling:
    """How tokens are chosen."""
    return Sampling(
        temperature=body.setting("temperature", "temperature"),
        top_k=0 if body.values.get("top_k") == -1 else body.setting("top_k", "top_k"),  # as vLLM spells "all"
        top_p=body.setting("top_p", "top_p"),
        min_p=body.setting("min_p", "min_p"),
        repeat_penalty=body.setting("repeat_penalty", "repeat_penalty")
        or body.setting("repetition_penalty", "repeat_penalty"),
        presence_penalty=body.setting("presence_penalty", "presence_penalty"),
        frequency_penalty=body.setting("frequency_penalty", "frequency_penalty"),
        logit_bias=_bias(body),
        seed=_seed(body),
    )


def _seed(body: Body) -> int | None:
    """The seed; -1 is for any, as others have it. OpenAI's may be negative."""
    wish = body.whole("seed", None, -MAX_INTEGER - 1, N_SEEDS - 1)
    return None if wish == -1 else wish and wish % N_SEEDS


def answers(body: Body) -> int:
    """How many answers there are to be to each prompt."""
    return body.whole("n", 1, 1, MAX_ANSWERS) or 1


def max_tokens(body: Body, *names: str) -> int | None:
    """The longest answer, by the first of these names that is there; None for as much as the context holds. A number
    beyond that is no error: many clients send the same for every model."""
    for name in names:
        if name in body:
            return None if body.values[name] == -1 else longest(body, name, 1)
    return None


def longest(body: Body, name: str, least: int) -> int | None:
    """A number of tokens, which may be far more than any context has; None where it is missing."""
    wish = body.whole(name, None, least, MAX_INTEGER)
    return wish and min(wish, MAX_TOKENS)


def priority(body: Body) -> Priority:
    """Priority of a request: by a number, of which the least goes first, else `background` for the flexible tier."""
    rank = body.whole("priority", None, -MAX_INTEGER, MAX_INTEGER)
    if rank is None:
        return "background" if body.values.get("service_tier") == "flex" else "api"
    return "interactive" if rank < 0 else "background" if rank else "api"


def stops(body: Body) -> tuple[str, ...]:
    """Texts that end an answer; empty ones are left out."""
    return tuple(filter(None, body.texts("stop", MAX_STOPS)))


def think(body: Body) -> Think:
    """Whether a thinking model thinks: by a switch, as templates, DeepSeek or Qwen name it, or by an effort."""
    kwargs, mode = body.inner("chat_template_kwargs").values, body.values.get("thinking")
    for wish in (kwargs.get("enable_thinking"), kwargs.get("thinking"), body.values.get("enable_thinking")):
        if isinstance(wish, bool):
            return "on" if wish else "off"
    if isinstance(mode, dict) and mode.get("type") in ("enabled", "disabled"):
        return "on" if mode["type"] == "enabled" else "off"
    if "reasoning_effort" not in body and isinstance(body.values.get("reasoning"), dict):  # as OpenRouter and Ollama
        return effort(body.inner("reasoning"), "effort")
    return effort(body, "reasoning_effort")


def effort(body: Body, name: str) -> Think:
    """Whether a thinking model thinks, by how much it is asked to."""
    return _EFFORT[body.choice(name, tuple(_EFFORT), "")] if name in body else "auto"


def _bias(body: Body) -> dict[int, float]:
    bias = {}
    for token, value in body.inner("logit_bias").values.items():
        is_number = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= MAX_BIAS
        if not token.isdecimal() or len(token) > 10 or not is_number:
            raise body.wrong("logit_bias", '{"token id": number} is needed')
        bias[int(token)] = float(cast(float, value))
    return bias
