"""An engine in this process."""

import secrets
from collections.abc import Iterator
from types import TracebackType

from localrun.base.events import Done, Event, ModelInfo
from localrun.base.request import LoadOptions, Request
from localrun.engine.answer import AnswerStream, completion, stream_answer
from localrun.engine.engine import Ticket
from localrun.engine.load import LoadedModel, load
from localrun.engine.sampler import MAX_SEED, settle
from localrun.engine.sequence import GenerationRequest, Sequence
from localrun.fit.bytes import kv_bytes
from localrun.fit.machine import peak_rss
from localrun.model.load import Progress


class LocalClient:
    """One loaded model. `stream` yields events; `cancel` ends the answer under way, from any thread."""

    def __init__(self, options: LoadOptions, progress: Progress = lambda done, total: None) -> None:
        self.model: LoadedModel = load(options, progress)
        self._ticket: Ticket | None = None

    @property
    def info(self) -> ModelInfo:
        return self.model.info

    def stream(self, request: Request) -> Iterator[Event]:
        """Generate. Raises LocalrunError; a prompt that is too long raises before the first event."""
        text = self.model.text
        prompt = text.encode_request(request)
        ticket = self.model.engine.submit(self._generation(request, tuple(prompt)))
        self._ticket = ticket
        answer = AnswerStream(text, request.stop, prompt)
        return self._events(ticket, answer)

    def cancel(self) -> None:
        """End the answer under way; what was generated so far is kept."""
        if self._ticket is not None:
            self._ticket.cancel()

    def close(self) -> None:
        self.model.engine.close()

    def __enter__(self) -> "LocalClient":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _events(self, ticket: Ticket, answer: AnswerStream) -> Iterator[Event]:
        for event in stream_answer(ticket, answer):
            if isinstance(event, Sequence):
                held = kv_bytes(self.model.config, self.model.codec, event.n_tokens)
                yield Done(completion(event, answer, self.info, held, peak_rss()))
            else:
                yield event

    def _generation(self, request: Request, prompt: tuple[int, ...]) -> GenerationRequest:
        room = max(1, self.info.ctx - len(prompt))
        seed = request.sampling.seed
        return GenerationRequest(
            prompt=prompt,
            max_tokens=room if request.max_tokens is None else request.max_tokens,
            stop_ids=self.model.text.tokenizer.eog_ids,
            settings=settle(request.sampling, self.model.sampling),
            seed=secrets.randbelow(MAX_SEED) if seed is None else seed,
            logit_bias=request.sampling.logit_bias,
        )
