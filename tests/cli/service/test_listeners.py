"""The sockets of a service: each process has its own, and who takes over from one that died has that one."""

import multiprocessing
import os
import socket
import sys

import pytest

from freezeframe.cli.commands.serve import Listeners, claim_socket

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(sys.platform != "linux", reason="Elsewhere all processes share one socket."),
]
WAIT_SECONDS = 60


def hold(sockets, ready, end):
    """A process of a service with the socket that it was given: it tells how many connections it had."""
    (own,) = sockets
    ready.wait(WAIT_SECONDS)
    own.setblocking(False)
    accepted = 0
    while True:
        try:
            own.accept()[0].close()
        except BlockingIOError:
            break
        accepted += 1
    end.put(accepted)


def group(tmp_path, count):
    """A group on a port that was free a moment ago."""
    with socket.socket() as free:
        free.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        free.bind(("127.0.0.1", 0))
        address = free.getsockname()
    return Listeners(address, socket.AF_INET, count, str(tmp_path))


def connected(address, count):
    return [socket.create_connection(address) for _ in range(count)]


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


def test_who_starts_while_all_are_claimed_listens_on_each(tmp_path):
    """Of three processes for two sockets the last one has both: it may outlive either owner."""
    sockets = group(tmp_path, 2)
    copies = [[socket.socket(fileno=os.dup(item.fileno())) for item in sockets] for _ in range(3)]
    held = [claim_socket(copy, str(tmp_path)) for copy in copies]
    assert [len(item) for item in held] == [1, 1, 2]
    assert held[0][0].fileno() != held[1][0].fileno()
    for item in (*sockets, *(mine for some in held for mine in some)):
        item.close()


def test_an_address_that_is_taken_is_refused(tmp_path):
    """Another program's port is not a place to listen."""
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(OSError, match="in use"):
        Listeners(taken.getsockname(), socket.AF_INET, 2, str(tmp_path))
