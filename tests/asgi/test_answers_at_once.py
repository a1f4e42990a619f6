"""Answers for which nothing is waited for are given without a thread; all others as ever."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

from freezeframe.asgi.checked_route import CheckedRoute, tried_at_once
from freezeframe.storage.promptness import about_to_wait


class Near:
    """A caller of a service whose store is on this machine's disk."""

    is_near = True

    @property
    def service(self):
        return self

    stores = service


def test_only_what_waits_is_given_to_a_thread():
    """An endpoint that has to wait is begun again in a thread of the pool; its answer is the same."""
    threads = []

    @tried_at_once
    def endpoint(caller: str, waits: bool) -> bool:
        threads.append((waits, threading.current_thread() is threading.main_thread()))
        if waits:
            about_to_wait()
        return waits

    async def asked(waits):
        return await CheckedRoute("/", endpoint).endpoint(caller=Near(), waits=waits)

    assert [False, True] == [asyncio.run(asked(waits)) for waits in (False, True)]
    assert [(False, True), (True, True), (True, False)] == threads


def test_a_tenant_that_somebody_holds_up_holds_up_nobody_else(serve):
    """While one tenant's log is being read, the others' requests are answered, and then its own."""
    server = serve()
    slow, quick = server.tenant("slow"), server.tenant("quick")
    lock = server.service.stores.environment("dev").tenant("slow").place.log._update_lock
    with server.client() as client, ThreadPoolExecutor(1) as pool:
        assert 200 == client.get(slow).status_code
        with lock:
            waiting = pool.submit(client.get, slow)
            for _ in range(20):
                assert 200 == client.get(quick).status_code
            assert not waiting.done()
        assert 200 == waiting.result(60).status_code


def test_what_another_process_changed_is_seen(serve):
    """A tenant whose log has grown is read again: its files and its version are the newest ones."""
    server = serve()
    tenant = server.tenant("changed")
    known = server.service.stores.environment("dev").tenant("changed").place
    elsewhere = type(server.service.stores)(server.root, known.settings).environment("dev").tenant("changed")
    with server.client() as client:
        for number in range(3):
            elsewhere.files.write("a.txt", b"%d" % number)
            assert number == client.get(tenant).json()["version"]
            assert b"%d" % number == client.get(f"{tenant}/files/a.txt").content
