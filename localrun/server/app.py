"""The routes of the server."""

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect
from starlette.requests import Request as HttpRequest
from starlette.responses import Response
from starlette.routing import Route

from localrun.base.errors import LocalrunError
from localrun.server.anthropic.messages import error_body as message_error
from localrun.server.anthropic.models import as_anthropic
from localrun.server.anthropic.routes import anthropic_routes
from localrun.server.guard import ErrorShapes, Guard, error_response
from localrun.server.json_response import JsonResponse
from localrun.server.model_list import list_models, show_model
from localrun.server.monitor.routes import monitor_routes
from localrun.server.ollama.answers import error_body as ollama_error
from localrun.server.ollama.routes import Ollama
from localrun.server.openai.chat import ChatCodec, read_chat
from localrun.server.openai.codec import error_body
from localrun.server.openai.completions import CompletionCodec, read_completion
from localrun.server.refusal import Refusal, refusal_of, without_paths
from localrun.server.request.json_body import Body, read_json
from localrun.server.respond import AnswerResponse
from localrun.server.responses.routes import Responses
from localrun.server.service import Service
from localrun.server.tokenize import detokenize, tokenize, tokenizer_info

ERROR_SHAPES: ErrorShapes = {"": error_body, "/v1/messages": message_error, "/api": ollama_error}


def build_app(service: Service) -> Starlette:
    """The ASGI application of a service."""

    async def health(request: HttpRequest) -> Response:
        return JsonResponse({"status": "ok"})

    async def chat(request: HttpRequest) -> Response:
        body = await read_json(request)
        asked = read_chat(body)
        return AnswerResponse(service, asked, ChatCodec(asked, _wants_usage(body)), request)

    async def completions(request: HttpRequest) -> Response:
        body = await read_json(request)
        asked = read_completion(body)
        return AnswerResponse(service, asked, CompletionCodec(asked, _wants_usage(body), body.flag("echo")), request)

    async def ids(request: HttpRequest) -> Response:
        return JsonResponse(await tokenize(service, await read_json(request)))

    async def text(request: HttpRequest) -> Response:
        return JsonResponse(await detokenize(service, await read_json(request)))

    async def vocabulary(request: HttpRequest) -> Response:
        return JsonResponse(await tokenizer_info(service))

    async def models(request: HttpRequest) -> Response:
        found = await list_models(service)
        return JsonResponse(as_anthropic(found) if "anthropic-version" in request.headers else found)

    async def model(request: HttpRequest) -> Response:
        found = await show_model(service, request.path_params["name"])
        return JsonResponse(as_anthropic(found) if "anthropic-version" in request.headers else found)

    async def refused(request: HttpRequest, error: Exception) -> Response:
        return error_response(ERROR_SHAPES, request.url.path, _as_refusal(error, request))

    return Starlette(
        routes=[
            Route("/health", health, methods=["GET", "HEAD"]),
            Route("/v1/chat/completions", chat, methods=["POST"]),
            Route("/v1/completions", completions, methods=["POST"]),
            Route("/tokenize", ids, methods=["POST"]),
            Route("/detokenize", text, methods=["POST"]),
            Route("/tokenizer_info", vocabulary, methods=["GET"]),
            Route("/v1/models", models, methods=["GET"]),
            Route("/v1/models/{name:path}", model, methods=["GET"]),
            *anthropic_routes(service),
            *Ollama(service).routes(),
            *Responses(service).routes(),
            *monitor_routes(service),
        ],
        middleware=[Middleware(Guard, options=service.options, shapes=ERROR_SHAPES)],
        exception_handlers={
            Refusal: refused,
            LocalrunError: refused,
            ClientDisconnect: refused,
            HTTPException: refused,
            Exception: refused,
        },
    )


def _as_refusal(error: Exception, request: HttpRequest) -> Refusal:
    match error:
        case Refusal():
            return error
        case LocalrunError():
            return refusal_of(error)
        case ClientDisconnect():
            return Refusal(400, "the body is not whole", "incomplete_body")
        case HTTPException(status_code=404):
            return Refusal(404, f"there is nothing at this address{_elsewhere(request)}", "not_found")
        case HTTPException(status_code=405):
            return Refusal(405, "this address takes another method", "method_not_allowed")
    return Refusal(500, without_paths(f"something failed inside localrun: {type(error).__name__}"), "internal_error")


def _elsewhere(request: HttpRequest) -> str:
    """The address that was probably meant, where /v1 is missing or there twice; else nothing."""
    path, known = request.url.path, {route.path for route in request.app.routes}
    return next((f"; try {one}" for one in (f"/v1{path}", path.removeprefix("/v1")) if one in known), "")


def _wants_usage(body: Body) -> bool:
    return body.inner("stream_options").flag("include_usage")
