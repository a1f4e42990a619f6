"""What happens, told as server-sent events to whoever it concerns."""

import json
import uuid

import pytest

from freezeframe.control.submission import Submission

pytestmark = pytest.mark.long

ENVIRONMENT = "dev"
EVENTS = "/api/v1/events"


class Following:
    """One open stream of events; ``next`` waits for the next one of some kinds."""

    def __init__(self, client, **query):
        self._client = client
        self._context = client.stream("GET", EVENTS, params={"environment": ENVIRONMENT, **query})

    def __enter__(self):
        self.answer = self._context.__enter__()
        self._lines = self.answer.iter_lines()
        return self

    def __exit__(self, *error):
        self._context.__exit__(*error)

    def next(self, *kinds):
        kind = ""
        for line in self._lines:
            name, _, value = line.partition(": ")
            if name == "event":
                kind = value
            elif name == "data" and kind in kinds:
                return kind, json.loads(value)
        return None


def submitted(served, tenant):
    """A job of the tenant in the queue, as the service's own routes put it there."""
    queue = served.service.jobs._queue
    return queue.submit(Submission("{}", environment=ENVIRONMENT, tenant=tenant, job_id=uuid.uuid4().hex))


def test_a_watched_tenants_versions_and_all_jobs_are_told(served, api, acme):
    """First what the tenant is at, then each new version; and what becomes of a job, whatever its tenant."""
    tenant = acme.rpartition("/")[2]
    with served.client() as other, Following(other, tenant=tenant, seconds=60) as following:
        assert following.next("anew") == ("anew", {})
        assert ("version", {"tenant": tenant, "version": -1}) == following.next("version")
        api.put(f"{acme}/files/a.txt", content=b"a").raise_for_status()

        assert ("version", {"tenant": tenant, "version": 0}) == following.next("version")
        job = submitted(served, "globex")

        body = {"tenant": "globex", "job_id": job.job_id, "status": "queued"}
        assert ("job", body) == following.next("job")
        served.service.jobs._queue.cancel(ENVIRONMENT, "globex", job.job_id)
        assert ("job", {**body, "status": "cancelled"}) == following.next("job")
        served.tenant(f"new-{uuid.uuid4().hex[:8]}")
        assert following.next("tenants") == ("tenants", {})
        assert following.answer.headers["x-accel-buffering"] == "no"


def test_what_changes_just_after_one_began_to_follow_is_told(served, api, acme):
    """Beside somebody who follows already: a look is a second away, and the first with this tenant."""
    tenant = acme.rpartition("/")[2]
    with (
        served.client() as early,
        Following(early, seconds=60) as before,
        served.client() as late,
        Following(late, tenant=tenant, seconds=60) as following,
    ):
        assert before.next("anew") == ("anew", {})
        assert following.next("anew") == ("anew", {})
        api.put(f"{acme}/files/a.txt", content=b"a").raise_for_status()
        kind, body = following.next("version")
        while body["version"] < 0:
            kind, body = following.next("version")
    assert ("version", {"tenant": tenant, "version": 0}) == (kind, body)


def test_a_bound_key_is_told_of_its_own_tenant_alone(served, api, acme):
    """Jobs, versions and the making of other tenants are nothing that it hears of; watching one is a 404."""
    tenant = acme.rpartition("/")[2]
    foreign = served.tenant(f"foreign-{uuid.uuid4().hex[:8]}")
    key = served.key(tenants=[tenant])
    with served.client(key) as bound:
        refused = bound.get(EVENTS, params={"environment": ENVIRONMENT, "tenant": foreign.rpartition("/")[2]})
        absent = bound.get(EVENTS, params={"environment": ENVIRONMENT, "tenant": "nobody"})
        with Following(bound, tenant=tenant, seconds=60) as following:
            following.next("version")
            api.put(f"{foreign}/files/a.txt", content=b"a").raise_for_status()
            submitted(served, foreign.rpartition("/")[2])
            served.tenant(f"new-{uuid.uuid4().hex[:8]}")
            mine = submitted(served, tenant)

            # The first thing that it hears of is its own.
            kind, body = following.next("version", "job", "tenants")
    assert (refused.status_code, absent.status_code) == (404, 404)
    assert ("job", tenant, mine.job_id) == (kind, body["tenant"], body["job_id"])


def test_a_key_without_the_scope_hears_nothing_of_jobs(served, acme):
    """Who may not read jobs follows versions all the same; who may not read tenants follows nothing."""
    tenant = acme.rpartition("/")[2]
    with (
        served.client(served.key("tenants:read", "snapshots:read")) as reader,
        Following(reader, tenant=tenant, seconds=60) as following,
    ):
        following.next("version")
        submitted(served, tenant)
        served.tenant(f"new-{uuid.uuid4().hex[:8]}")

        assert following.next("job", "tenants")[0] == "tenants"
    with served.client(served.key("jobs:read")) as nobody:
        assert nobody.get(EVENTS, params={"environment": ENVIRONMENT}).status_code == 403


def test_a_stream_of_events_ends_with_the_time_or_the_key(served, acme):
    """After the seconds that were asked for, or soon after the key was revoked."""
    made = served.service.keys.create(scopes=["tenants:read"])
    with served.client(made.key) as client:
        assert "anew" in client.get(EVENTS, params={"environment": ENVIRONMENT, "seconds": 0}).text
        with Following(client, seconds=600) as following:
            following.next("anew")
            served.service.keys.revoke(made.id)

            assert following.next("nothing") is None


@pytest.mark.parametrize("query", [{}, {"environment": "a/b"}, {"environment": "dev", "seconds": 601}])
def test_odd_questions_are_refused(api, query):
    """Without an environment, with one that cannot be, or for too long."""
    assert api.get(EVENTS, params=query).status_code in {404, 422}


def test_a_revoked_key_hears_nothing_more(served, api, acme):
    """However many events come: each is told only if the key still may, and the stream ends."""
    tenant = acme.rpartition("/")[2]
    key = served.service.keys.create(scopes=["admin"])
    with served.client(key.key) as other, Following(other, tenant=tenant, seconds=60) as following:
        assert following.next("anew") == ("anew", {})
        assert following.next("version")[1]["version"] == -1
        served.service.keys.revoke(key.id)
        served.service.keys._remembered.clear()  # as it is a few seconds later
        for name in "abc":
            api.put(f"{acme}/files/{name}.txt", content=b"a").raise_for_status()
            submitted(served, tenant)

        assert following.next("version", "job") is None
