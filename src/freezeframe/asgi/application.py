"""The application: a store, its control database and settings become something that a server can run."""

from __future__ import annotations

import os
from typing import Any

from fastapi import FastAPI

from freezeframe.asgi.console import add_console
from freezeframe.asgi.description import complete_document
from freezeframe.asgi.event_hub import EventHub
from freezeframe.asgi.middleware.closing import Closing
from freezeframe.asgi.middleware.measurements import Measurements
from freezeframe.asgi.middleware.request_guard import RequestGuard
from freezeframe.asgi.problems import add_problem_handlers
from freezeframe.asgi.routes import (
    all_jobs,
    audit,
    blobs,
    events,
    files,
    found_rows,
    health,
    history,
    hotglue,
    jobs,
    keys,
    overview,
    provider_session,
    rows,
    schedules,
    scripts,
    session,
    streams,
    tenants,
)
from freezeframe.control.database import ControlDatabase
from freezeframe.control.queue import JobFeed
from freezeframe.observation import observe_with
from freezeframe.service.overview.watch import Watch
from freezeframe.service.service import open_service
from freezeframe.settings import Settings

VERSION = "1"
# Routers are matched in this order: the most requested first.
_ROUTERS = (
    tenants,
    files,
    streams,
    rows,
    found_rows,
    all_jobs,
    events,
    overview,
    provider_session,
    blobs,
    history,
    jobs,
    schedules,
    scripts,
    audit,
    keys,
    session,
    hotglue,
    health,
)
# A base64 body of the hotglue-compatible paths is a third longer than its file.
_BASE64_SHARE = 4 / 3
_BODY_MARGIN_BYTES = 64 * 1024
_MULTIPROCESS = "PROMETHEUS_MULTIPROC_DIR"


def create_application(settings: Settings, root: str, database: ControlDatabase) -> FastAPI:
    """The REST service of the store at ``root``; Spark is never loaded by it.

    Raises:
        InvalidOption: ``root`` is not a place for a store.
        SetupError: the service's secret cannot be made or read.
    """
    bytes_max = int(settings.service_body_bytes_max * _BASE64_SHARE) + _BODY_MARGIN_BYTES
    application = FastAPI(
        title="freezeframe",
        version=VERSION,
        description="Versioned streams and files of many tenants: read, change, restore, run jobs.",
        docs_url=None,
        redoc_url=None,
        max_body_size=bytes_max,
        redirect_slashes=False,
        generate_unique_id_function=lambda route: route.name,
    )
    measurements = Measurements(os.environ.get(_MULTIPROCESS))
    observe_with(measurements.observe)
    application.state.service = open_service(root, settings, database)
    application.state.measurements = measurements
    stores = application.state.service.stores
    application.state.events = EventHub(Watch(stores, JobFeed(database)))
    application.state.closing = Closing()
    for module in _ROUTERS:
        application.include_router(module.router)
    add_problem_handlers(application, root)
    stack = application.build_middleware_stack
    # Outside of the framework's own limit of a body, which answers in plain text.
    application.build_middleware_stack = lambda: RequestGuard(  # type: ignore[method-assign]
        stack(), measurements, bytes_max
    )
    add_console(application)
    _describe(application)
    return application


def _describe(application: FastAPI) -> None:
    """Make the application complete its OpenAPI document; see ``description``."""
    plain = application.openapi

    def openapi_document() -> dict[str, Any]:
        if application.openapi_schema is None:
            application.openapi_schema = complete_document(plain())
        return application.openapi_schema

    application.openapi = openapi_document  # type: ignore[method-assign]  # FastAPI's documented way
