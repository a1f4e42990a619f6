"""The application of a store, its control database and settings, and its OpenAPI document."""

import http
import os
from typing import Any

from fastapi import FastAPI

from freezeframe.asgi.caller import IDEMPOTENCY_KEY_LENGTH_MAX
from freezeframe.asgi.console import add_console
from freezeframe.asgi.event_streams import EventHub, Watch
from freezeframe.asgi.middleware import Closing, Measurements, RequestGuard
from freezeframe.asgi.operation_routes import operation_routers
from freezeframe.asgi.problems import Problem, add_problem_handlers, to_openapi
from freezeframe.asgi.routes import (
    audit,
    events,
    files,
    health,
    hotglue,
    rows,
    session,
    streams,
    tenants,
)
from freezeframe.control.database import ControlDatabase
from freezeframe.control.queue import JobFeed
from freezeframe.observation import observe_with
from freezeframe.service.service import open_service
from freezeframe.settings import Settings

_OPEN = ("/health", "/metrics")
_SIGN_IN = "sign_in"
_SCHEMES = {
    "bearer": {"type": "http", "scheme": "bearer", "description": "`id.secret`"},
    "key": {"type": "apiKey", "in": "header", "name": "x-api-key"},
    "session": {"type": "apiKey", "in": "cookie", "name": "freezeframe_session"},
}
_IDEMPOTENCY_KEY = {
    "name": "idempotency-key",
    "in": "header",
    "required": False,
    "schema": {"type": "string", "minLength": 1, "maxLength": IDEMPOTENCY_KEY_LENGTH_MAX},
    "description": "The id of the job that is made; sent again, the request is answered from that job.",
}
_NEVER_USED = ("HTTPValidationError", "ValidationError")
# What the routes by hand check, by the ids of their operations; each route of the catalogue has its own.
_NEEDED_SCOPES = {
    "": "show_session sign_out sign_in_ways leave_for_provider return_from_provider",
    "tenants:read": "show_tenant follow_events hotglue_tenants",
    "snapshots:read": "show_overviews show_stream preview_rows list_changes export_stream list_sorted_rows "
    "show_statistics read_file download_bundle hotglue_snapshots hotglue_config hotglue_mapping "
    "hotglue_metadata",
    "snapshots:write": "create_tenant write_file stage_blob write_batch hotglue_write hotglue_set_config",
    "snapshots:delete": "delete_tenant hotglue_delete",
    "jobs:read": "follow_logs download_notebook",
    "admin": "list_audit export_audit list_service_audit export_service_audit",
    "tenants:read snapshots:read": "find_rows show_environment",
    "snapshots:read snapshots:write": "clone_tenant preview_import hotglue_patch_config hotglue_set_mapping "
    "hotglue_set_metadata",
    "snapshots:write jobs:run": "import_stream",
}
_SCOPES = {name: scopes.split() for scopes, names in _NEEDED_SCOPES.items() for name in names.split()}


def complete_document(document: dict[str, Any]) -> dict[str, Any]:
    """Add to the document what the routes do not declare themselves; it is changed in place."""
    components = document.setdefault("components", {})
    schemas = components.setdefault("schemas", {})
    schemas["Problem"] = Problem.model_json_schema(ref_template="#/components/schemas/{model}")
    for name in _NEVER_USED:
        schemas.pop(name, None)
    components["securitySchemes"] = _SCHEMES
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            is_sign_in = operation["operationId"] == _SIGN_IN
            if not path.startswith(_OPEN) and not is_sign_in:
                operation["security"] = [{name: []} for name in _SCHEMES]
                if "x-scopes" not in operation:
                    operation["x-scopes"] = _SCOPES[operation["operationId"]]
            headers = {item["name"] for item in operation.get("parameters", ()) if item["in"] == "header"}
            if method != "get" and "if-match" in headers:
                refused = to_openapi(
                    http.HTTPStatus.PRECONDITION_FAILED, http.HTTPStatus.PRECONDITION_REQUIRED
                )
                operation["responses"] |= {str(int(status)): response for status, response in refused.items()}
            if method == "post" and not is_sign_in:
                operation.setdefault("parameters", []).append(_IDEMPOTENCY_KEY)
    return document


VERSION = "1"
# Routers are matched in this order: the most requested first.
_ROUTERS = (
    *(tenants.router, files.router, streams.router, rows.router, events.router, files.uploads),
    *(
        events.jobs,
        audit.router,
        session.router,
        session.provider_router,
    ),
    *(hotglue.router, health.router, *operation_routers()),
)
# A base64 body of the hotglue-compatible paths is a third longer than its file.
_BASE64_SHARE = 4 / 3
_BODY_MARGIN_BYTES = 64 * 1024
_MULTIPROCESS = "PROMETHEUS_MULTIPROC_DIR"


def create_application(settings: Settings, root: str, database: ControlDatabase) -> FastAPI:
    """Return the REST service of the store at ``root``; Spark is never loaded by it.

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
    for router in _ROUTERS:
        application.include_router(router)
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
