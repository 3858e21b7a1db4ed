"""Chat templates: messages to the text a model was trained on."""

import dataclasses
import hashlib
from collections.abc import Mapping, Sequence
from copy import copy
from datetime import datetime
from functools import cached_property
from typing import Any

from localrun.base.dataclass import dataclass
from localrun.base.errors import ModelFileError, UsageError
from localrun.base.sanitize import clean
from localrun.text.render_process import RENDER_SECONDS, RENDERER, RenderDiedError

MAX_SOURCE = 1 << 18  # characters; real templates have up to 20,000
_MAX_GROWTH = 8  # characters of output a character of input may become, beyond the first million
_THINKING_SWITCHES = ("enable_thinking", "thinking")  # that are true or false
_EFFORT_NAMES = ("reasoning_effort", "reasoning_strength")  # how hard to think, in a word
_EFFORTS = ("none", "no_think", "minimal", "low", "medium", "high")
_REASONING = ("reasoning_content", "thinking", "reasoning")
_MAX_SHOWN = 400
RAW_HINT = "choose another model, or leave its template out: `localrun run --raw`"

CHATML = (
    "{%- for message in messages -%}"
    "{{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' -}}"
    "{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\\n' -}}{%- endif -%}"
)


@dataclass(frozen=True, slots=True)
class Capabilities:
    """Abilities of a template. `variables`: all names it uses; `thinking`: its on/off switch, if it has one."""

    variables: frozenset[str]
    system: bool
    tools: bool
    documents: bool
    thinking: str | None
    efforts: tuple[str, ...] = ()  # words for how hard to think that it knows, least first

    def thinking_arguments(self, on: bool) -> dict[str, Any]:
        """Arguments that switch thinking on or off; none for a template without a switch."""
        if self.thinking:
            return {self.thinking: on}
        if "thinking_mode" in self.variables:
            return {"thinking_mode": "enabled" if on else "disabled"}
        if effort := next(filter(self.variables.__contains__, _EFFORT_NAMES), None):
            least = next((word for word in self.efforts if word not in ("medium", "high")), "low")
            return {effort: "high" if on else least}
        return {}


class ChatTemplate:
    """A jinja template, rendered as transformers does. A wrong one can be held and shown; it fails when used.

    `tool_use` replaces it where tools are given, `spare` where its source is wrong. `others` are the names of further
    ones, for the message about a model that has no default one: its `source` is None. `stops` are texts that end a turn
    where the vocabulary may have no token for them.
    """

    def __init__(
        self,
        source: str | None,
        bos_token: str = "",
        eos_token: str = "",
        *,
        name: str = "",
        now: datetime | None = None,
        tool_use: "ChatTemplate | None" = None,
        spare: "ChatTemplate | None" = None,
        others: Sequence[str] = (),
        stops: Sequence[str] = (),
    ) -> None:
        """Hold a template; `now` fixes the date that it may use."""
        self.source = source or ""
        self.bos_token = bos_token
        self.eos_token = eos_token
        self.name = name
        self.now = now
        self.tool_use = tool_use
        self.spare = spare
        self.stops = tuple(stops)
        self._lacking = "" if source is not None else f"no usual chat template, only {', '.join(others) or 'none'}"

    def at(self, now: float | None) -> "ChatTemplate":
        """The same template with a fixed date, given as Unix time; None leaves it unchanged."""
        if now is None:
            return self
        try:
            day = datetime.fromtimestamp(now)
        except (ValueError, OverflowError, OSError):
            raise UsageError(f"{now} is not a time a calendar has") from None
        dated = copy(self)
        dated.now = day
        dated.tool_use, dated.spare = (other and other.at(now) for other in (self.tool_use, self.spare))
        return dated

    def chosen(self, tools: bool) -> "ChatTemplate":
        """The template for a chat with or without tools."""
        if tools and self.tool_use is not None:
            return self.tool_use
        return self.spare if self.spare is not None and self.problem else self

    @cached_property
    def problem(self) -> str:
        """The flaw of its source; empty where the source can be parsed."""
        try:
            self._call("inspect")
        except ModelFileError as error:
            return error.message
        return ""

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.source.encode(errors="replace")).hexdigest()

    def render(
        self,
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any]] | None = None,
        add_generation_prompt: bool = True,
        **kwargs: Any,
    ) -> str:
        """The prompt for `messages`, dicts in the OpenAI format; `kwargs` are the template's own variables.

        Raises ModelFileError BAD_TEMPLATE (it is wrong, or fails on these messages) or TEMPLATE_LIMIT (it takes too
        long, too much memory, or writes too much); UsageError when the template refuses the messages.
        """
        if (chosen := self.chosen(tools is not None)) is not self:
            return chosen.render(messages, tools, add_generation_prompt, **kwargs)
        try:
            context = {
                "bos_token": self.bos_token,
                "eos_token": self.eos_token,
                "documents": None,
                **_plain(kwargs),
                "messages": [_message(message) for message in messages],
                "tools": None if tools is None else [_tool(tool) for tool in tools],
                "add_generation_prompt": bool(add_generation_prompt),
            }
        except RecursionError:
            raise _too_deep() from None
        max_chars = (1 << 20) + _MAX_GROWTH * _size(context)
        now = self.now.isoformat() if self.now else None
        return str(self._call("render", context=context, max_chars=max_chars, now=now)["text"])

    def warm_up(self) -> None:
        """Prepare to render, without waiting."""
        RENDERER.warm_up()

    @cached_property
    def capabilities(self) -> Capabilities:
        """Abilities of the template. Raises ModelFileError like `render`."""
        found = self._call("inspect")
        variables = frozenset(found["variables"])
        return Capabilities(
            variables=variables,
            system=found["system"],
            tools=bool({"tools", "functions"} & variables),
            documents="documents" in variables,
            thinking=next((switch for switch in _THINKING_SWITCHES if switch in variables), None),
            efforts=tuple(effort for effort in _EFFORTS if effort in found["literals"]),
        )

    def _call(self, name: str, **arguments: Any) -> dict[str, Any]:
        if self._lacking:
            raise ModelFileError("BAD_TEMPLATE", f"the model has {self._lacking}", hint=RAW_HINT)
        if len(self.source) > MAX_SOURCE:
            raise _limit(f"it is {len(self.source):,} characters long")
        try:
            answer = RENDERER.call(name, source=self.source, **arguments)
        except RenderDiedError as error:
            reasons = {"time": f"it runs for more than {RENDER_SECONDS:g} s", "memory": "it takes too much memory"}
            raise _limit(reasons.get(error.reason, "it brought the process down that rendered it")) from None
        except ValueError:
            raise _too_deep() from None
        if "kind" in answer:
            raise _error(answer)
        return answer


