"""Routes of Ollama's API."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing

from starlette.requests import ClientDisconnect
from starlette.requests import Request as HttpRequest
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

import localrun
from localrun.base.errors import LocalrunError, NotFoundError
from localrun.hub.resolve import resolve_listed
from localrun.server.json_response import JsonResponse
from localrun.server.ollama.answers import (
    AnswerFields,
    OllamaCodec,
    chat_said,
    error_body,
    generate_said,
    line,
    nothing_said,
)
from localrun.server.ollama.contexts import Contexts
from localrun.server.ollama.manage import delete, pulled, require_manage
from localrun.server.ollama.models import ps, show, tags
from localrun.server.ollama.request import OllamaRequest, read_chat, read_generate
from localrun.server.refusal import Refusal, refusal_of
from localrun.server.request.json_body import Body, read_json
from localrun.server.respond import AnswerResponse
from localrun.server.service import Service

OLLAMA_VERSION = "0.32.1"  # of the protocol: clients compare it with the version that they need
_READ = ["GET", "HEAD"]
_EMBEDDINGS = ("/api/embed", "/api/embeddings", "/v1/embeddings")
_MISSING = ("create", "push", "copy", "me", "blobs/{digest}")  # endpoints of Ollama that localrun lacks


class Ollama:
    """The endpoints, with the chats that their `context` values refer to."""

    def __init__(self, service: Service) -> None:
        self._service, self._models, self._contexts = service, service.models, Contexts()

    def routes(self) -> list[Route]:
        """The routes below /api, the root, and all routes of embeddings."""
        return [
            Route("/", self.root, methods=_READ),
            Route("/api/version", self.version, methods=_READ),
            Route("/api/status", self.status, methods=_READ),
            Route("/api/tags", self.tags, methods=_READ),
            Route("/api/ps", self.ps, methods=_READ),
            Route("/api/show", self.show, methods=["POST"]),
            Route("/api/chat", self.chat, methods=["POST"]),
            Route("/api/generate", self.generate, methods=["POST"]),
            Route("/api/pull", self.pull, methods=["POST"]),
            Route("/api/delete", self.delete, methods=["DELETE"]),
            *(Route(path, self.embed, methods=["POST"]) for path in _EMBEDDINGS),
            *(Route(f"/api/{name}", self.missing, methods=["POST", "HEAD"]) for name in _MISSING),
        ]

    async def root(self, request: HttpRequest) -> Response:
        return PlainTextResponse("Ollama is running")

    async def version(self, request: HttpRequest) -> Response:
        return JsonResponse({"version": OLLAMA_VERSION, "localrun": localrun.__version__})

    async def status(self, request: HttpRequest) -> Response:
        return JsonResponse({"cloud": {"disabled": True, "source": "none"}})

    async def tags(self, request: HttpRequest) -> Response:
        return JsonResponse(await asyncio.to_thread(tags, self._models))

    async def ps(self, request: HttpRequest) -> Response:
        return JsonResponse(await asyncio.to_thread(ps, self._models))

    async def show(self, request: HttpRequest) -> Response:
        name = _named(await read_json(request))
        return JsonResponse(await asyncio.to_thread(lambda: show(self._models.find(name))))

    async def chat(self, request: HttpRequest) -> Response:
        return await self._answer(request, read_chat(await read_json(request)), chat_said)

    async def generate(self, request: HttpRequest) -> Response:
        asked = read_generate(await read_json(request), self._contexts)
        return await self._answer(request, asked, generate_said, self._contexts)

    async def embed(self, request: HttpRequest) -> Response:
        name = (await read_json(request)).text("model")
        choice = await asyncio.to_thread(self._models.find, name)
        what = f"{name or choice.stored.name} answers with text; it makes no embeddings"
        raise Refusal(400, what, "model_not_supported", "model")

    async def pull(self, request: HttpRequest) -> Response:
        body = await read_json(request)
        name, is_stream = _named(body), body.flag("stream", True)
        if await asyncio.to_thread(_is_here, name):
            return _lines(_success()) if is_stream else JsonResponse({"status": "success"})
        require_manage(self._service.options.manage, "pull", name)
        if is_stream:
            return _lines(_progress(name))
        async with aclosing(pulled(name)) as progress:
            async for news in progress:
                if await request.is_disconnected():
                    raise ClientDisconnect
                last = news
        return JsonResponse(last)

    async def delete(self, request: HttpRequest) -> Response:
        name = _named(await read_json(request))
        require_manage(self._service.options.manage, "rm", name)
        await self._models.unload(name)
        await asyncio.to_thread(delete, name)
        return Response()

    async def missing(self, request: HttpRequest) -> Response:
        raise Refusal(501, "localrun does not have this", "not_implemented")

    async def _answer(
        self, request: HttpRequest, asked: OllamaRequest, said: AnswerFields, contexts: Contexts | None = None
    ) -> Response:
        wanted = asked.inference
        if not asked.loads_only:
            return AnswerResponse(self._service, wanted, OllamaCodec(wanted, said, contexts), request)
        if asked.unloads:
            await self._models.unload(wanted.model)
        else:
            async with self._models.use(wanted.model, wanted.keep_alive):
                pass
        return JsonResponse(nothing_said(wanted.model, said, "unload" if asked.unloads else "load"))


def _named(body: Body) -> str:
    """The model of a body; older clients call the field `name`."""
    name = body.text("model") or body.text("name")
    if not name:
        raise body.wrong("model", "the name of a model is needed")
    return name


def _is_here(name: str) -> bool:
    try:
        resolve_listed(name)
    except NotFoundError:
        return False
    return True


async def _success() -> AsyncIterator[bytes]:
    yield line({"status": "success"})


async def _progress(name: str) -> AsyncIterator[bytes]:
    """A download, line by line."""
    try:
        async with aclosing(pulled(name)) as progress:
            async for news in progress:
                yield line(news)
    except LocalrunError as error:
        yield line(error_body(refusal_of(error)))


def _lines(content: AsyncIterator[bytes]) -> Response:
    return StreamingResponse(content, media_type=OllamaCodec.media_type)
