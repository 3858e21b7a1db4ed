"""The `context` of Ollama's generate: the token ids of a chat, a key to its messages while they are remembered."""

import hashlib
from array import array
from collections import OrderedDict
from collections.abc import Sequence

from localrun.base.request import RequestMessage
from localrun.server.request.json_body import Body

REMEMBERED = 64  # chats
MAX_CHARS = 1 << 22  # of the messages of one
MAX_IDS = 1 << 20


class Contexts:
    """The messages behind the ids that were sent last."""

    def __init__(self) -> None:
        self._messages: OrderedDict[bytes, tuple[RequestMessage, ...]] = OrderedDict()

    def put(self, ids: Sequence[int], messages: tuple[RequestMessage, ...]) -> None:
        if sum(len(str(message["content"])) for message in messages) > MAX_CHARS:
            return
        self._messages[_key(ids)] = messages
        if len(self._messages) > REMEMBERED:
            self._messages.popitem(last=False)

    def find(self, body: Body) -> tuple[tuple[RequestMessage, ...], tuple[int, ...]]:
        """The messages and the ids of a `context`; nothing for none. Raises Refusal for unknown ids."""
        ids = body.values.get("context")
        if not ids:
            return (), ()
        is_list = isinstance(ids, list) and len(ids) <= MAX_IDS
        if not is_list or not all(isinstance(one, int) and 0 <= one < 1 << 31 for one in ids):
            raise body.wrong("context", "the ids of an earlier answer are needed")
        messages = self._messages.get(_key(ids))
        if messages is None:
            what = "these are not the ids of an answer that this server remembers; /api/chat takes whole chats"
            raise body.wrong("context", what)
        return messages, tuple(ids)


def _key(ids: Sequence[int]) -> bytes:
    return hashlib.sha256(array("l", ids).tobytes()).digest()
