"""Where Ollama's clients call."""

import asyncio
from collections.abc import AsyncIterator

from starlette.requests import Request as HttpRequest
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

import localrun
from localrun.base.errors import LocalrunError, NotFoundError
from localrun.hub.resolve import resolve_listed
from localrun.server.json_body import Body, read_json
from localrun.server.ollama_answers import OllamaCodec, Said, chat_said, error_body, generate_said, line, nothing_said
from localrun.server.ollama_contexts import Contexts
from localrun.server.ollama_manage import delete, pulled, require_manage
from localrun.server.ollama_models import ps, show, tags
from localrun.server.ollama_request import Asked, read_chat, read_generate
from localrun.server.refusal import Refusal, refusal_of
from localrun.server.respond import AnswerResponse
from localrun.server.service import Service

OLLAMA_VERSION = "0.32.1"  # whose protocol this is: clients compare it with what they need
_READ = ["GET", "HEAD"]
_MISSING = ("create", "push", "copy", "me", "blobs/{digest}")  # that Ollama has and localrun does not


def ollama_routes(service: Service) -> list[Route]:
    """The routes below /api, and the root."""
    models, contexts = service.models, Contexts()

    async def root(request: HttpRequest) -> Response:
        return PlainTextResponse("Ollama is running")

    async def version(request: HttpRequest) -> Response:
        return JSONResponse({"version": OLLAMA_VERSION, "localrun": localrun.__version__})

    async def list_tags(request: HttpRequest) -> Response:
        return JSONResponse(await asyncio.to_thread(tags, models))

    async def list_loaded(request: HttpRequest) -> Response:
        return JSONResponse(await asyncio.to_thread(ps, models))

    async def show_one(request: HttpRequest) -> Response:
        name = _named(await read_json(request))
        return JSONResponse(await asyncio.to_thread(lambda: show(models.find(name))))

    async def chat(request: HttpRequest) -> Response:
        return await answer(request, read_chat(await read_json(request)), chat_said)

    async def generate(request: HttpRequest) -> Response:
        asked = read_generate(await read_json(request), contexts)
        return await answer(request, asked, generate_said, contexts)

    async def answer(request: HttpRequest, asked: Asked, said: Said, remembered: Contexts | None = None) -> Response:
        if asked.request is not None:
            return AnswerResponse(service, asked.request, OllamaCodec(asked.request, said, remembered), request)
        if asked.unloads:
            await models.unload(asked.model)
        else:
            async with models.use(asked.model, asked.keep_alive):
                pass
        return JSONResponse(nothing_said(asked.model, said, "unload" if asked.unloads else "load"))

    async def embed(request: HttpRequest) -> Response:
        name = (await read_json(request)).text("model")
        choice = await asyncio.to_thread(models.find, name)
        what = f"{name or choice.stored.name} answers with text; it makes no embeddings"
        raise Refusal(400, what, "model_not_supported", "model")

    async def pull(request: HttpRequest) -> Response:
        body = await read_json(request)
        name, is_stream = _named(body), body.flag("stream", True)
        if await asyncio.to_thread(_is_here, name):
            return _lines(_success()) if is_stream else JSONResponse({"status": "success"})
        require_manage(service.options.manage, "pull", name)
        if is_stream:
            return _lines(_told(name))
        async for news in pulled(name):
            last = news
        return JSONResponse(last)

    async def delete_one(request: HttpRequest) -> Response:
        name = _named(await read_json(request))
        require_manage(service.options.manage, "rm", name)
        await models.unload(name)
        await asyncio.to_thread(delete, name)
        return Response()

    async def missing(request: HttpRequest) -> Response:
        raise Refusal(501, "localrun does not have this", "not_implemented")

    return [
        Route("/", root, methods=_READ),
        Route("/api/version", version, methods=_READ),
        Route("/api/tags", list_tags, methods=_READ),
        Route("/api/ps", list_loaded, methods=_READ),
        Route("/api/show", show_one, methods=["POST"]),
        Route("/api/chat", chat, methods=["POST"]),
        Route("/api/generate", generate, methods=["POST"]),
        Route("/api/pull", pull, methods=["POST"]),
        Route("/api/delete", delete_one, methods=["DELETE"]),
        *(Route(path, embed, methods=["POST"]) for path in ("/api/embed", "/api/embeddings", "/v1/embeddings")),
        *(Route(f"/api/{name}", missing, methods=["POST", "HEAD"]) for name in _MISSING),
    ]


def _named(body: Body) -> str:
    """The model that a body is about; older clients call it `name`."""
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


async def _told(name: str) -> AsyncIterator[bytes]:
    """A download, line by line."""
    try:
        async for news in pulled(name):
            yield line(news)
    except LocalrunError as error:
        yield line(error_body(refusal_of(error)))


def _lines(content: AsyncIterator[bytes]) -> Response:
    return StreamingResponse(content, media_type=OllamaCodec.media_type)
