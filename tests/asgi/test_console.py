"""The console's pages: who gets them, what they may load, and how they are sent."""

import asyncio
import gzip

import httpx
import pytest
from fastapi import FastAPI

from freezeframe.asgi.console import add_console, content_security_policy

SCRIPT = b"console.log('a page');\n" * 200


@pytest.fixture
def application(tmp_path):
    """An application with built pages, and a route at a page's address."""
    (tmp_path / "assets").mkdir()
    (tmp_path / "index.html").write_text('<meta name="nonce" content="__STYLE_NONCE__">')
    (tmp_path / "assets" / "index-1a2b.js").write_bytes(SCRIPT)
    (tmp_path / "assets" / "first-3c4d.css").write_bytes(b"p { margin: 0 }")
    (tmp_path / "assets" / "first-3c4d.css.br").write_bytes(b"packed")
    (tmp_path / "secret.txt").write_text("not for anybody")
    found = FastAPI()
    found.add_api_route("/tenants", lambda: {"tenants": []})
    add_console(found, tmp_path)
    return found


async def asked(application, path, **headers):
    """The application's answer."""
    transport = httpx.ASGITransport(application)
    async with httpx.AsyncClient(transport=transport, base_url="http://console") as client:
        return await client.get(
            path, headers={name.replace("_", "-"): value for name, value in headers.items()}
        )


@pytest.fixture
def ask(application):
    """Asks the application for a path with headers."""
    return lambda path, **headers: asyncio.run(asked(application, path, **headers))


def test_a_browser_gets_the_page_and_a_program_the_answer(ask):
    """By Accept, at the same address; each page has a nonce of its own, and its policy names it."""
    first, second = (ask("/tenants", accept="text/html") for _ in range(2))

    assert ask("/tenants", accept="application/json").json() == {"tenants": []}
    assert first.text != second.text
    assert "__STYLE_NONCE__" not in first.text
    nonce = first.text.partition('content="')[2].partition('"')[0]
    assert content_security_policy(nonce) == first.headers["content-security-policy"]


def test_an_address_without_a_page_is_a_page_for_browsers_alone(ask):
    """With the status 404; programs, and whoever asks the API, have the application's own answer."""
    missing = ask("/nowhere/at/all", accept="text/html")

    assert (missing.status_code, "nonce" in missing.text) == (404, True)
    for path, kind in (("/nowhere", "application/json"), ("/api/v1/nowhere", "text/html")):
        answer = ask(path, accept=kind)
        assert (answer.status_code, answer.json()["detail"]) == (404, "Not Found"), path


def test_scripts_are_sent_compressed_to_who_takes_that(ask):
    """The same bytes either way; a browser may keep them for ever, by encoding."""
    plain = ask("/assets/index-1a2b.js", accept_encoding="identity")
    refused = ask("/assets/index-1a2b.js", accept_encoding="br, gzip;q=0")
    packed = ask("/assets/index-1a2b.js", accept_encoding="br, gzip")

    assert SCRIPT == plain.content == refused.content == packed.content
    assert tuple(item.headers.get("content-encoding") for item in (plain, refused, packed)) == (
        None,
        None,
        "gzip",
    )
    assert len(gzip.compress(SCRIPT)) >= int(packed.headers["content-length"])
    assert "immutable" in packed.headers["cache-control"]
    assert packed.headers["vary"] == "Accept-Encoding"


def test_what_was_built_compressed_is_sent_to_clients_that_accept_it(ask):
    """By Brotli, under the type of the file itself; clients that refuse it get gzip."""
    packed = ask("/assets/first-3c4d.css", accept_encoding="gzip, br", accept="text/html")
    refused = ask("/assets/first-3c4d.css", accept_encoding="gzip, br;q=0")

    # The client of this test knows no Brotli, and so shows the bytes as they came.
    assert (packed.headers["content-encoding"], packed.content) == ("br", b"packed")
    assert packed.headers["content-type"] == "text/css; charset=utf-8"
    assert "immutable" in packed.headers["cache-control"]
    assert (refused.headers["content-encoding"], refused.content) == ("gzip", b"p { margin: 0 }")


@pytest.mark.parametrize("path", ["/assets/../secret.txt", "/assets/%2e%2e/secret.txt", "/secret.txt"])
def test_nothing_but_the_built_assets_is_sent(ask, path):
    """A path that leads elsewhere is no asset."""
    assert ask(path).status_code == 404


def test_pages_that_are_not_built_are_told(tmp_path):
    """What to do is said, and the API is named."""
    found = FastAPI()
    add_console(found, tmp_path)
    answer = asyncio.run(asked(found, "/tenants", accept="text/html"))

    assert answer.status_code == 503
    assert "npm run build" in answer.text
