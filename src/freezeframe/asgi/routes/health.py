"""Whether the service lives and is ready, and its numbers; for machines, without a key."""

from __future__ import annotations

from typing import Literal

from fastapi import APIRouter, Request, Response

from freezeframe.asgi.authentication import service_of
from freezeframe.asgi.middleware.measurements import Measurements
from freezeframe.asgi.models.base import ResponseModel
from freezeframe.asgi.problems import declared

router = APIRouter(tags=["health"], responses=declared(400, 431, 500))


class Health(ResponseModel):
    """The service answers."""

    status: Literal["ok"] = "ok"


@router.get("/health/live")
def live() -> Health:
    """Whether the process lives."""
    return Health()


@router.get("/health/ready", responses=declared(503))
def ready(request: Request) -> Health:
    """Whether the store and the control database can be used."""
    service_of(request).require_ready()
    return Health()


@router.get(
    "/metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}, **declared(503)}
)
def metrics(request: Request) -> Response:
    """Numbers for Prometheus; no tenant's name is among them."""
    measurements = request.app.state.measurements
    assert isinstance(measurements, Measurements)  # noqa: S101 - set by create_application
    for status, count in service_of(request).jobs.counts().items():
        measurements.jobs(status, count)
    return Response(measurements.text(), media_type="text/plain; version=0.0.4; charset=utf-8")
