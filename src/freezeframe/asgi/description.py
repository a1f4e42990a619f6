"""Texts of the OpenAPI document beside the routes: problems, authentication, idempotency keys (pure)."""

from __future__ import annotations

import http
from typing import Any

from freezeframe.asgi.dependencies.caller import IDEMPOTENCY_KEY_LENGTH_MAX
from freezeframe.asgi.models.base import Problem
from freezeframe.asgi.problems import to_openapi

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
            headers = {item["name"] for item in operation.get("parameters", ()) if item["in"] == "header"}
            if method != "get" and "if-match" in headers:
                refused = to_openapi(
                    http.HTTPStatus.PRECONDITION_FAILED, http.HTTPStatus.PRECONDITION_REQUIRED
                )
                operation["responses"] |= {str(int(status)): one for status, one in refused.items()}
            if method == "post" and not is_sign_in:
                operation.setdefault("parameters", []).append(_IDEMPOTENCY_KEY)
    return document