def default_template() -> ChatTemplate:
    """ChatML, for a model without a template."""
    return ChatTemplate(CHATML, name="chatml", stops=("<|im_end|>", "<|im_start|>"))


def _message(message: Mapping[str, Any]) -> dict[str, Any]:
    """Plain data without keys that hold None, with the reasoning under each name that templates use."""
    if not isinstance(message, Mapping):
        raise UsageError("a message has to be an object with role and content")
    plain = {key: value for key, value in _plain(message).items() if value is not None}
    reasoning = next((plain[key] for key in _REASONING if key in plain), None)
    return plain if reasoning is None else {"thinking": reasoning, **plain, "reasoning_content": reasoning}


def _tool(tool: Mapping[str, Any]) -> dict[str, Any]:
    if not isinstance(tool, Mapping):
        raise UsageError("a tool has to be an object with a JSON schema of its arguments")
    plain: dict[str, Any] = _plain(tool)
    return plain


def _plain(value: Any) -> Any:
    """`value` rebuilt from JSON's types and tuples: other objects have methods a template could call."""
    if value is None or type(value) in (str, int, float, bool):
        return value
    if isinstance(value, str):
        return str.__str__(value)  # str() would ask the subclass what it is called
    if isinstance(value, (int, float)):
        return int.__int__(value) if isinstance(value, int) else float.__float__(value)
    if isinstance(value, Mapping):
        return {_plain(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return (list if isinstance(value, list) else tuple)(_plain(item) for item in value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if callable(dump := getattr(value, "model_dump", None)):
        return _plain(dump())
    if getattr(value, "shape", None) == () and callable(item := getattr(value, "item", None)):  # a NumPy scalar
        return _plain(item())
    return f"<{type(value).__name__}>"


def _size(value: Any) -> int:
    """Characters in all texts of plain data."""
    if isinstance(value, dict):
        return sum(map(_size, value)) + sum(map(_size, value.values()))
    return sum(map(_size, value)) if isinstance(value, (list, tuple)) else len(value) if isinstance(value, str) else 0


def _error(answer: Mapping[str, Any]) -> ModelFileError | UsageError:
    kind, text = answer["kind"], clean(str(answer.get("error", "")), keep_newlines=False)[:_MAX_SHOWN]
    if kind == "refused":
        return UsageError(f"the model's chat template refuses these messages: {text}", "change the messages")
    if kind == "syntax":
        return ModelFileError(
            "BAD_TEMPLATE", f"the chat template is wrong in line {answer['line']}: {text}", hint=RAW_HINT
        )
    if kind == "failed":
        return ModelFileError("BAD_TEMPLATE", f"the chat template failed: {text}", hint=RAW_HINT)
    return _limit("it takes too much memory" if kind == "memory" else "its output does not end")


def _too_deep() -> UsageError:
    return UsageError("the messages are nested too deeply for a chat template")


def _limit(reason: str) -> ModelFileError:
    return ModelFileError("TEMPLATE_LIMIT", f"the chat template was stopped: {reason}", hint=RAW_HINT)
