"""The jobs of all tenants, as far as they are the caller's business."""

import time
import uuid

import pytest

from freezeframe.control.submission import Submission

ENVIRONMENT = "dev"
PLACE = f"/api/v1/environments/{ENVIRONMENT}/jobs"


@pytest.fixture(scope="module")
def served(serve):
    """A server with no other jobs."""
    return serve(service_requests_per_second=0)


@pytest.fixture(scope="module")
def jobs(served):
    """The ids of three jobs of two tenants, the oldest first; the second one was cancelled."""
    queue = served.service.jobs._queue
    made = []
    for tenant in ("globex", "initech", "globex"):
        served.tenant(tenant)
        made.append(uuid.uuid4().hex)
        queue.submit(Submission("{}", environment=ENVIRONMENT, tenant=tenant, job_id=made[-1]))
        time.sleep(0.002)  # each has a millisecond of its own
    queue.cancel(ENVIRONMENT, "initech", made[1])
    return made


def ids(answer):
    return [item["job_id"] for item in answer.raise_for_status().json()["jobs"]]


def test_jobs_of_all_tenants_are_listed_by_page_tenant_and_status(api, jobs):
    """The newest first; a cursor is good for the same question only."""
    first = api.get(PLACE, params={"limit": 2})
    cursor = first.json()["next_cursor"]

    assert [jobs[2], jobs[1]] == ids(first)
    assert [jobs[0]] == ids(api.get(PLACE, params={"limit": 2, "cursor": cursor}))
    assert [jobs[2], jobs[0]] == ids(api.get(PLACE, params={"tenant": "globex"}))
    assert [jobs[1]] == ids(api.get(PLACE, params={"status": "cancelled"}))
    assert api.get(PLACE, params={"tenant": "globex", "cursor": cursor}).status_code == 422


def test_jobs_are_listed_by_when_they_were_submitted(served, api, jobs):
    """From a moment on, and before another one."""
    middle = served.service.jobs._queue.get(ENVIRONMENT, "initech", jobs[1]).created

    assert [jobs[2], jobs[1]] == ids(api.get(PLACE, params={"since": middle.isoformat()}))
    assert [jobs[0]] == ids(api.get(PLACE, params={"until": middle.isoformat()}))


def test_a_bound_key_sees_its_own_tenants_jobs(served, jobs):
    """Asked for another one's jobs it is answered as if there were none."""
    with served.client(served.key(tenants=["initech"])) as bound:
        assert [jobs[1]] == ids(bound.get(PLACE))
        assert ids(bound.get(PLACE, params={"tenant": "globex"})) == []
    with served.client(served.key(environments=["staging"])) as elsewhere:
        assert ids(elsewhere.get(PLACE)) == []
    with served.client(served.key("snapshots:read")) as nobody:
        assert nobody.get(PLACE).status_code == 403


def test_jobs_of_an_earlier_tenant_of_the_same_id_are_not_listed(served, api):
    """What a tenant was that is gone is not the business of who looks at the one that has its id now."""
    served.tenant("again", "staging")
    store, queue = served.service.stores.environment("staging"), served.service.jobs._queue
    place = {"environment": "staging", "tenant": "again", "incarnation": store.folder("again")}
    mine = queue.submit(Submission("{}", job_id=uuid.uuid4().hex, **place))
    assert [mine.job_id] == ids(api.get("/api/v1/environments/staging/jobs"))
    store.delete_tenant("again")
    store.tenant("again", create=True)
    assert ids(api.get("/api/v1/environments/staging/jobs")) == []
    summary = api.get("/api/v1/environments/staging/overviews", params={"tenant": "again"}).json()
    assert summary["tenants"][0]["last_job"] is None
