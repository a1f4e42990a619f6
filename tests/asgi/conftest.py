"""A real server in this process, on a store without Spark, and clients of it."""

import ssl
import threading
import time
import uuid
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import httpx
import pytest
import uvicorn
from tests.asgi.places import PLACE, bucket, placed, postgresql_server  # noqa: F401 - fixtures

from freezeframe.asgi.application import create_application
from freezeframe.asgi.routes import events
from freezeframe.control.database import ControlDatabase
from freezeframe.settings import Settings

ENVIRONMENT = "dev"
ROWS = b"Id,City\n007,Bern\n1,Basel\n"
LOOK_SECONDS = 0.1
"""How often a server looks for what its followers wait for."""
NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""A client without one reads the certificates of all authorities first."""


@dataclass(frozen=True)
class Served:
    """A server that listens: where, its store's root, and the application with its service."""

    url: str
    root: str
    app: object

    @property
    def service(self):
        return self.app.state.service

    @property
    def uploads(self):
        """The folder with all that waits for tenants, each tenant's in one of its own."""
        return self.service.blobs._folder

    def key(self, *scopes, **bounds):
        """The text of a new key; without bounds for everything."""
        return self.service.keys.create(scopes=scopes or ["admin"], **bounds).key

    def client(self, key=None, **options):
        """A client that sends the key (default: one that may do everything; "": none)."""
        text = self.key() if key is None else key
        headers = {"x-api-key": text} if text else {}
        return httpx.Client(base_url=self.url, headers=headers, timeout=60, verify=NO_TLS, **options)

    def tenant(self, name, environment=ENVIRONMENT):
        """The path of a tenant, which is made."""
        self.service.stores.environment(environment).tenant(name, create=True)
        return f"/api/v1/environments/{environment}/tenants/{name}"


_MADE = {}


def take_routes(app, first):
    """Give an application the routes and the document that the first one of this process has made.

    FastAPI makes them at the first request to each application, a whole router at a time: half a second.
    """
    app.router.routes[:] = first.router.routes
    app.openapi = first.openapi


@contextmanager
def servers(request, tmp_path_factory, place=PLACE):
    """A function that starts a server with settings; all are stopped at the end of the block."""
    stops, places = [], ExitStack()
    patch = places.enter_context(pytest.MonkeyPatch.context())
    patch.setattr(events, "_CHECKED_EVERY_SECONDS", LOOK_SECONDS)
    patch.setattr(events, "_LOOKED_EVERY_SECONDS", LOOK_SECONDS)

    def start(**options):
        wanted = Settings(state_dir=tmp_path_factory.mktemp("state"), **options)
        root, settings, url = places.enter_context(placed(request, tmp_path_factory, wanted, place))
        database = ControlDatabase.open(url)
        app = create_application(settings, root, database)
        take_routes(app, _MADE.setdefault(settings.service_body_bytes_max, app))
        app.state.events._look_seconds = LOOK_SECONDS
        config = uvicorn.Config(app, log_level="critical", port=0, access_log=False, timeout_keep_alive=60)
        socket = config.bind_socket()
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [socket]}, daemon=True)
        thread.start()
        stops.append((server, thread, database))
        while not server.started:
            time.sleep(0.01)
        return Served(f"http://127.0.0.1:{socket.getsockname()[1]}", root, app)

    yield start
    for server, thread, database in stops:
        server.should_exit = True
        thread.join(10)
        database.close()
    places.close()


@pytest.fixture(scope="module")
def serve(request, tmp_path_factory):
    """A function that starts a server with settings; all are stopped after the module."""
    with servers(request, tmp_path_factory) as start:
        yield start


@pytest.fixture(scope="session")
def served(request, tmp_path_factory):
    """A server with generous quotas, which tests of other things share: their tenants are their own."""
    with servers(request, tmp_path_factory) as start:
        yield start(service_requests_per_second=0)


@pytest.fixture
def api(served):
    """A client that may do everything."""
    with served.client() as client:
        yield client


@pytest.fixture
def acme(served):
    """The path of a tenant of this test alone."""
    return served.tenant(f"acme-{uuid.uuid4().hex[:8]}")
