"""What holds for all of the API: keys, sessions, quotas, idempotency, and the audit."""

import gzip
import time
import uuid
from concurrent.futures import ThreadPoolExecutor

TENANTS = "/api/v1/environments/dev/tenants"


def test_the_same_post_again_is_answered_and_not_done_again(api, acme):
    """With an Idempotency-Key the second answer tells of the first one's version."""
    api.put(f"{acme}/files/a", content=b"x")
    api.delete(f"{acme}/files/a")
    headers = {"idempotency-key": str(uuid.uuid4())}
    first = api.post(f"{acme}/restorations", json={"version": 0}, headers=headers)
    again = api.post(f"{acme}/restorations", json={"version": 0}, headers=headers)

    assert (first.status_code, first.json()["tenant_version"]) == (
        again.status_code,
        again.json()["tenant_version"],
    )
    assert len(api.get(f"{acme}/history").json()["versions"]) == 3


def test_the_key_of_a_request_is_the_id_of_its_job(api, acme, served):
    """The job that is there is given again; another order under its id is refused."""
    headers = {"idempotency-key": "2026-11-26"}
    content = {"content-type": "text/csv", **headers}
    made = [api.post(f"{acme}/streams/A/import?key=Id", content=b"Id\n1\n", headers=content) for _ in "ab"]
    other = api.post(f"{acme}/streams/B/import?key=Id", content=b"Id\n1\n", headers=content)

    assert [(item.status_code, item.json()["job_id"]) for item in made] == [(202, "2026-11-26")] * 2
    assert (other.status_code, other.json()["code"]) == (422, "IDEMPOTENCY_CONFLICT")


def test_a_key_of_somebody_else_is_another_key(served, api, acme):
    """Nobody is answered with somebody else's version."""
    headers = {"idempotency-key": "the-same"}
    made = api.post(f"{acme}/folders", json={"path": "f"}, headers=headers)
    with served.client() as other:
        again = other.post(f"{acme}/folders", json={"path": "f"}, headers=headers)

    assert (made.status_code, again.status_code) == (201, 409)


def test_of_the_same_posts_at_once_one_is_carried_out(api, acme):
    """Of eight at once one makes the version; the others are answered with it."""
    headers = {"idempotency-key": str(uuid.uuid4())}
    with ThreadPoolExecutor(8) as pool:
        calls = [
            pool.submit(api.post, f"{acme}/folders", json={"path": "f"}, headers=headers) for _ in range(8)
        ]
        statuses = {call.result().status_code for call in calls}

    assert statuses == {201}
    assert len(api.get(f"{acme}/history").json()["versions"]) == 1


def test_a_quota_is_one_keys_own(serve):
    """Who asks too often gets 429 with Retry-After; others go on."""
    served = serve(service_requests_per_second=0.5)
    with served.client() as noisy, served.client() as quiet:
        answers = [noisy.get("/api/v1/session") for _ in range(12)]
        refused = [answer for answer in answers if answer.status_code == 429]

        assert 2 <= len(refused) <= 7
        assert 1 <= int(refused[0].headers["retry-after"]) <= 2
        assert quiet.get("/api/v1/session").status_code == 200


def test_what_waits_for_a_tenant_is_limited(serve, tmp_path):
    """Queued jobs and staged blobs: 429 names the setting and says when to come back."""
    (tmp_path / "etl.py").touch()
    limits = {"service_tenant_jobs_queued_max": 1, "service_tenant_uploads_max": 1}
    served = serve(service_scripts_dir=tmp_path, **limits)
    tenant = served.tenant("acme")
    with served.client() as client:
        client.post(f"{tenant}/schedules", json={"name": "nightly", "script": "etl.py", "cron": "@daily"})
        jobs = [client.post(f"{tenant}/jobs", json={"script": "etl.py"}) for _ in range(2)]
        jobs.append(client.post(f"{tenant}/schedules/nightly/runs"))
        uploads = [client.post(f"{tenant}/blobs", content=b"x") for _ in range(2)]

    assert [job.status_code for job in jobs] == [202, 429, 429]
    assert [upload.status_code for upload in uploads] == [201, 429]
    for refused, setting in ((jobs[2], "jobs_queued"), (uploads[1], "uploads")):
        assert f"service_tenant_{setting}_max" in refused.json()["cause"]
        assert refused.headers["retry-after"] == "60"


def test_keys_are_made_rotated_and_revoked(served, api):
    """Both secrets are good during the overlap; after the revocation none is."""
    made = api.post(
        "/api/v1/keys", json={"name": "sync", "scopes": ["tenants:read"], "environments": ["dev"]}
    )
    rotated = api.post(f"/api/v1/keys/{made.json()['id']}/rotate", json={"overlap_hours": 1})
    with served.client(made.json()["key"]) as old, served.client(rotated.json()["key"]) as new:
        both = old.get(TENANTS).status_code, new.get(TENANTS).status_code
        writes = new.post(TENANTS, json={"tenant": "x"}).status_code
        newest = api.post(f"/api/v1/keys/{made.json()['id']}/rotate", json={"overlap_hours": 0}).json()["key"]
        assert new.get(TENANTS).status_code == 401
        assert new.get(TENANTS, headers={"x-api-key": newest}).status_code == 200
        api.delete(f"/api/v1/keys/{made.json()['id']}").raise_for_status()
        after = old.get(TENANTS).status_code, new.get(TENANTS).status_code
    body = next(
        item for item in api.get("/api/v1/keys?limit=1000").json()["keys"] if item["id"] == made.json()["id"]
    )

    assert (both, writes, after) == ((200, 200), 403, (401, 401))
    assert body["revoked"]
    assert body["last_used"]
    assert "key" not in body


