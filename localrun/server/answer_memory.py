"""Token ids of our own answers, found again by their conversation.

Most protocols keep no state: a client sends our answers back as text. A tokenizer often spells a text with other ids
than the model wrote, so that nothing of it would be found in the cache. Here every answer is remembered by what was
said up to it, thoughts left out, since clients drop them; the engine keeps of the ids what still says the same.
"""

import hashlib
import json
import threading
from array import array
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import replace

from localrun.base.events import Done, ModelInfo
from localrun.base.image_ids import has_images
from localrun.base.request import Request, RequestMessage

MAX_ANSWERS = 4_096
MAX_IDS = 16 << 20  # four bytes each


class AnswerMemory:
    """Ids of prompt and answer for the latest answers. Thread-safe."""

    def __init__(self) -> None:
        self._ids: OrderedDict[bytes, array[int] | tuple[int, ...]] = OrderedDict()  # rows of images take many bytes
        self._n_ids = 0
        self._lock = threading.Lock()

    def keep(self, info: ModelInfo, request: Request, done: Done) -> None:
        """Remember an answer."""
        if not request.messages or not done.completion.token_ids:  # remote servers send no ids
            return
        calls = [{"name": call.name, "arguments": call.arguments} for call in done.completion.tool_calls]
        answer: RequestMessage = {"role": "assistant", "content": done.completion.text, "tool_calls": calls}
        *_, key = _keys(info, replace(request, messages=(*request.messages, answer)))
        said = (*done.prompt_ids, *done.completion.token_ids)
        ids = said if has_images(said) else array("i", said)
        with self._lock:
            self._n_ids += len(ids) - len(self._ids.pop(key, ()))
            self._ids[key] = ids
            while len(self._ids) > MAX_ANSWERS or self._n_ids > MAX_IDS:
                self._n_ids -= len(self._ids.popitem(last=False)[1])

    def recall(self, info: ModelInfo, request: Request) -> Request:
        """The request with the ids of its conversation up to the latest remembered answer."""
        if not request.messages or request.known_ids or request.continues:
            return request
        keys = list(_keys(info, request))
        with self._lock:
            known = next((key for key in reversed(keys) if key in self._ids), None)
            if known is None:
                return request
            self._ids.move_to_end(known)
            return replace(request, known_ids=tuple(self._ids[known]))


def _keys(info: ModelInfo, request: Request) -> Iterator[bytes]:
    """A key for each answer in a conversation: a hash of all messages up to it."""
    said = hashlib.sha256()
    for part in (info.fingerprint, info.path, info.precision, [dict(tool) for tool in request.tools]):
        said.update(_spelled(part))
    for message in request.messages:
        content = message.get("content")
        text = content.strip() if isinstance(content, str) else content
        said.update(_spelled([message.get("role"), text or "", _called(message)]))
        if message.get("role") == "assistant":
            yield said.digest()


def _called(message: RequestMessage) -> list[list[object]]:
    """Names and arguments of the calls in a message. Ids and spelling are the client's, and may be anything."""
    calls = message.get("tool_calls")
    if not isinstance(calls, list | tuple):
        return []
    functions = [call.get("function", call) for call in calls if isinstance(call, Mapping)]
    return [[one.get("name"), _parsed(one.get("arguments"))] for one in functions if isinstance(one, Mapping)]


def _parsed(arguments: object) -> object:
    try:
        return json.loads(arguments) if isinstance(arguments, str) else arguments
    except (ValueError, RecursionError):
        return arguments


def _spelled(value: object) -> bytes:
    return json.dumps(value, default=str, sort_keys=True).encode() + b"\n"
