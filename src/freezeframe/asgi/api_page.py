"""``/docs``: the OpenAPI document as one page of HTML, without a script and without anything from elsewhere.

The page is the same in every answer, so the hash of its style is what the content security policy allows.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable, Iterator
from html import escape
from typing import Any

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

_PATH = "/docs"
_REFERENCE = "#/components/schemas/"
_STYLE = """
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { margin: 0 auto; max-width: 64rem; padding: 1rem; }
nav ul { display: flex; flex-wrap: wrap; gap: 0.25rem 1rem; list-style: none; padding: 0; }
details { border: 1px solid #8888; border-radius: 4px; margin: 0.5rem 0; padding: 0.5rem; }
summary { cursor: pointer; overflow-wrap: anywhere; }
table { border-collapse: collapse; margin: 0.5rem 0; width: 100%; }
th, td { border-bottom: 1px solid #8884; padding: 0.25rem 0.5rem; text-align: left; vertical-align: top; }
td { overflow-wrap: anywhere; }
pre { background: #8882; overflow-x: auto; padding: 0.5rem; }
"""


def add_api_page(application: FastAPI) -> None:
    """Answer ``/docs`` with the application's OpenAPI document as a page; it needs no key."""
    style = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
    headers = {
        "Content-Security-Policy": f"default-src 'none'; style-src 'sha256-{style}'; base-uri 'none'; "
        "form-action 'none'; frame-ancestors 'none'",
        "Cache-Control": "no-cache",
        "Referrer-Policy": "no-referrer",
        "X-Content-Type-Options": "nosniff",
        "X-Frame-Options": "DENY",
    }
    made: list[str] = []

    async def show(request: Request) -> Response:  # noqa: ARG001 - Starlette's signature
        if not made:
            made.append(api_page(application.openapi()))
        return Response(made[0], headers=headers, media_type="text/html")

    application.add_route(_PATH, show, include_in_schema=False)


def api_page(document: dict[str, Any]) -> str:
    """The page of an OpenAPI document: its operations by tag, then the schemas that they name (pure)."""
    by_tag: dict[str, list[str]] = {}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            by_tag.setdefault(operation["tags"][0], []).append(_operation(method, path, operation))
    tags = sorted(by_tag)
    schemas = document["components"]["schemas"]
    return "".join((
        '<!doctype html><html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>REST API of freezeframe</title><style>{_STYLE}</style></head><body><main>",
        "<h1>REST API</h1>",
        "<p>A request needs a key, made by <code>freezeframe key create</code>, in the header ",
        "<code>Authorization: Bearer id.secret</code> or <code>x-api-key</code>. In the examples ",
        "<code>$SERVICE</code> is this service's address and <code>$KEY</code> the key. ",
        'Programs read <a href="/openapi.json">the same as OpenAPI 3.1</a>.</p>',
        '<nav aria-label="Sections"><ul>',
        *(f'<li><a href="#{escape(tag)}">{escape(tag.capitalize())}</a></li>' for tag in tags),
        '<li><a href="#schemas">Schemas</a></li></ul></nav>',
        *(
            f'<section><h2 id="{escape(tag)}">{escape(tag.capitalize())}</h2>{"".join(by_tag[tag])}</section>'
            for tag in tags
        ),
        '<section><h2 id="schemas">Schemas</h2>',
        *(_schema(name, schemas[name]) for name in sorted(schemas)),
        "</section></main></body></html>",
    ))  # fmt: skip


def _operation(method: str, path: str, operation: dict[str, Any]) -> str:
    text = operation["description"].strip()
    parameters = operation.get("parameters", ())
    body = operation.get("requestBody", {}).get("content", {})
    return "".join((
        f'<details id="{escape(operation["operationId"])}"><summary><code><strong>{method.upper()}</strong> ',
        f"{escape(path)}</code><br>{_prose(text.partition(chr(10))[0])}</summary>",
        *(f"<p>{_prose(part)}</p>" for part in text.split("\n\n")[1:]),
        _table(("parameter", "in", "type", ""), map(_parameter, parameters)),
        f"<p>Body: {_content(body)}</p>" if body else "",
        _table(("status", "answer"), sorted(map(_answer, operation["responses"].items()))),
        f"<pre>{escape(_request(method, path, operation, tuple(body)))}</pre></details>",
    ))  # fmt: skip


def _parameter(one: dict[str, Any]) -> tuple[str, ...]:
    needed = " (required)" if one.get("required") else ""
    name = f"<code>{escape(one['name'])}</code>{needed}"
    return name, escape(one["in"]), _kind(one["schema"]), _prose(one.get("description", ""))


def _answer(given: tuple[str, dict[str, Any]]) -> tuple[str, ...]:
    status, one = given
    return escape(status), _content(one.get("content", {})) or _prose(one.get("description", ""))


def _request(method: str, path: str, operation: dict[str, Any], kinds: tuple[str, ...]) -> str:
    """The operation as a line for curl."""
    words = ["curl"]
    if operation.get("security"):
        words.append('-H "x-api-key: $KEY"')
    if method != "get":
        words.append(f"-X {method.upper()}")
    if kinds:
        data = "--data '{…}'" if kinds[0].endswith("json") else "--data-binary @FILE"
        words += [f"-H 'content-type: {kinds[0]}'", data]
    return " ".join((*words, f'"$SERVICE{path}"'))


def _schema(name: str, schema: dict[str, Any]) -> str:
    required = schema.get("required", ())
    rows = (
        (
            f"<code>{escape(field)}</code>{' (required)' if field in required else ''}",
            _kind(one),
            _prose(one.get("description", "")),
        )
        for field, one in schema.get("properties", {}).items()
    )
    text = _prose(schema.get("description", "").partition("\n\n")[0])
    table = _table(("field", "type", ""), rows) or f"<p>{_kind(schema)}</p>"
    return f'<h3 id="schema-{escape(name)}">{escape(name)}</h3><p>{text}</p>{table}'


def _content(content: dict[str, Any]) -> str:
    return "; ".join(
        " ".join(filter(None, (f"<code>{escape(kind)}</code>", _kind(one.get("schema", {}), "")))).strip()
        for kind, one in content.items()
    )


def _kind(schema: dict[str, Any], otherwise: str = "any") -> str:
    """The type of a value in words, with links to the schemas that it names."""
    if "$ref" in schema:
        name = escape(schema["$ref"].removeprefix(_REFERENCE))
        return f'<a href="#schema-{name}">{name}</a>'
    choices = schema.get("anyOf") or schema.get("oneOf") or schema.get("allOf")
    if choices:
        return " or ".join(dict.fromkeys(map(_kind, choices)))
    values = schema.get("enum") or ([schema["const"]] if "const" in schema else ())
    if values:
        return ", ".join(f"<code>{escape(str(one))}</code>" for one in values)
    if schema.get("type") == "array":
        return f"array of {_kind(schema.get('items', {}))}"
    kind = " ".join(filter(None, (schema.get("type"), schema.get("format"))))
    return escape(kind) or otherwise


def _table(heads: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """An HTML table; an empty text where it has no rows."""
    lines = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    if not lines:
        return ""
    return f"<table><thead><tr>{''.join(_heads(heads))}</tr></thead><tbody>{lines}</tbody></table>"


def _heads(names: tuple[str, ...]) -> Iterator[str]:
    for name in names:
        yield f'<th scope="col">{name or "meaning"}</th>'


def _prose(text: str) -> str:
    """The text of a docstring as HTML; text between backticks becomes code."""
    return re.sub(r"`+([^`]+)`+", r"<code>\1</code>", escape(text.strip(), quote=False))
