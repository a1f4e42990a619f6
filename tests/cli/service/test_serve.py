"""``freezeframe serve``: what it says before it listens, and where it cannot."""

import json
import socket
import subprocess
import sys

import httpx
import pytest
import uvicorn
from tests.cli.test_json_output import problems

from freezeframe.cli.main import main


def test_a_port_that_is_taken_is_an_error_of_the_call(tmp_path, capsys):
    """It names the address and what to do; no service is started."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert main(["serve", "--root", str(tmp_path / "s"), "--port", port, "--workers", "1"]) == 2

    said = capsys.readouterr().err
    assert f"The service cannot listen at 127.0.0.1:{port}." in said
    assert "Cause: Address already in use" in said


def test_a_link_that_signs_in_is_printed_on_loopback(tmp_path):
    """The console is open to whoever started it, once."""
    command = [sys.executable, "-m", "freezeframe", "serve", "--root", str(tmp_path / "s"), "--port", "0"]
    process = subprocess.Popen([*command, "--workers", "1", "--json"], stdout=subprocess.PIPE, text=True)
    try:
        printed = json.loads(process.stdout.readline())
        assert problems("serve", printed) == []
        session, origin = f"{printed['url']}/api/v1/session", {"origin": printed["url"]}
        link = {"link": printed["sign_in"].removeprefix(f"{printed['url']}/sign-in#")}
        answers = [httpx.post(session, json=link, headers=origin) for _ in range(2)]
        assert [200, 401] == [answer.status_code for answer in answers]
    finally:
        process.terminate()
        process.communicate(timeout=60)


@pytest.mark.parametrize(
    ("host", "settings"),
    [("0.0.0.0", {}), ("127.0.0.1", {"FREEZEFRAME_SERVICE_URL": "https://snapshots.example.org"})],
)
def test_an_address_that_others_reach_has_no_link(tmp_path, capsys, monkeypatch, host, settings):
    """Nor has the address of a proxy."""
    monkeypatch.setattr(uvicorn.Server, "run", lambda _, sockets: [item.close() for item in sockets])
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    options = ["--host", host, "--port", "0", "--workers", "1", "--json"]
    assert main(["serve", "--root", str(tmp_path / "s"), *options]) == 0
    assert "sign_in" not in json.loads(capsys.readouterr().out)