def test_a_session_changes_things_from_its_own_pages_only(served):
    """The cookie is HttpOnly and SameSite; a change from another origin is refused; signing out ends it."""
    order = {"key": served.key("tenants:read", "snapshots:write")}
    with served.client("") as browser:
        foreign = browser.post("/api/v1/session", json=order)
        origin = {"origin": served.url}
        signed = browser.post("/api/v1/session", json=order, headers=origin)
        cookie = signed.headers["set-cookie"]
        read = browser.get(TENANTS).status_code
        csrf = browser.post(TENANTS, json={"tenant": "y"}, headers={"origin": "http://evil.example"})
        mine = browser.post(TENANTS, json={"tenant": "y"}, headers=origin)
        admin = browser.get("/api/v1/keys")
        token = browser.cookies["freezeframe_session"]
        browser.delete("/api/v1/session", headers=origin)
        over = browser.get(TENANTS, headers={"cookie": f"freezeframe_session={token}"})

    assert foreign.status_code == 403
    assert "HttpOnly" in cookie
    assert "samesite=lax" in cookie.lower()
    assert (
        read,
        csrf.status_code,
        mine.status_code,
        admin.status_code,
        over.status_code,
    ) == (200, 403, 201, 403, 401)


def test_who_cannot_sign_in_is_not_told_why(served):
    """A wrong secret and an unknown key have one answer."""
    known = served.key().partition(".")[0]
    with served.client("") as browser:
        origin = {"origin": served.url}
        keys = (f"{known}.wrong", "unknown.wrong")
        answers = [browser.post("/api/v1/session", json={"key": key}, headers=origin) for key in keys]

    assert [(401, "NOT_AUTHENTICATED")] * 2 == [
        (answer.status_code, answer.json()["code"]) for answer in answers
    ]
    assert answers[0].json()["title"] == answers[1].json()["title"]


def test_the_numbers_name_no_tenant(api, acme):
    """Metrics count by route; whose requests they were is not among them."""
    route = 'route="/api/v1/environments/{environment}/tenants/{tenant}"'
    api.get(acme)
    end = time.monotonic() + 60
    while route not in (text := api.get("/metrics").text):  # a request is counted after its answer
        assert time.monotonic() < end, text
        time.sleep(0.02)

    assert acme.rpartition("/")[2] not in text


def test_the_numbers_tell_what_tenants_hold(serve):
    """By environment, counted beside the requests: they are there some scrapes later."""
    place = serve()
    path, own = place.tenant("acme"), 'freezeframe_stored_bytes{environment="dev"}'
    with place.client() as api:
        api.put(f"{path}/files/a.txt", content=b"1").raise_for_status()
        end = time.monotonic() + 60
        while own not in (text := api.get("/metrics").text):
            assert time.monotonic() < end, text
            time.sleep(0.05)

    assert f"{own} 1.0" in text
    assert 'freezeframe_tenants{environment="dev"} 1.0' in text


def test_a_head_is_the_get_without_its_body(served, api, acme):
    """Status and headers are those of the GET, also of a large file, of errors and of a stream of events."""
    content = {"content-type": "text/csv"}
    api.put(f"{acme}/files/a.csv", content=b"x" * 3_000_000, headers=content).raise_for_status()
    changing = {"date", "x-request-id", "transfer-encoding"}
    for path in (acme, f"{acme}/files/a.csv", f"{acme}/streams/None", "/health/ready", "/openapi.json"):
        head, whole = api.head(path), api.get(path)
        assert (head.status_code, head.content) == (whole.status_code, b"")
        assert {name: value for name, value in head.headers.items() if name not in changing} == {
            name: value for name, value in whole.headers.items() if name not in changing
        }
    started = time.monotonic()
    events = api.head("/api/v1/events?environment=dev")
    assert (events.status_code, events.headers["content-type"][:17]) == (200, "text/event-stream")
    assert time.monotonic() - started < 5
    assert api.head(f"{acme}/restorations").status_code == 405
    with served.client("") as nobody:
        assert nobody.head(acme).status_code == 401


def test_a_packed_body_is_refused(api, acme):
    """The service unpacks none, so nothing is kept of it: 415 says what to send; `identity` packs nothing."""
    packed = gzip.compress(b"Id\n1\n")
    for encoding in ("gzip", "br", "identity, GZIP"):
        sent = {"content-encoding": encoding, "content-type": "text/csv"}
        for method, path in (("PUT", "files/a.csv"), ("POST", "streams/S/import?key=Id"), ("POST", "blobs")):
            answer = api.request(method, f"{acme}/{path}", content=packed, headers=sent)
            assert (answer.status_code, answer.json()["code"]) == (415, "UNSUPPORTED_ENCODING")
    plain = api.put(f"{acme}/files/a.csv", content=b"x", headers={"content-encoding": "identity"})
    assert (plain.status_code, api.get(acme).json()["version"]) == (201, 0)
