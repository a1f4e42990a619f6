"""Quotas of bytes: what a tenant sends, reads and keeps; others and small requests go on."""

import base64
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from freezeframe.errors import RateLimited
from freezeframe.service.limits.byte_quotas import ByteQuotas
from freezeframe.service.limits.shared_counters import SharedCounters
from freezeframe.service.limits.shared_file import SharedFile

QUOTA = 100_000
TENANT = ("dev", "acme")


@pytest.fixture(scope="module")
def limited(serve):
    """A server on which a tenant may move 100 kB a minute, and keep 300 kB."""
    return serve(
        service_requests_per_minute=0,
        service_tenant_requests_per_minute=0,
        service_tenant_upload_bytes_per_minute=QUOTA,
        service_tenant_download_bytes_per_minute=QUOTA,
        service_tenant_stored_bytes_max=3 * QUOTA,
    )


@pytest.mark.parametrize("way", ["upload", "download"])
def test_the_request_after_the_quota_waits(limited, way):
    """Bytes sent and bytes read are counted by themselves; 429 says when; another tenant is not concerned."""
    place, other = (limited.tenant(f"{way}-{name}") for name in ("busy", "quiet"))
    with limited.client() as api, limited.client(limited.key(tenants=["nobody"])) as stranger:
        if way == "upload":
            sizes = [QUOTA // 2, QUOTA, 1]
            answers = [api.put(f"{place}/files/a", content=b"x" * size) for size in sizes]
        else:
            api.put(f"{place}/files/a", content=b"x" * (QUOTA * 3 // 4)).raise_for_status()
            answers = [api.get(f"{place}/files/a") for _ in range(3)]
        there = api.get(f"{other}/files").status_code
        unseen = stranger.get(f"{place}/files").status_code

    assert [answer.is_success for answer in answers] == [True, True, False]
    assert (answers[-1].status_code, answers[-1].json()["code"]) == (429, "RATE_LIMITED")
    assert 1 <= int(answers[-1].headers["retry-after"]) <= 61
    assert (there, unseen) == (200, 404)


def test_a_tenant_that_is_full_takes_no_more(limited):
    """Files, uploads and imports that would be too many bytes are 413; what replaces a file counts for it."""
    place = limited.tenant("full")
    tenant = limited.service.stores.environment("dev").tenant("full")
    tenant.files.write("a", b"x" * (3 * QUOTA - 1_000))
    csv = {"content-type": "text/csv"}
    upload = {"upload-length": "2000", "upload-metadata": "path YmlnLmJpbg=="}
    with limited.client() as api:
        refused = [
            api.put(f"{place}/files/b", content=b"x" * 2_000),
            api.put("/tenant/dev/full/snapshots?file=b", content=b"x" * 2_000),
            api.post(f"{place}/streams/S/import?key=Id", content=b"Id\n" * 700, headers=csv),
            api.post(f"{place}/uploads", headers=upload),
        ]
        kept = api.get(f"{place}/files").json()["files"]
        taken = api.put(f"{place}/files/a", content=b"x" * 2_000)

    assert [(one.status_code, one.json()["code"]) for one in refused] == [(413, "TENANT_FULL")] * 4
    assert ([one["path"] for one in kept], taken.status_code) == (["a"], 200)


def test_a_folder_of_a_full_tenant_is_replaced(limited):
    """Of uploads that wait together, each counts for what it will replace; one beyond that is 413."""
    place = limited.tenant("replaced")
    tenant = limited.service.stores.environment("dev").tenant("replaced")
    sizes = dict.fromkeys(("a.bin", "b.bin", "c.bin"), QUOTA - 1_000)
    for name, size in sizes.items():
        tenant.files.write(name, b"x" * size)

    def begin(api, name, size):
        path = base64.b64encode(name.encode()).decode()
        headers = {"upload-length": str(size), "upload-metadata": f"path {path},purpose YmF0Y2g="}
        return api.post(f"{place}/uploads", headers=headers)

    with limited.client() as api:
        waiting = [begin(api, name, size) for name, size in sizes.items()]
        beyond = [begin(api, "d.bin", 4_000), begin(api, "a.bin", QUOTA)]

    assert [one.status_code for one in waiting] == [201] * 3
    assert [(one.status_code, one.json()["code"]) for one in beyond] == [(413, "TENANT_FULL")] * 2


def test_workers_count_together(tmp_path):
    """What one worker has counted another learns with its next portion."""
    counters = [SharedCounters(SharedFile(tmp_path / "limits")) for _ in "ab"]
    one, other = (ByteQuotas(counter, 1_000, 0) for counter in counters)
    for _ in range(4):
        one.require_left("dev", "acme")
        one.spend("upload", TENANT, 250)
    other.require_left("dev", "acme")
    other.spend("upload", TENANT, 1, reserves=False)

    for worker in (one, other):
        with pytest.raises(RateLimited):
            worker.require_left("dev", "acme")
    other.require_left("dev", "globex")
    one.spend("download", TENANT, 10**9)


def test_within_a_portion_nothing_shared_is_touched(tmp_path):
    """Of a hundred requests one asks the counters' file."""
    counters = SharedCounters(SharedFile(tmp_path / "limits"))
    quotas = ByteQuotas(counters, 100_000, 0)
    looks = [
        quotas.spend_at_once("upload", TENANT, 10) or quotas.spend("upload", TENANT, 10) for _ in range(300)
    ]

    assert looks.count(None) == 3


AT_ONCE = 12


def _all_at_once(send):
    """The answers to what so many clients send at the same moment."""
    together = Barrier(AT_ONCE)

    def sent(number):
        together.wait(30)
        return send(number)

    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(sent, range(AT_ONCE)))


def _held(served, name):
    tenant = served.service.stores.environment("dev").tenant(name)
    return sum(file.size for file in tenant.files.list(recursive=True))


def test_uploads_at_once_do_not_go_over_what_a_tenant_may_keep(serve):
    """Each commit looks again at what the others have made of the tenant."""
    served = serve(service_tenant_stored_bytes_max=3 * QUOTA, service_requests_per_minute=0)
    place = served.tenant("crowded")
    with served.client() as api:
        answers = _all_at_once(
            lambda number: api.put(f"{place}/files/{number}", content=bytes([number]) * QUOTA)
        )

    assert {one.status_code for one in answers} == {201, 413}
    assert sum(one.is_success for one in answers) == 3
    assert _held(served, "crowded") == 3 * QUOTA


def test_resumable_uploads_reserve_their_length(serve):
    """What was begun and has no bytes yet counts; what was given up does not."""
    served = serve(service_tenant_stored_bytes_max=3 * QUOTA, service_requests_per_minute=0)
    place = served.tenant("crowded")
    begin = {"upload-length": str(QUOTA), "upload-metadata": "path YmlnLmJpbg=="}
    import_ = {**begin, "upload-metadata": "purpose aW1wb3J0"}
    with served.client() as api:
        begun = [api.post(f"{place}/uploads", headers=begin) for _ in range(4)]
        refused = [
            api.post(f"{place}/uploads", headers=import_),
            api.post(
                f"{place}/streams/S/import?key=Id", content=b"Id\n1\n", headers={"content-type": "text/csv"}
            ),
        ]
        api.delete(begun[0].headers["location"])
        again = api.post(f"{place}/uploads", headers=begin)

    assert [one.status_code for one in begun] == [201, 201, 201, 413]
    assert [one.status_code for one in (*refused, again)] == [413, 413, 201]


@pytest.mark.parametrize("is_announced", [True, False])
def test_bodies_at_once_do_not_go_over_the_quota_of_a_minute(serve, is_announced):
    """What is announced is counted before it is taken; what is not, piece by piece: one may go over."""
    served = serve(service_tenant_upload_bytes_per_minute=3 * QUOTA, service_requests_per_minute=0)
    place, size = served.tenant("crowded"), QUOTA // 4 * 3

    def body(number):
        content = bytes([number]) * size
        return content if is_announced else iter([content[:1000], content[1000:]])

    with served.client() as api:
        answers = _all_at_once(lambda number: api.put(f"{place}/files/{number}", content=body(number)))

    assert {one.status_code for one in answers} == {201, 429}
    assert _held(served, "crowded") <= 4 * size


def test_downloads_at_once_do_not_go_over_the_quota_of_a_minute(serve):
    """The length of an answer is counted before it is sent."""
    served = serve(service_tenant_download_bytes_per_minute=3 * QUOTA, service_requests_per_minute=0)
    place = served.tenant("busy")
    served.service.stores.environment("dev").tenant("busy").files.write("a", b"x" * QUOTA)
    with served.client() as api:
        answers = _all_at_once(lambda _: api.get(f"{place}/files/a"))

    assert tuple(sum(one.status_code == status for one in answers) for status in (200, 429)) == (3, 9)
    assert {len(one.content) for one in answers if one.is_success} == {QUOTA}
