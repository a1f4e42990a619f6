"""Liveness, readiness and metrics, for machines, without a key."""

from typing import Literal

from fastapi import APIRouter, Request, Response

from freezeframe.asgi.caller import service_of
from freezeframe.asgi.middleware import Measurements
from freezeframe.asgi.problems import to_openapi
from freezeframe.asgi.routing import ResponseModel
from freezeframe.service.service import degradations

router = APIRouter(tags=["health"], responses=to_openapi(400, 431, 500))


class Health(ResponseModel):
    """The service answers."""

    status: Literal["ok"] = "ok"


@router.get("/health/live")
async def live() -> Health:
    """Whether the process lives; it needs no thread, so that requests which wait do not delay it."""
    return Health()


@router.get("/health/ready", responses=to_openapi(503))
def ready(request: Request) -> Health:
    """Whether the store and the control database can be used."""
    service_of(request).require_ready()
    return Health()


class Condition(ResponseModel):
    """The state of the service and the reasons; no tenant or path is named."""

    status: Literal["ready", "degraded"]
    reasons: list[str]


@router.get("/health", responses=to_openapi(503))
def show_status(request: Request) -> Condition:
    """Whether the service is ready (503 if not) or degraded (it responds, but needs attention)."""
    service = service_of(request)
    service.require_ready()
    reasons = list(degradations(service))
    return Condition(status="degraded" if reasons else "ready", reasons=reasons)


@router.get(
    "/metrics",
    response_class=Response,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}, **to_openapi(503)},
)
def metrics(request: Request) -> Response:
    """Numbers for Prometheus; no tenant's name is among them."""
    measurements = request.app.state.measurements
    assert isinstance(measurements, Measurements)  # noqa: S101 - set by create_application
    service = service_of(request)
    measurements.queue(service.queue.counts(), service.queue.waiting_seconds())
    service.stored_sizes.count_in_background(measurements.stored)
    return Response(measurements.text(), media_type="text/plain; version=0.0.4; charset=utf-8")
