"""Common parts of OpenAI's chat and plain completions: heads of objects, pings, usage, errors."""

import secrets
import time

from localrun.base.events import Completion, ModelInfo
from localrun.base.request import Json
from localrun.server.inference import Codec, InferenceRequest
from localrun.server.openai.usage import usage
from localrun.server.refusal import Refusal
from localrun.server.sse import data_frame

END = data_frame("[DONE]")  # of every stream, also of one that failed: some clients read up to it


class OpenAICodec(Codec):
    """Writes objects of one kind, and chunks of a stream."""

    media_type = "text/event-stream"
    id_prefix: str
    kind: str  # of a whole answer
    chunk_kind: str

    def __init__(self, asked: InferenceRequest, with_usage: bool) -> None:
        super().__init__(asked)
        self._with_usage = with_usage
        self._id, self._created = f"{self.id_prefix}{secrets.token_hex(12)}", int(time.time())
        self._done: dict[int, Completion] = {}
        self._fingerprint: str | None = None

    def know(self, info: ModelInfo | None) -> None:
        super().know(info)
        self._fingerprint = info.fingerprint or None if info else None

    def end(self) -> bytes:
        total = self._frame({"choices": [], "usage": self._usage()}) if self._with_usage else b""
        return total + END

    def ping(self) -> bytes:
        return b": ping\n\n"

    def failure(self, refusal: Refusal) -> bytes:
        return data_frame(error_body(refusal)) + END

    def done(self, index: int, completion: Completion) -> None:
        """Note a complete answer, for the usage of all."""
        self._done[index] = completion

    def chunk(self, choice: Json) -> bytes:
        """A chunk of one answer; the last has its figures."""
        return self._frame({"choices": [choice], **(self.figures_field if choice["finish_reason"] else {})})

    def object(self, info: ModelInfo | None, choices: list[Json]) -> Json:
        """All answers, once they are done."""
        self.know(info)
        return {**self._head(self.kind), "choices": choices, "usage": self._usage()}

    def _frame(self, values: Json) -> bytes:
        return data_frame({**self._head(self.chunk_kind), **values})

    def _head(self, kind: str) -> Json:
        return {
            "id": self._id,
            "object": kind,
            "created": self._created,
            "model": self.model,
            "system_fingerprint": self._fingerprint,
        }

    def _usage(self) -> Json:
        return usage([self._done[index] for index in sorted(self._done)], self.asked.n)


def error_body(refusal: Refusal) -> Json:
    """An error in OpenAI's shape."""
    error = {
        "message": refusal.message,
        "type": refusal.kind,
        "code": refusal.code,
        "param": refusal.param,
        **refusal.figures,
    }
    return {"error": error}
