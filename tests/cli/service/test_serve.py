"""``freezeframe serve``: what it says before it listens, and where it cannot."""

import json
import os
import socket
import subprocess
import sys

import httpx
import pytest

from freezeframe.cli.main import main


def test_a_port_that_is_taken_is_an_error_of_the_call(tmp_path, capsys):
    """It names the address and what to do; no service is started."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert main(["serve", "--root", str(tmp_path / "s"), "--port", port, "--workers", "1"]) == 2

    said = capsys.readouterr().err
    assert f"The service cannot listen at 127.0.0.1:{port}." in said
    assert "Cause: Address already in use" in said


@pytest.mark.parametrize(
    ("options", "settings", "is_told"),
    [
        (["--host", "127.0.0.1"], {}, True),
        (["--host", "0.0.0.0"], {}, False),
        (["--host", "127.0.0.1"], {"FREEZEFRAME_SERVICE_URL": "https://snapshots.example.org"}, False),
    ],
)
def test_a_link_that_signs_in_is_printed_on_loopback(tmp_path, options, settings, is_told):
    """The console is open to whoever started it; an address that others reach, or a proxy's, has no link."""
    command = [sys.executable, "-m", "freezeframe", "serve", "--root", str(tmp_path / "s"), "--port", "0"]
    process = subprocess.Popen(
        [*command, "--workers", "1", "--json", *options],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **settings},
    )
    try:
        told = json.loads(process.stdout.readline())
        assert is_told == ("sign_in" in told)
        if is_told:
            link = told["sign_in"].removeprefix(f"{told['url']}/sign-in#")
            answers = [
                httpx.post(
                    f"{told['url']}/api/v1/session", json={"link": link}, headers={"origin": told["url"]}
                )
                for _ in range(2)
            ]
            assert [200, 401] == [answer.status_code for answer in answers]
    finally:
        process.terminate()
        process.communicate(timeout=60)
