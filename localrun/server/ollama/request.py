"""The bodies of Ollama's chat and generate."""

from collections.abc import Mapping
from dataclasses import replace

from localrun.base.dataclass import dataclass
from localrun.base.request import Json, Request, RequestMessage, Think
from localrun.server.inference import InferenceRequest
from localrun.server.ollama.contexts import Contexts
from localrun.server.openai.fields import longest, sampling, stops
from localrun.server.openai.logprobs import wanted_logprobs
from localrun.server.request.constraint_fields import ollama_format
from localrun.server.request.fields import inference_request, is_begun
from localrun.server.request.function_tools import function_tools
from localrun.server.request.images import MAX_IMAGES, read_image
from localrun.server.request.json_body import Body

IGNORED = ("truncate", "shift")
IGNORED_OPTIONS = (  # of Ollama's engine, and ways of sampling that localrun lacks
    *("num_keep", "num_batch", "num_gpu", "main_gpu", "num_thread", "numa", "low_vram", "f16_kv", "vocab_only"),
    *("use_mmap", "use_mlock", "logits_all", "embedding_only", "repeat_last_n", "penalize_newline"),
    *("tfs_z", "typical_p", "mirostat", "mirostat_tau", "mirostat_eta"),
)
_EFFORT: Mapping[str, Think] = {"low": "on", "medium": "on", "high": "on", "max": "on"}


@dataclass(frozen=True, slots=True)
class OllamaRequest:
    """A parsed body. `loads_only`: only load the model, or unload it with `unloads`."""

    inference: InferenceRequest
    loads_only: bool

    @property
    def unloads(self) -> bool:
        return self.loads_only and self.inference.keep_alive == 0


def read_chat(body: Body) -> OllamaRequest:
    """The body of /api/chat. Raises Refusal, naming the field."""
    messages = tuple(_message(message) for message in body.objects("messages"))
    tools = function_tools(body)
    if not messages:
        return _asked(body, None)
    return _asked(body, Request(messages=messages, tools=tools, continues=is_begun(messages)))


def read_generate(body: Body, contexts: Contexts) -> OllamaRequest:
    """The body of /api/generate. Raises Refusal, naming the field."""
    for name, why in (
        ("template", "no request brings a template along: the model's own is used"),
        ("suffix", "localrun does not fill in the middle of a text yet"),
    ):
        if body.values.get(name):
            raise body.wrong(name, why)
    prompt, is_raw = body.text("prompt"), body.flag("raw")
    if not prompt:
        return _asked(body, None)
    if is_raw and body.values.get("context"):
        raise body.wrong("context", "a raw prompt is the whole prompt: leave one of them out")
    if is_raw:
        return _asked(body, Request(prompt=prompt))
    before, ids = contexts.find(body)
    if system := body.text("system"):
        before = ({"role": "system", "content": system}, *(turn for turn in before if turn["role"] != "system"))
    messages = (*before, {"role": "user", "content": _content(body, prompt)})
    return _asked(body, Request(messages=messages, known_ids=ids))


def _asked(body: Body, request: Request | None) -> OllamaRequest:
    """Read the fields that chat and generate share; they are checked in a request without a prompt, too."""
    options = body.inner("options")
    limited = replace(
        request or Request(),
        sampling=sampling(options),
        max_tokens=_num_predict(options),
        stop=stops(options),
        think=_think(body),
        ctx=longest(options, "num_ctx", 1),
        constraint=ollama_format(body),
        logprobs=wanted_logprobs(body),
    )
    ignored = (*IGNORED, *(f"options.{name}" for name in IGNORED_OPTIONS))
    return OllamaRequest(inference_request(body, (limited,), ignored, streams=True), loads_only=request is None)


def _num_predict(options: Body) -> int | None:
    """The longest answer; None for as much as the context holds, in Ollama a negative number."""
    wish = longest(options, "num_predict", -2)
    if wish == 0:
        raise options.wrong("num_predict", "at least one token is needed; -1 is for as many as there is room for")
    return wish if wish is not None and wish > 0 else None


def _think(body: Body) -> Think:
    wish = body.values.get("think")
    if isinstance(wish, bool):
        return "on" if wish else "off"
    if wish is None:
        return "auto"
    return _EFFORT[body.choice("think", tuple(_EFFORT), "")]


def _content(body: Body, text: str) -> str | list[Json]:
    """The images of a body, and then its text."""
    images = body.texts("images", MAX_IMAGES)
    return [*(read_image(body, "images", one) for one in images), {"type": "text", "text": text}] if images else text


def _message(body: Body) -> RequestMessage:
    """A message in the form that templates are given."""
    role = body.choice("role", ("system", "user", "assistant", "tool"), "")
    message: RequestMessage = {"role": role, "content": _content(body, body.text("content"))}
    for name, ours in (("thinking", "reasoning_content"), ("tool_name", "name"), ("tool_call_id", "tool_call_id")):
        if value := body.text(name):
            message[ours] = value
    calls = body.objects("tool_calls")
    if calls:
        message["tool_calls"] = [{"type": "function", **call.values} for call in calls]
    return message
