"""Router factory: strict bodies, and the problem responses that every route declares."""

from __future__ import annotations

from fastapi import APIRouter

from freezeframe.asgi.dependencies.checked_route import CheckedRoute
from freezeframe.asgi.dependencies.strict_route import StrictRoute
from freezeframe.asgi.problems import to_openapi

TENANT = "/environments/{environment}/tenants/{tenant}"
_ANY = (400, 401, 403, 409, 413, 422, 429, 431, 500, 503)


def api_router(tag: str, route_class: type[CheckedRoute] = StrictRoute) -> APIRouter:
    """A router of ``/api/v1``; another ``route_class`` may accept unknown parameters."""
    return APIRouter(
        prefix="/api/v1",
        tags=[tag],
        route_class=route_class,
        responses=to_openapi(*_ANY),
        redirect_slashes=False,
    )


def tenant_router(tag: str) -> APIRouter:
    """A router of what belongs to one tenant; each of its routes may answer 404."""
    return APIRouter(
        prefix=f"/api/v1{TENANT}",
        tags=[tag],
        route_class=StrictRoute,
        responses=to_openapi(*_ANY, 404),
        redirect_slashes=False,
    )
