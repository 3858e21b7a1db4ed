"""One answer over HTTP: whole or as a stream, in any protocol; ended when the client leaves."""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from functools import partial

from starlette.requests import Request as HttpRequest
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from localrun.base.errors import ConstraintError, LocalrunError, ToolSchemaError
from localrun.base.events import Completion, Done, ModelInfo
from localrun.base.request import Request
from localrun.client.interface import EngineClient
from localrun.server.figures import headers_of, localrun_object
from localrun.server.inference import Codec, InferenceRequest
from localrun.server.json_response import to_json
from localrun.server.monitor.live import DONE, LEFT, LiveRequest
from localrun.server.refusal import CANCELLED, Refusal, refusal_of
from localrun.server.request.headers import with_headers
from localrun.server.running import Mailbox, NumberedEvent, RunningAnswer
from localrun.server.service import Service
from localrun.server.wire import ClientLeftError, Wire


class AnswerResponse(Response):
    """An answer that is computed while it is sent.

    An error before the first byte raises Refusal, so that the client gets an HTTP status; a later one goes into the
    stream. A stream begins as soon as the engine has accepted the prompt, or with the first ping.
    """

    def __init__(self, service: Service, asked: InferenceRequest, codec: Codec, request: HttpRequest) -> None:
        super().__init__()
        self._service, self._asked, self._codec = service, with_headers(asked, request.headers), codec
        self._live = LiveRequest.of(request, self._asked)
        self._live.raise_priority = self._raise_priority
        self._answers: list[RunningAnswer] = []
        self._is_raised = False

    async def prepare(self, client: EngineClient, requests: list[Request]) -> list[Request]:
        """Adapt the requests to the engine that answers them."""
        return requests

    async def settle(self) -> None:
        """Work that has to be done before the end of the answer is sent."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        wire = Wire(receive, send, self._codec, self._asked.is_stream)
        try:
            with self._service.registry.holding(self._live), suppress(ClientLeftError):  # also while it gets an error
                self._live.cancel, self._live.refuse = wire.cancel, wire.end
                try:
                    await self._answer(wire)
                except ClientLeftError:
                    self._live.end(LEFT)
                except Refusal as refusal:
                    await self.refuse(wire, refusal)
                except LocalrunError as error:
                    await self.refuse(wire, refusal_of(error, self._blamed(error)))
        finally:
            wire.close()

    def _blamed(self, error: LocalrunError) -> str | None:
        """The field of the request that an error is about."""
        if isinstance(error, ToolSchemaError):
            return "tools"
        return self._codec.constraint_field if isinstance(error, ConstraintError) else None

    async def refuse(self, wire: Wire, refusal: Refusal) -> None:
        """Send the client an error, as the response or at the end of the stream."""
        self._live.end(refusal.code)
        if not wire.has_begun and not (self._asked.is_held and refusal.status == 503):
            raise refusal from None
        await wire.stream(self._codec.failure(refusal), last=True)

    async def complete(self, wire: Wire, completions: list[Completion]) -> None:
        """Send the end of a stream, or the whole answer."""
        await self.settle()
        if self._asked.is_stream:
            await wire.stream(self._codec.end(), last=True)
            return
        whole = self._codec.whole(wire.info, completions)
        if self._codec.figures is not None:
            whole["localrun"] = self._codec.figures
        await wire.whole(to_json(whole), headers_of(completions[0]) if completions else {})

    async def _answer(self, wire: Wire) -> None:
        """Load the model, generate, and send the events."""
        async with self._service.engine(self._asked, self._live, wire) as (client, requests):
            mailbox, wire.info = Mailbox(), client.info
            requests = await wire.wait(self.prepare(client, requests))
            memory = self._service.answers
            answers = [RunningAnswer(client, one, mailbox, index, memory) for index, one in enumerate(requests)]
            self._answers = answers
            if self._is_raised:
                self._raise_priority()
            self._live.cancel = partial(_cancel, answers)
            try:
                completions: dict[int, Completion] = {}
                while len(completions) < len(answers):
                    await wire.until(mailbox.there)
                    wire.info = client.info  # of the engine that answers: one that died was loaded again for it
                    if said := mailbox.take():
                        await self._pass_on(said, wire, completions)
                    else:
                        await wire.ping_if_due()
                await self.complete(wire, [completions[index] for index in range(len(answers))])
                was_cancelled = any(one.stop_reason == "cancelled" for one in completions.values())
                self._live.end(CANCELLED if was_cancelled else DONE)
            finally:
                _cancel(answers)

    def _raise_priority(self) -> None:
        """Have the answers go before lower classes, also those that have not begun."""
        self._is_raised = True
        for answer in self._answers:
            answer.raise_priority()

    async def _pass_on(self, said: list[NumberedEvent], wire: Wire, completions: dict[int, Completion]) -> None:
        """Send all events so far in one piece. Raises LocalrunError where an answer failed."""
        if self._asked.is_stream and not isinstance(said[0][1], LocalrunError):
            await wire.begin()
        self._codec.know(wire.info)
        frames: list[bytes] = []
        for index, event in said:
            if isinstance(event, LocalrunError):
                await self._send(frames, wire)
                raise event
            self._live.take(event)
            if isinstance(event, Done):
                event = self._with_figures(event, wire.info, is_first=not completions)
                completions[index] = event.completion
            frames.append(self._codec.event(index, event))
        await self._send(frames, wire)

    def _with_figures(self, done: Done, info: ModelInfo | None, is_first: bool) -> Done:
        """The end of an answer, with the time that it waited for its model; the codec gets its other figures."""
        timings = replace(done.completion.timings, load_ms=self._live.load_ms)
        completion = replace(done.completion, timings=timings)
        if self._asked.with_figures and is_first:
            broken = self._service.last_requests.compare(self._live.client, self._asked, completion)
            self._codec.figures = localrun_object(
                completion, info.fingerprint if info else "", broken, self._asked.ignored
            )
            self._live.cache_break = broken.kind if broken else ""
        return replace(done, completion=completion)

    async def _send(self, frames: list[bytes], wire: Wire) -> None:
        if frames and self._asked.is_stream:
            await wire.stream(b"".join(frames))


def _cancel(answers: Iterable[RunningAnswer]) -> None:
    for answer in answers:
        answer.cancel()
