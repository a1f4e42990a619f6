"""Quotas of bytes: what a tenant sends, reads and keeps; others and small requests go on."""

import pytest

from freezeframe.errors import RateLimited
from freezeframe.service.byte_quotas import ByteQuotas
from freezeframe.service.rate_limits import SharedCounters

QUOTA = 100_000


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

    assert [True, True, False] == [answer.is_success for answer in answers]
    assert (429, "RATE_LIMITED") == (answers[-1].status_code, answers[-1].json()["code"])
    assert 1 <= int(answers[-1].headers["retry-after"]) <= 61
    assert (200, 404) == (there, unseen)


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

    assert [(413, "TENANT_FULL")] * 4 == [(one.status_code, one.json()["code"]) for one in refused]
    assert (["a"], 200) == ([one["path"] for one in kept], taken.status_code)


def test_workers_count_together(tmp_path):
    """What one worker has counted another learns with its next portion."""
    counters = [SharedCounters(tmp_path / "limits") for _ in "ab"]
    one, other = (ByteQuotas(counter, 1_000, 0) for counter in counters)
    for _ in range(4):
        one.require_left("dev", "acme")
        one.spend("upload", 250, "dev", "acme")
    other.require_left("dev", "acme")
    other.spend("upload", 1, "dev", "acme")

    for worker in (one, other):
        with pytest.raises(RateLimited):
            worker.require_left("dev", "acme")
    other.require_left("dev", "globex")
    one.spend("download", 10**9, "dev", "acme")


def test_within_a_portion_nothing_shared_is_touched(tmp_path):
    """Of a hundred requests one asks the counters' file."""
    counters = SharedCounters(tmp_path / "limits")
    quotas = ByteQuotas(counters, 100_000, 0)
    looks = [
        quotas.spend_at_once("upload", 10, "dev", "acme") or quotas.spend("upload", 10, "dev", "acme")
        for _ in range(300)
    ]

    assert 3 == looks.count(None)
