"""The service dies and comes back: what it had acknowledged is there, and nothing else is half there."""

import http.client
import json
import os
import signal
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest
from tests.control.conftest import made_database, postgresql_server  # noqa: F401 - a fixture

from freezeframe.asgi.application import create_application
from freezeframe.control.database import ControlDatabase, database_url
from freezeframe.settings import Settings

FREEZEFRAME = Path(sys.executable).parent / "freezeframe"
WRITERS = 4
KILLED_AFTER = 60


def _served(root, workers):
    process = subprocess.Popen(
        [FREEZEFRAME, "serve", "--root", root, "--port", "0", "--workers", str(workers), "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    return process, json.loads(process.stdout.readline())["url"].removeprefix("http://")


def _stopped(process, number):
    os.killpg(process.pid, number)
    process.wait(60)
    process.stdout.close()
    process.stderr.close()


def _audited(connection, writer, headers):
    """What the audit of the writer's tenant says was written; it is whole."""
    tenant = f"/api/v1/environments/dev/tenants/{writer.tenant}"
    connection.request("GET", "/api/v1/audit/proof", headers=headers)
    assert json.loads(connection.getresponse().read())["is_whole"]
    connection.request("GET", f"{tenant}/audit?limit=1000&action=file.write", headers=headers)
    page = json.loads(connection.getresponse().read())
    assert page["next_cursor"] is None
    return {item["subject"] for item in page["entries"]}


class Writer(threading.Thread):
    """Puts one file after the other, and remembers which were acknowledged."""

    def __init__(self, place, key, name, enough):
        super().__init__()
        self.acknowledged, self.statuses = {}, set()
        self.tenant = name
        self._place, self._key, self._name, self._enough = place, key, name, enough

    def run(self):
        with closing(http.client.HTTPConnection(self._place, timeout=60)) as connection:
            self._write(connection)

    def _write(self, connection):
        for number in range(10_000):
            path, content = f"{self._name}/{number}", f"{self._name} {number} ".encode() * 100
            target = f"/api/v1/environments/dev/tenants/{self._name}/files/{path}"
            try:
                connection.request("PUT", target, content, {"x-api-key": self._key})
                answer = connection.getresponse()
                answer.read()
            except (OSError, http.client.HTTPException):
                return  # killed; what was under way was never acknowledged
            self.statuses.add(answer.status)
            self.acknowledged[target] = content
            if len(self.acknowledged) >= KILLED_AFTER // WRITERS:
                self._enough.release()


@pytest.fixture(params=["sqlite", "postgresql"])
def control_database(request, monkeypatch):
    """Where the services of a test keep what is their own: in the store, or in PostgreSQL."""
    if request.param == "sqlite":
        yield request.param
        return
    with made_database(request.getfixturevalue("postgresql_server")) as url:
        monkeypatch.setenv("FREEZEFRAME_DATABASE_URL", url)
        yield request.param


@pytest.mark.nightly
@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.usefixtures("control_database")
def test_every_acknowledged_write_survives_kill_9(tmp_path, workers):
    """Killed in the middle of writes and started again, the service gives every acknowledged byte.

    Each of them is in its tenant's audit, which is whole.
    """
    root = str(tmp_path / "store")
    settings = Settings()
    database = ControlDatabase.open(database_url(settings, root))
    key = create_application(settings, root, database).state.service.keys.create(scopes=["admin"]).key
    database.close()
    process, place = _served(root, workers)
    enough = threading.Semaphore(0)
    headers = {"x-api-key": key, "content-type": "application/json"}
    with closing(http.client.HTTPConnection(place, timeout=60)) as connection:
        for number in range(WRITERS):
            body = json.dumps({"tenant": f"w{number}"})
            connection.request("POST", "/api/v1/environments/dev/tenants", body, headers)
            answer = connection.getresponse()
            assert (answer.status, bool(answer.read())) == (201, True)
    writers = [Writer(place, key, f"w{number}", enough) for number in range(WRITERS)]
    for writer in writers:
        writer.start()
    enough.acquire(timeout=120)
    _stopped(process, signal.SIGKILL)
    for writer in writers:
        writer.join(60)

    process, place = _served(root, workers)
    try:
        with closing(http.client.HTTPConnection(place, timeout=60)) as connection:
            for writer in writers:
                assert writer.statuses <= {201}
                noted = _audited(connection, writer, headers)
                assert {target.partition("/files/")[2] for target in writer.acknowledged} <= noted
                for target, content in writer.acknowledged.items():
                    connection.request("GET", target, headers={"x-api-key": key})
                    assert content == connection.getresponse().read()
    finally:
        _stopped(process, signal.SIGTERM)
    assert KILLED_AFTER // WRITERS <= sum(len(writer.acknowledged) for writer in writers)
