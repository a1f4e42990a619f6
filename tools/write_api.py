"""Write ``docs/reference/api.md`` from the service's OpenAPI document.

Run as ``python tools/write_api.py``; with ``--check`` it writes nothing and fails where the page is not what
the document says.
"""  # noqa: INP001 - a script, no package

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from freezeframe.asgi.application import create_application
from freezeframe.control.database import ControlDatabase
from freezeframe.settings import Settings

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "api.md"
_OPENING = """# The REST API

<!-- Written by tools/write_api.py from the code; change it there. -->

Every path below needs a key (`Authorization: Bearer id.secret`, or `x-api-key`) or a session, but for
signing in, health and metrics. How to run it: [serve a store](../how-to/serve.md).

- Errors are problem documents (RFC 9457). `type` is `urn:freezeframe:error:CODE`, where CODE is a heading of
  [the errors](errors.md); `request_id` is the answer's `X-Request-Id` as well.
- Moments are RFC 3339 in UTC. Lists have `limit` and `cursor`; `next_cursor` is null on the last page.
- `needs` names the scopes of a key that an operation asks for, all of them; `admin` is all scopes. A sealed
  file's content needs `secrets:read` too, watching tenants and choosing a group's by a prefix what reading
  and listing them needs (`x-scopes` in the OpenAPI document).
- Any `POST` takes an `Idempotency-Key`. Any answer may be 400, 401, 403, 409, 413, 415, 422, 429 (with
  `Retry-After`), 431, 500 or 503; what is of one tenant also 404. Others are named with the operation.
"""
_ANY = {"400", "401", "403", "404", "409", "413", "415", "422", "429", "431", "500", "503"}


def main(arguments: list[str]) -> int:
    """Write the page, or with ``--check`` compare it; 1 where it differs."""
    text = page()
    if "--check" not in arguments:
        PAGE.write_text(text, encoding="utf-8")
        return 0
    if PAGE.exists() and PAGE.read_text(encoding="utf-8") == text:
        return 0
    sys.stderr.write("Run: .venv/bin/python tools/write_api.py\n")
    return 1


def page() -> str:
    """The page's text."""
    with tempfile.TemporaryDirectory() as root:
        database = ControlDatabase.open(f"sqlite:///{root}/control.db")
        document = create_application(Settings(), root, database).openapi()
        database.close()
    lines = [_OPENING]
    by_tag: dict[str, list[str]] = {}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            by_tag.setdefault(operation["tags"][0], []).extend(_operation(method, path, operation))
    for tag in sorted(by_tag):
        lines += [f"## {tag.capitalize()}", "", *by_tag[tag]]
    return "\n".join(lines).rstrip() + "\n"


def _operation(method: str, path: str, operation: dict[str, Any]) -> Iterator[str]:
    yield f"### `{method.upper()} {path}`"
    yield ""
    yield f"{operation['description'].strip()} (`{operation['operationId']}`)"
    yield ""
    own = [item for item in operation.get("parameters", ()) if item["in"] in {"query", "header"}]
    told = [item for item in own if item["name"] != "idempotency-key"]
    if told:
        yield "| parameter | in | |"
        yield "| --- | --- | --- |"
        for item in told:
            needed = "required; " if item.get("required") else ""
            text = item.get("description", "").replace("|", "\\|").replace("\n", " ")
            yield f"| `{item['name']}` | {item['in']} | {needed}{text} |"
        yield ""
    kinds = operation.get("requestBody", {}).get("content", {})
    if kinds:
        yield f"Body: {', '.join(f'`{kind}`' for kind in kinds)}{_named(kinds)}."
        yield ""
    scopes = " and ".join(f"`{scope}`" for scope in operation.get("x-scopes", ()))
    yield f"{f'Needs {scopes}. ' if scopes else ''}Answers: {'; '.join(_answers(operation))}."
    yield ""


def _answers(operation: dict[str, Any]) -> Iterator[str]:
    for status, one in sorted(operation["responses"].items()):
        if status in _ANY:
            continue
        kinds = [kind for kind in one.get("content", {}) if kind != "application/problem+json"]
        content = f" {', '.join(f'`{kind}`' for kind in kinds)}" if kinds else ""
        yield f"{status}{content}{_named(one.get('content', {}))}"


def _named(content: dict[str, Any]) -> str:
    schema = content.get("application/json", {}).get("schema", {})
    name = schema.get("$ref", "").rpartition("/")[2]
    return f" ({name})" if name else ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
