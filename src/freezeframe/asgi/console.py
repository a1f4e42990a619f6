"""Static files of the console, from the package; a content security policy forbids other origins.

Scripts and styles are sent compressed: by Brotli as they were built, or by gzip.
``ui/`` is built into ``freezeframe/console`` (``hatch_build.py``). A page's address is answered with the
one page that there is, for browsers only: programs that ask for JSON at the same address get the API's
answer. The content security policy lets the pages load from this service alone.
"""

import gzip
import mimetypes
import os
import secrets
from importlib import resources
from pathlib import Path

from fastapi import FastAPI
from fastapi.responses import FileResponse, PlainTextResponse, Response
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from freezeframe.asgi.caller import SESSION_COOKIE

PAGES = frozenset({"", "overview", "tenants", "jobs", "schedules", "keys", "audit", "compare"} | {"sign-in"})
_ASSETS = "/assets/"
_PROGRAMS = frozenset({"api", "assets", "tenant"})
_OK, _NOT_FOUND = 200, 404
_NONCE = "__STYLE_NONCE__"
_SESSION = '<link rel="preload" as="fetch" href="/api/v1/session" crossorigin />'
_NO_SESSION = '<meta name="no-session" />'
_NONCE_BYTES = 18
_ACCEPTED = "Accept-Encoding"
_COMPRESSED = frozenset({".js", ".css", ".svg"})
_NOT_BUILT = (
    "The console's pages are not in this installation.\n"
    "Build them in a checkout: cd ui && npm ci && npm run build. The API is at /api/v1.\n"
)
_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
}


def add_console(application: FastAPI, pages: Path | None = None) -> None:
    """Make the application answer browsers with the console's pages, before any of its routes.

    ``pages`` is where the built pages are (default: in the package, or the checkout's ``ui/dist``).
    """
    application.add_middleware(Console, pages=pages or built_pages())


def built_pages() -> Path:
    """Return the folder of the built pages; ``index.html`` is missing there if they were not built."""
    installed = Path(str(resources.files("freezeframe"))) / "console"
    checkout = Path(__file__).parents[3] / "ui" / "dist"
    return installed if (installed / "index.html").is_file() else checkout


class Console:
    """ASGI middleware that answers with pages and assets, and passes all other requests on."""

    def __init__(self, application: ASGIApp, pages: Path) -> None:
        self._application = application
        self._pages = pages
        self._assets = _assets(pages)
        self._content: dict[Path, bytes] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request for a page or an asset; pass any other one on."""
        if scope["type"] == "http" and scope["method"] in {"GET", "HEAD"}:
            request = Request(scope)
            answer = self._asset(request) or (self._page(request) if is_page(request) else None)
            if answer is not None:
                await answer(scope, receive, send)
                return
            if _first_name(request) not in _PROGRAMS and _takes_pages(request):  # it may be a page
                send = self._with_missing_page(request, receive, send)
        await self._application(scope, receive, send)

    def _with_missing_page(self, request: Request, receive: Receive, send: Send) -> Send:
        """Answer a browser's request for an unknown address with the console's page and status 404."""
        is_missing = False

        async def answer(message: Message) -> None:
            nonlocal is_missing
            if message["type"] == "http.response.start" and message["status"] == _NOT_FOUND:
                is_missing = True
                page = self._page(request)
                if page.status_code == _OK:
                    page.status_code = _NOT_FOUND
                await page(request.scope, receive, send)
            elif not is_missing:
                await send(message)

        return answer

    def _asset(self, request: Request) -> Response | None:
        file = self._assets.get(request.url.path)
        if file is None:
            return None
        # A file's name holds the hash of its content, so it is never another one.
        headers = {"Cache-Control": "public, max-age=31536000, immutable", "Vary": _ACCEPTED, **_HEADERS}
        kind = mimetypes.guess_type(file.name)[0] or "application/octet-stream"
        packed = self._assets.get(f"{request.url.path}.br")
        if packed is not None and _takes(request, "br"):
            return FileResponse(packed, headers={"Content-Encoding": "br", **headers}, media_type=kind)
        if file.suffix not in _COMPRESSED or not _takes(request, "gzip"):
            return FileResponse(file, headers=headers, media_type=kind)
        content = self._content.get(file)
        if content is None:
            # At most the built pages, a few hundred kilobytes, and each of them once.
            content = self._content[file] = gzip.compress(file.read_bytes(), mtime=0)
        return Response(content, headers={"Content-Encoding": "gzip", **headers}, media_type=kind)

    def _page(self, request: Request) -> Response:
        """Return the page; who has no session is told so at once, without a request that is refused."""
        try:
            page = (self._pages / "index.html").read_text(encoding="utf-8")
        except OSError:
            return PlainTextResponse(_NOT_BUILT, status_code=503, headers=_HEADERS)
        if SESSION_COOKIE not in request.cookies:
            page = page.replace(_SESSION, _NO_SESSION)
        nonce = secrets.token_urlsafe(_NONCE_BYTES)
        headers = {
            "Cache-Control": "no-store",
            "Vary": "Accept, Cookie",
            "Content-Security-Policy": content_security_policy(nonce),
            **_HEADERS,
        }
        return Response(page.replace(_NONCE, nonce), headers=headers, media_type="text/html")


def is_page(request: Request) -> bool:
    """Return whether a browser requests a page; a program may request the API at the same address."""
    return _first_name(request) in PAGES and _takes_pages(request)


def _first_name(request: Request) -> str:
    return request.url.path.strip("/").partition("/")[0]


def _takes_pages(request: Request) -> bool:
    return "text/html" in request.headers.get("accept", "")


def _takes(request: Request, encoding: str) -> bool:
    """Return whether the client accepts an encoding; ``gzip;q=0`` says that it does not accept gzip."""
    for item in request.headers.get(_ACCEPTED, "").lower().split(","):
        name, _, quality = item.replace(" ", "").partition(";q=")
        if name == encoding:
            return quality.strip("0.") != "" or quality == ""
    return False


def content_security_policy(nonce: str) -> str:
    """Everything from this service; style elements need the page's nonce, style attributes are free."""
    return "; ".join(
        (
            "default-src 'self'",
            f"style-src 'self' 'nonce-{nonce}'",
            "style-src-attr 'unsafe-inline'",
            "img-src 'self' data:",
            "object-src 'none'",
            "base-uri 'none'",
            "form-action 'self'",
            "frame-ancestors 'none'",
        )
    )


def _assets(pages: Path) -> dict[str, Path]:
    """Return the files that the service gives out, by address."""
    folder = pages / "assets"
    return {
        _ASSETS + file.relative_to(folder).as_posix(): file
        for place, _, names in os.walk(folder)
        for file in (Path(place) / name for name in names)
    }
