"""Routes of Anthropic's API: messages, and their token counts."""

import asyncio

from starlette.requests import Request as HttpRequest
from starlette.responses import Response
from starlette.routing import Route

from localrun.server.anthropic.diagnosis import CacheDiagnostics, SentMessages
from localrun.server.anthropic.messages import MessageCodec
from localrun.server.anthropic.request import read_messages
from localrun.server.json_response import JsonResponse
from localrun.server.request.json_body import read_json
from localrun.server.respond import AnswerResponse
from localrun.server.service import Service


def anthropic_routes(service: Service) -> list[Route]:
    """The routes below /v1/messages."""
    sent = SentMessages()

    async def messages(request: HttpRequest) -> Response:
        body = await read_json(request)
        asked = read_messages(body)
        return AnswerResponse(service, asked, MessageCodec(asked, CacheDiagnostics(body, sent)), request)

    async def count_tokens(request: HttpRequest) -> Response:
        """Count the tokens of the prompt that the same messages would give, and the cached ones among them."""
        asked = read_messages(await read_json(request))
        async with service.models.use(asked.model, asked.keep_alive) as client:
            n_tokens, n_cached = await asyncio.to_thread(service.count, client, asked.requests[0])
        return JsonResponse({"input_tokens": n_tokens, "cache_read_input_tokens": n_cached})

    return [
        Route("/v1/messages", messages, methods=["POST"]),
        Route("/v1/messages/count_tokens", count_tokens, methods=["POST"]),
    ]
