"""The real service in a process of its own, and a real browser that can reach nothing else."""

import os
import shutil
import tempfile
from pathlib import Path

import pytest
from playwright.sync_api import expect, sync_playwright
from tests.browser.process import Process
from tests.browser.seeding import fill

from freezeframe.service.access.access import Stores
from freezeframe.settings import load_settings

SCREENSHOTS = os.environ.get("FREEZEFRAME_SCREENSHOTS")
VIEWPORT = {"width": 1280, "height": 800}
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # One process shows all pages, and compiles their code once and quickly.
    "--process-per-site",
    "--in-process-gpu",
    "--js-flags=--no-maglev --no-turbofan",
    # Names lead nowhere, so that nothing but the service is reached.
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
]


SCRIPT = """# /// script
# [tool.freezeframe]
# description = "Brings invoices in."
# [tool.freezeframe.parameters]
# limit = { default = 100, description = "How many at most." }
# full = false
# mode = { choices = ["upsert", "full"], default = "upsert" }
# since = { required = true }
# ///
"""


@pytest.fixture(scope="session")
def served(tmp_path_factory):
    """The address of a service with some tenants, and its root."""
    # Hundreds of tenants are some thousand small files: in memory, which `make test` has for all folders.
    memory = Path("/dev/shm")
    is_elsewhere = "PYTEST_DEBUG_TEMPROOT" in os.environ or not memory.is_dir()
    place = Path(tempfile.mkdtemp(dir=tmp_path_factory.mktemp("console") if is_elsewhere else memory))
    key_file = place / "master.key"
    keys = fill(place / "store", key_file)
    scripts = place / "scripts"
    scripts.mkdir()
    (scripts / "etl.py").write_text("")
    (scripts / "invoices.py").write_text(SCRIPT)
    environment = {
        **os.environ,
        "FREEZEFRAME_MASTER_KEY_FILE": str(key_file),
        "FREEZEFRAME_SERVICE_SCRIPTS_DIR": str(scripts),
        "FREEZEFRAME_SERVICE_BODY_BYTES_MAX": str(8 * 1024**2),  # so that a small file is a large one
    }
    with Process(place / "store", environment, workers=2) as process:
        process.keys = keys
        yield process
    shutil.rmtree(place)


@pytest.fixture(scope="session")
def store(served):
    """The served store's environment, as a script opens it."""
    settings = load_settings(root=str(served.root)).model_copy(
        update={"master_key_file": served.root.parent / "master.key"}
    )
    return Stores(str(served.root), settings).environment("default")


@pytest.fixture(scope="session")
def browser():
    """A Chromium with a fresh profile."""
    place = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    assert place, "The browser tests need Chromium: install it, or name it in CHROMIUM."
    # A machine that runs other tests beside these is slow; what is waited for is told as soon as it is there.
    expect.set_options(timeout=30_000)
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=place, args=FLAGS)
        yield found
        found.close()


@pytest.fixture(scope="session")
def sessions(browser, served):
    """Of each role the cookies of somebody who signed in."""
    found = {}
    for role in ("admin", "editor", "viewer"):
        context = browser.new_context(base_url=served.url)
        answer = context.request.post(
            "/api/v1/session",
            data={"key": served.keys[role]},
            headers={"Origin": served.url},
            timeout=120_000,  # the first answer waits for the server to be there
        )
        assert answer.status == 200, answer.text()
        found[role] = context.storage_state()
        context.close()
    return found


@pytest.fixture(scope="session")
def pages(browser, served, sessions):
    """The page of each role that its tests use one after the other, and its complaints."""
    found = {}

    def of_role(role):
        if role not in found or found[role][0].is_closed():
            context = browser.new_context(base_url=served.url, storage_state=sessions[role])
            page = context.new_page()
            found[role] = (page, watch(page, served.url))
        return found[role]

    return of_role


@pytest.fixture
def visit(browser, served, sessions, pages, tmp_path):
    """Opens pages for a role, whose files are there to the end; none of them may have complained.

    A page that is ``alone``, and one of nobody, has a context of its own.
    """
    opened = []

    def open_page(role="admin", *, alone=False, **media):
        if alone or not role:
            state = sessions[role] if role else None
            page = browser.new_context(base_url=served.url, storage_state=state, viewport=VIEWPORT).new_page()
            complaints = watch(page, served.url)
        else:
            page, complaints = pages(role)
            page.set_viewport_size(VIEWPORT)
        page.emulate_media(**{"color_scheme": "null", "reduced_motion": "reduce", **media})
        opened.append((page, complaints, alone or not role))
        return page

    yield open_page
    for page, complaints, is_alone in opened:
        found = list(complaints)
        complaints.clear()
        if is_alone:
            page.context.close()
        else:
            page.unroute_all(behavior="ignoreErrors")
            if page.url.startswith(served.url):
                page.evaluate("localStorage.clear()")
            # An address of the same site: one of another site starts a new process of the browser.
            page.goto(f"{served.url}/assets/icon.svg")
        assert found == [], page


@pytest.fixture
def page(visit):
    """A page of an admin."""
    return visit()


def watch(page, url):
    """What the page complains about from now on: errors, and requests to anywhere but the service."""
    complaints = []

    def asked(request):
        if not request.url.startswith((url, "data:", "blob:")):
            complaints.append(f"asked for {request.url}")

    def told(message):
        # The browser notes a refused request as an error; that the page shows it is what tests look at.
        is_refusal = "the server responded with a status of 4" in message.text
        if message.type == "error" and not is_refusal:
            complaints.append(f"{message.text} ({message.location.get('url', '')})")

    page.on("request", asked)
    page.on("console", told)
    page.on("pageerror", lambda error: complaints.append(f"{error}"))
    return complaints


@pytest.fixture
def picture():
    """Keeps a screenshot of a page under a name, where a folder for them is named."""
    if not SCREENSHOTS:
        return lambda _page, _name: None
    folder = Path(SCREENSHOTS)
    folder.mkdir(parents=True, exist_ok=True)
    return lambda page, name: page.screenshot(path=folder / f"{name}.png")
