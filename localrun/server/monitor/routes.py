"""Routes that monitor a server: list, raise and cancel requests under way, and counters."""

from dataclasses import asdict

from starlette.requests import Request as HttpRequest
from starlette.responses import Response
from starlette.routing import Route

from localrun.server.json_response import JsonResponse
from localrun.server.monitor.live import LiveRequest
from localrun.server.monitor.metrics import MEDIA_TYPE
from localrun.server.monitor.rows import rows_of
from localrun.server.refusal import Refusal
from localrun.server.service import Service


def monitor_routes(service: Service) -> list[Route]:
    """Routes of the monitor."""

    async def requests(request: HttpRequest) -> Response:
        info = service.models.slot.info if service.models.slot.client is not None else None
        rows = rows_of(list(service.registry.requests.values()))
        loaded = None if info is None else {"name": info.name, "precision": info.precision, "ctx": info.ctx}
        attached = [asdict(program) for program in service.programs]
        return JsonResponse({"model": loaded, "attached": attached, "requests": [row.as_json() for row in rows]})

    def named(request: HttpRequest) -> LiveRequest:
        numbered = {str(number): live for number, live in service.registry.requests.items()}
        live = numbered.get(request.path_params["number"])
        if live is None:
            raise Refusal(404, "that request is over", "not_found")
        return live

    async def cancel(request: HttpRequest) -> Response:
        live = named(request)
        live.cancel()
        return JsonResponse({"cancelled": live.number})

    async def raise_priority(request: HttpRequest) -> Response:
        live = named(request)
        live.raise_priority()
        return JsonResponse({"raised": live.number})

    async def metrics(request: HttpRequest) -> Response:
        return Response(service.metrics.text(service.registry.requests.values()), media_type=MEDIA_TYPE)

    return [
        Route("/v1/localrun/requests", requests, methods=["GET"]),
        Route("/v1/localrun/requests/{number}", cancel, methods=["DELETE"]),
        Route("/v1/localrun/requests/{number}/raise", raise_priority, methods=["POST"]),
        Route("/metrics", metrics, methods=["GET"]),
    ]
