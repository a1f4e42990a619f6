"""Requests for one tenant neither wait for another one nor miss what another process changed."""

from concurrent.futures import ThreadPoolExecutor


def test_a_tenant_that_somebody_holds_up_holds_up_nobody_else(serve):
    """While one tenant's log is being read, the others' requests are answered, and then its own."""
    server = serve()
    slow, quick = server.tenant("slow"), server.tenant("quick")
    lock = server.service.stores.environment("dev").tenant("slow").context.log._update_lock
    with server.client() as client, ThreadPoolExecutor(1) as pool:
        assert client.get(slow).status_code == 200
        with lock:
            waiting = pool.submit(client.get, slow)
            for _ in range(20):
                assert client.get(quick).status_code == 200
            assert not waiting.done()
        assert waiting.result(60).status_code == 200


def test_what_another_process_changed_is_seen(serve):
    """A tenant whose log has grown is read again: its files and its version are the newest ones."""
    server = serve()
    tenant = server.tenant("changed")
    known = server.service.stores.environment("dev").tenant("changed").context
    elsewhere = type(server.service.stores)(server.root, known.settings).environment("dev").tenant("changed")
    with server.client() as client:
        for number in range(3):
            elsewhere.files.write("a.txt", b"%d" % number)
            assert number == client.get(tenant).json()["version"]
            assert b"%d" % number == client.get(f"{tenant}/files/a.txt").content


def test_a_job_that_changed_nothing_is_told_as_that(served, api, acme):
    """Its version keeps the id, which must not run again; other versions are not idle."""
    tenant = served.service.stores.environment("dev").tenant(acme.rpartition("/")[2])
    tenant.files.write("a.txt", b"a")
    with tenant.job("nightly"):
        pass
    versions = api.get(f"{acme}/history").json()["versions"]
    body = [item.to_json() for item in tenant.history()]

    assert [(version["job_id"], version["is_idle"]) for version in versions] == [
        ("nightly", True),
        (None, False),
    ]
    assert [item["is_idle"] for item in body] == [True, False]
