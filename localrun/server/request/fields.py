"""Fields that every protocol has under the same name: `model`, `stream`, `keep_alive`, and `localrun`."""

from collections.abc import Iterable, Sequence

from localrun.base.request import Request, RequestMessage
from localrun.server.inference import InferenceRequest
from localrun.server.request.images import with_images
from localrun.server.request.json_body import Body


def inference_request(
    body: Body, requests: tuple[Request, ...], ignored: Iterable[str], *, streams: bool = False
) -> InferenceRequest:
    """The fields of a body that all protocols share, as a request. Raises Refusal, naming the field.

    `ignored` are names of fields that have no effect, such as `user` or `options.numa`; `streams` says whether an
    answer is a stream where the body does not.
    """
    return InferenceRequest(
        model=body.text("model"),
        requests=tuple(map(with_images, requests)),
        is_stream=body.flag("stream", streams),
        keep_alive=body.seconds("keep_alive"),
        ignored=tuple(name for name in ignored if _has(body, name)),
        with_figures=body.values.get("localrun") is not False,
    )


def is_begun(messages: Sequence[RequestMessage]) -> bool:
    """Whether the last message is the beginning of the answer, for the model to continue, in protocols where it is that
    without being asked."""
    *before, last = messages
    return bool(before) and last["role"] == "assistant" and bool(last["content"]) and "tool_calls" not in last


def _has(body: Body, name: str) -> bool:
    outer, dot, inner = name.partition(".")
    return outer in body and (not dot or inner in body.inner(outer))
