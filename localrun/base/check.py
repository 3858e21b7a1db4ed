"""Checks of requests: every figure is looked at here, before anything is computed."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

from localrun.base.adapter_choice import read_adapter
from localrun.base.constraint import Constraint, check_constraint
from localrun.base.errors import UsageError
from localrun.base.parsers import neither
from localrun.base.request import (
    DRAFTERS,
    BackendName,
    KVCodecName,
    LoadOptions,
    Overflow,
    Priority,
    Request,
    Sampling,
    Think,
    ToolChoice,
)
from localrun.base.setting_rows import SETTINGS
from localrun.base.tool_choice import names_of

MAX_BIAS = 1e6
MAX_LOGPROBS = 20  # of the likeliest tokens, beside the one that came
_CHOSEN = tuple(name for name in Sampling.__dataclass_fields__ if name in SETTINGS)


def check_request(request: Request) -> None:
    """Types and ranges of all that a face may set."""
    check_sampling(request.sampling)
    check_bias(request.sampling.logit_bias)
    if request.max_tokens != 0 or request.prompt_logprobs is None:  # which may be all that is wanted
        check_number("max_tokens", request.max_tokens)
    check_logprobs("logprobs", request.logprobs)
    check_logprobs("prompt_logprobs", request.prompt_logprobs)
    check_number("ctx", request.ctx)
    check_choice("think", request.think, get_args(Think))
    check_choice("overflow", request.overflow, get_args(Overflow))
    check_choice("priority", request.priority, get_args(Priority))
    check(request.deadline is None or is_duration(request.deadline), "deadline", request.deadline, "seconds are needed")
    is_time = is_duration(request.gather_ms) and isinstance(request.gather_ms, int)
    check(is_time, "gather_ms", request.gather_ms, "milliseconds are needed, as a whole number")
    check(isinstance(request.stop_on_loop, bool), "stop_on_loop", request.stop_on_loop, "True or False is needed")
    _check_text(request)
    _check_tools(request)
    if request.constraint is not None:
        check(isinstance(request.constraint, Constraint), "constraint", request.constraint, "a Constraint is needed")
        check_constraint(request.constraint)
    for text in request.stop:
        check(isinstance(text, str) and text != "", "stop", text, "a text that is not empty is needed")


def _check_text(request: Request) -> None:
    """Check the prompt, its ids or the messages."""
    check(request.prompt is None or isinstance(request.prompt, str), "prompt", request.prompt, "a text is needed")
    is_ids = all(isinstance(token, int) and not isinstance(token, bool) for token in request.prompt_ids)
    check(is_ids, "prompt_ids", request.prompt_ids, "token ids are needed")
    check(isinstance(request.continues, bool), "continues", request.continues, "True or False is needed")
    for message in request.messages:
        is_one = isinstance(message, Mapping) and isinstance(message.get("role"), str)
        check(is_one, "a message", message, '{"role": "user", "content": "…"} is needed')
    is_answer = bool(request.messages) and request.messages[-1].get("role") == "assistant"
    check(is_answer or not request.continues, "continues", True, "the last message has to be an answer")


def _check_tools(request: Request) -> None:
    """Check the tools, and which of them may or must be called."""
    check_choice("tool_choice", request.tool_choice, get_args(ToolChoice))
    names = names_of(request.tools)
    can_call = bool(names) and bool(request.messages)
    check(can_call or request.tool_choice != "required", "tool_choice", "required", "messages and tools are needed")
    for field in ("allowed_tools", "described_tools"):
        for name in getattr(request, field):
            check(name in names, field, name, f"one of {', '.join(names) or 'some tools'} is needed")
    is_flag = isinstance(request.parallel_tool_calls, bool)
    check(is_flag, "parallel_tool_calls", request.parallel_tool_calls, "True or False is needed")


def check_load(options: LoadOptions) -> None:
    """Types and ranges of how a model is to be held."""
    check_choice("backend", options.backend, get_args(BackendName))
    check_choice("kv", options.kv, get_args(KVCodecName))
    check(isinstance(options.draft, str), "draft", options.draft, "a text is needed")
    path = Path(options.draft)
    check(options.draft in DRAFTERS or path.exists(), "draft", options.draft, neither(DRAFTERS, path))
    for name in ("device", "threads", "ctx", "window"):
        check_number(name, getattr(options, name))
    is_count = isinstance(options.parallel, int) and not isinstance(options.parallel, bool) and options.parallel > 0
    check(options.parallel is None or is_count, "parallel", options.parallel, "a number from 1 on is needed")
    for adapter in options.adapters:
        try:
            read_adapter(adapter)
        except ValueError as error:
            check(False, "an adapter", str(adapter), str(error))
    check(isinstance(options.prefix_cache, bool), "prefix_cache", options.prefix_cache, "True or False is needed")
    for name, nbytes in (("disk_cache", options.disk_cache), ("packed_weights", options.packed_weights or 0)):
        is_size = isinstance(nbytes, int) and not isinstance(nbytes, bool)
        check(is_size and nbytes >= 0, name, nbytes, "bytes are needed, 0 for none")


def check_sampling(values: object) -> None:
    """The numbers of a Sampling, or of anything that has some of its fields."""
    for name in _CHOSEN:
        check_number(name, getattr(values, name, None))


def check_number(name: str, value: object) -> None:
    """A number that is a setting, too; None leaves it open."""
    if value is None:
        return
    try:
        if isinstance(value, str):  # settings may come as text
            raise ValueError("a number is needed, not a text")
        SETTINGS[name].parse(value)
    except ValueError as error:
        check(False, name, value, str(error))


def check_logprobs(name: str, value: object) -> None:
    """How many of the likeliest tokens are told; None: no logprobs at all."""
    is_count = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_LOGPROBS
    check(value is None or is_count, name, value, f"a number from 0 to {MAX_LOGPROBS} is needed")


def check_ids(prompt: Sequence[int], vocab_size: int) -> None:
    """Tokens of a prompt that the model knows."""
    if prompt and (min(prompt) < 0 or max(prompt) >= vocab_size):
        wrong = next(token for token in prompt if not 0 <= token < vocab_size)
        raise UsageError(f"the prompt has the token id {wrong}", f"the model has 0 to {vocab_size - 1}", "prompt")


def check_bias(bias: object, vocab_size: int = 1 << 31) -> None:
    """Check the biases that are added to logits, by token id."""
    if not isinstance(bias, Mapping):
        check(False, "logit_bias", bias, "{token id: number} is needed")
        return
    for token, value in bias.items():
        is_id = isinstance(token, int) and not isinstance(token, bool) and 0 <= token < vocab_size
        check(is_id, "logit_bias", token, f"a token id from 0 to {vocab_size - 1} is needed")
        is_number = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= MAX_BIAS
        check(is_number, f"logit_bias[{token}]", value, f"a number from {-MAX_BIAS:g} to {MAX_BIAS:g} is needed")


def is_duration(value: object) -> bool:
    """A time in seconds, 0 or more."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < math.inf


def check_choice(name: str, value: object, choices: tuple[str, ...]) -> None:
    """One of a few words."""
    check(isinstance(value, str) and value in choices, name, value, f"one of {', '.join(choices)} is needed")


def check(is_right: bool, name: str, value: Any, needed: str) -> None:
    """UsageError with what is needed, unless it is right."""
    if not is_right:
        shown = repr(value)
        raise UsageError(f"{name} is {shown if len(shown) <= 80 else shown[:80] + '…'}", needed, name)
