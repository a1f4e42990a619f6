"""``freezeframe serve`` and the sockets of its processes."""

import json
import multiprocessing
import os
import socket
import subprocess
import sys

import httpx
import pytest
import uvicorn
from tests.cli.commands.socket_holder import WAIT_SECONDS, hold

from freezeframe.cli.commands.serve import Listeners, claim_socket
from freezeframe.cli.main import main


def test_a_port_that_is_taken_is_an_error_of_the_call(tmp_path, capsys):
    """It names the address and what to do; no service is started."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert main(["serve", "--root", str(tmp_path / "s"), "--port", port, "--workers", "1"]) == 2

    said = capsys.readouterr().err
    assert f"The service cannot listen at 127.0.0.1:{port}." in said
    assert "Cause: Address already in use" in said


@pytest.mark.long
def test_a_link_that_signs_in_is_printed_on_loopback(tmp_path):
    """The console is open to whoever started it, once."""
    command = [sys.executable, "-m", "freezeframe", "serve", "--root", str(tmp_path / "s"), "--port", "0"]
    process = subprocess.Popen([*command, "--workers", "1", "--json"], stdout=subprocess.PIPE, text=True)
    try:
        printed = json.loads(process.stdout.readline())
        assert {"url", "root", "workers", "pid", "sign_in"} == printed.keys()
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


def group(tmp_path, count):
    """A group on a port that was free a moment ago."""
    with socket.socket() as free:
        free.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        free.bind(("127.0.0.1", 0))
        address = free.getsockname()
    return Listeners(address, socket.AF_INET, count, str(tmp_path))


def connected(address, count):
    return [socket.create_connection(address) for _ in range(count)]


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="Elsewhere all processes share one socket.")
def test_connections_are_shared_out_and_none_is_lost(tmp_path):
    """Of sixty-four connections that wait each of two processes gets its part."""
    sockets = group(tmp_path, 2)
    context = multiprocessing.get_context("spawn")
    ready, end = context.Barrier(3), context.Queue()
    processes = [context.Process(target=hold, args=(sockets, ready, end)) for _ in range(2)]
    for process in processes:
        process.start()
    clients = connected(sockets[0].getsockname(), 64)
    ready.wait(WAIT_SECONDS)  # both have claimed theirs
    accepted = [end.get(timeout=WAIT_SECONDS) for _ in processes]
    for process in processes:
        process.join(WAIT_SECONDS)
    for process in (*clients, *sockets):
        process.close()
    assert sum(accepted) == 64
    assert min(accepted) > 8  # by chance less than one run in a thousand million


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="Elsewhere all processes share one socket.")
def test_who_comes_after_a_process_that_died_takes_its_socket(tmp_path):
    """One process after the other, of a group of one socket: each of them gets it."""
    sockets = group(tmp_path, 1)
    context = multiprocessing.get_context("spawn")
    for number in range(2):
        ready, end = context.Barrier(1), context.Queue()
        clients = connected(sockets[0].getsockname(), number + 1)
        process = context.Process(target=hold, args=(sockets, ready, end))
        process.start()
        assert number + 1 == end.get(timeout=WAIT_SECONDS)
        process.join(WAIT_SECONDS)
        for client in clients:
            client.close()
    sockets[0].close()


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="Elsewhere all processes share one socket.")
def test_who_starts_while_all_are_claimed_listens_on_each(tmp_path):
    """Of three processes for two sockets the last one has both: it may outlive either owner."""
    sockets = group(tmp_path, 2)
    copies = [[socket.socket(fileno=os.dup(item.fileno())) for item in sockets] for _ in range(3)]
    held = [claim_socket(copy, str(tmp_path)) for copy in copies]
    assert [len(item) for item in held] == [1, 1, 2]
    assert held[0][0].fileno() != held[1][0].fileno()
    for item in (*sockets, *(mine for some in held for mine in some)):
        item.close()


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="Elsewhere all processes share one socket.")
def test_an_address_that_is_taken_is_refused(tmp_path):
    """Another program's port is not a place to listen."""
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(OSError, match="in use"):
        Listeners(taken.getsockname(), socket.AF_INET, 2, str(tmp_path))
