"""Routes of /v1/responses: create, continue, retrieve, delete, cancel and count."""

import asyncio
from dataclasses import replace

from starlette.requests import Request as HttpRequest
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from localrun.base.request import Request
from localrun.client.interface import EngineClient
from localrun.server.json_response import JsonResponse
from localrun.server.refusal import CANCELLED, Refusal
from localrun.server.request.json_body import Body, read_json
from localrun.server.request.truncation import drop_turns
from localrun.server.respond import AnswerResponse
from localrun.server.responses.codec import ResponsesCodec
from localrun.server.responses.request import ResponsesRequest, read_responses
from localrun.server.responses.stored import StoredResponse, StoredResponses
from localrun.server.service import Service
from localrun.server.wire import Wire

MAX_LISTED = 100
USUAL_LISTED = 20


class Responses:
    """The endpoints, with the responses that are stored and those under way."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self.stored = StoredResponses(service.options.store_disk and not service.options.no_disk)
        self.under_way: dict[str, StatefulAnswer] = {}

    def routes(self) -> list[Route]:
        at = "/v1/responses"
        return [
            Route(at, self.create, methods=["POST"]),
            Route(f"{at}/input_tokens", self.count, methods=["POST"]),
            Route(f"{at}/compact", self.compact, methods=["POST"]),
            Route(f"{at}/{{id}}", self.show, methods=["GET"]),
            Route(f"{at}/{{id}}", self.delete, methods=["DELETE"]),
            Route(f"{at}/{{id}}/input_items", self.list_items, methods=["GET"]),
            Route(f"{at}/{{id}}/cancel", self.cancel, methods=["POST"]),
        ]

    async def create(self, request: HttpRequest) -> Response:
        asked = await self._read(await read_json(request))
        return StatefulAnswer(self, self._service, asked, request)

    async def count(self, request: HttpRequest) -> Response:
        """Exact token count of the prompt, and of the cached part."""
        asked = (await self._read(await read_json(request))).inference
        n_tokens = n_cached = 0
        if asked.requests:
            async with self._service.models.use(asked.model, asked.keep_alive) as client:
                n_tokens, n_cached = await asyncio.to_thread(self._service.count, client, asked.requests[0])
        body = {"object": "response.input_tokens", "input_tokens": n_tokens, "localrun": {"cached": n_cached}}
        return JsonResponse(body)

    async def compact(self, request: HttpRequest) -> Response:
        what = "localrun does not compact a conversation; truncation: auto drops its oldest turns"
        raise Refusal(501, what, "not_implemented")

    async def show(self, request: HttpRequest) -> Response:
        if request.query_params.get("stream") == "true":
            raise Refusal(400, "a stored response comes whole", "invalid_value", "stream")
        id = request.path_params["id"]
        if answer := self._under_way(id):
            return JsonResponse(answer.codec.response)
        stored = await asyncio.to_thread(self.stored.get, id)
        return JsonResponse(stored.response)

    async def delete(self, request: HttpRequest) -> Response:
        id = request.path_params["id"]
        await asyncio.to_thread(self.stored.remove, id)
        return JsonResponse({"id": id, "object": "response", "deleted": True})

    async def list_items(self, request: HttpRequest) -> Response:
        """The input of a response, the newest item first unless the oldest is asked for."""
        stored = await asyncio.to_thread(self.stored.get, request.path_params["id"])
        query = Body({name: int(value) if value.isdecimal() else value for name, value in request.query_params.items()})
        limit = query.whole("limit", USUAL_LISTED, 1, MAX_LISTED) or USUAL_LISTED
        items = stored.items if query.choice("order", ("asc", "desc"), "desc") == "asc" else stored.items[::-1]
        after = query.text("after")
        start = next((number for number, item in enumerate(items, 1) if item.get("id") == after), 0) if after else 0
        page = items[start : start + limit]
        ids = [item["id"] for item in page] or [None]
        body = {"object": "list", "data": page, "first_id": ids[0], "last_id": ids[-1]}
        return JsonResponse({**body, "has_more": start + limit < len(items)})

    async def cancel(self, request: HttpRequest) -> Response:
        """Cancel an answer that is under way; one that is over does not change."""
        id = request.path_params["id"]
        if answer := self._under_way(id):
            answer.cancel()
            return JsonResponse({**answer.codec.response, "status": "cancelled"})
        stored = await asyncio.to_thread(self.stored.get, id)
        return JsonResponse(stored.response)

    def _under_way(self, id: str) -> "StatefulAnswer | None":
        answer = self.under_way.get(id)
        return answer if answer and answer.codec.response["status"] == "in_progress" else None

    async def _read(self, body: Body) -> ResponsesRequest:
        previous = body.text("previous_response_id")
        return read_responses(body, await asyncio.to_thread(self.stored.chain, previous))


class StatefulAnswer(AnswerResponse):
    """An answer that can be retrieved by its id while it is under way, and later if it is stored."""

    def __init__(self, responses: Responses, service: Service, asked: ResponsesRequest, request: HttpRequest) -> None:
        self.codec = ResponsesCodec(asked)
        chain = asked.first or (self.codec.response["id"] if asked.is_stored else "")
        super().__init__(service, replace(asked.inference, chain=chain), self.codec, request)
        self._responses, self._state = responses, asked
        self._is_kept = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        id = self.codec.response["id"]
        self._responses.under_way[id] = self
        try:
            await super().__call__(scope, receive, send)
            if self.codec.response["status"] == "in_progress":  # the client has left
                self.codec.cancelled()
            await self.settle()
        finally:
            del self._responses.under_way[id]

    def cancel(self) -> None:
        """Cancel within a step; at once where it has not begun."""
        self._live.cancel()

    async def refuse(self, wire: Wire, refusal: Refusal) -> None:
        """Send a cancelled response where it was cancelled before it began."""
        if refusal.code != CANCELLED:
            await super().refuse(wire, refusal)
            return
        self._live.end(refusal.code)
        self.codec.cancelled()
        await self.complete(wire, [])

    async def prepare(self, client: EngineClient, requests: list[Request]) -> list[Request]:
        if not self._state.drops_turns or not requests:
            return requests
        (request,) = requests
        fitted, self.codec.dropped = await asyncio.to_thread(drop_turns, client, request)
        return [fitted]

    async def settle(self) -> None:
        """Store it before its end is sent, so that the next request can continue from it."""
        if self._state.is_stored and not self._is_kept and self.codec.response["status"] != "in_progress":
            self._is_kept = True
            figures = {"localrun": self.codec.figures} if self.codec.figures else {}
            stored = StoredResponse({**self.codec.response, **figures}, self._state.items)
            note = await asyncio.to_thread(self._responses.stored.keep, stored)
            if note and self.codec.figures:
                self.codec.figures = {**self.codec.figures, "notes": [*self.codec.figures.get("notes", ()), note]}
