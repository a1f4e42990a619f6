"""One of two processes of a service is replaced while the other answers."""

import json
import os
import threading

import httpx
import pytest
from tests.browser.process import Process

from freezeframe.cli.main import main

# `asgi/test_changes.py` kills a service and opens what it left in every run.
pytestmark = pytest.mark.nightly

FILES = "/api/v1/environments/default/tenants/acme/files"


def test_one_process_is_replaced_while_the_other_answers(tmp_path, capsys):
    """No request of the other fails meanwhile, and the new process has all that was written by any."""
    root = tmp_path / "store"
    assert 0 == main(["key", "create", "--root", str(root), "--name", "a", "--scope", "admin", "--json"])
    headers = {"x-api-key": json.loads(capsys.readouterr().out)["key"]}
    environment = {
        **os.environ,
        "FREEZEFRAME_SERVICE_REQUESTS_PER_SECOND": "0",
        "FREEZEFRAME_STATE_DIR": str(tmp_path / "state"),
    }
    written, is_replaced = [], threading.Event()

    with Process(root, environment, 1) as old, Process(root, environment, 1) as other:
        with _client(old, headers) as client:
            client.post(
                FILES.rpartition("/tenants")[0] + "/tenants", json={"tenant": "acme"}
            ).raise_for_status()
            assert 201 == client.put(f"{FILES}/before", content=b"x").status_code

        def write():
            with _client(other, headers) as client:
                while not is_replaced.is_set() or len(written) < 2:
                    written.append(client.put(f"{FILES}/{len(written)}", content=b"x").status_code)

        writer = threading.Thread(target=write)
        writer.start()
        try:
            old.stop()
            old.start(0)
        finally:
            is_replaced.set()
            writer.join()
        with _client(old, headers) as client:
            last = client.get(f"{FILES}/{len(written) - 1}")
            assert (200, b"x") == (last.status_code, last.content)
            assert 200 == client.get(f"{FILES}/before").status_code

    assert {201} == set(written)


def _client(process, headers):
    return httpx.Client(base_url=process.url, headers=headers, timeout=60)
