"""How much of a tenant the service keeps at most, also where requests come at once."""

from concurrent.futures import ThreadPoolExecutor

QUOTA = 50_000
AT_ONCE = 12


def test_uploads_at_once_do_not_go_over_what_a_tenant_may_keep(serve):
    """Each commit looks again at what the others have made of the tenant."""
    served = serve(service_tenant_stored_bytes_max=3 * QUOTA, service_requests_per_second=0)
    place = served.tenant("crowded")
    with served.client() as api, ThreadPoolExecutor(AT_ONCE) as pool:
        answers = list(
            pool.map(lambda n: api.put(f"{place}/files/{n}", content=bytes([n]) * QUOTA), range(AT_ONCE))
        )
    tenant = served.service.stores.environment("dev").tenant("crowded")

    assert {answer.status_code for answer in answers} == {201, 413}
    assert sum(answer.is_success for answer in answers) == 3
    assert sum(file.size for file in tenant.files.list(recursive=True)) == 3 * QUOTA


def test_what_is_brought_back_counts(serve):
    """A file-return, a restoration and a batch are refused as an upload is; removing is never refused."""
    served = serve(service_tenant_stored_bytes_max=QUOTA, service_requests_per_second=0)
    place = served.tenant("full")
    with served.client() as api:
        for path in ("a", "b"):
            api.put(f"{place}/files/{path}", content=bytes(QUOTA - 10)).raise_for_status()
            api.delete(f"{place}/files/{path}").raise_for_status()
        both = {"version": 0, "files": ["a"], "streams": []}
        first = api.post(f"{place}/restorations", json=both)
        answers = [
            api.post(f"{place}/file-returns", json={"path": "b", "version": 2}),
            api.post(f"{place}/restorations", json={"version": 2, "files": ["b"], "streams": []}),
        ]
        swapped = api.post(f"{place}/restorations", json={"version": 2})
        removed = api.delete(f"{place}/files/b")

    assert first.status_code == 200
    assert [(answer.status_code, answer.json()["code"]) for answer in answers] == [(413, "TENANT_FULL")] * 2
    assert (swapped.status_code, removed.status_code) == (200, 200)
