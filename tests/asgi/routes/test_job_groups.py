"""One script for many tenants over HTTP: all jobs or none, and how far they are."""

import json
import uuid

import pytest

ENVIRONMENT = "dev"
GROUPS = f"/api/v1/environments/{ENVIRONMENT}/job-groups"
TENANTS = ("eu-acme", "eu-globex", "us-initech")


@pytest.fixture(scope="module")
def served(serve, tmp_path_factory):
    """A server with a script and three tenants; two jobs of a tenant may wait."""
    folder = tmp_path_factory.mktemp("scripts")
    (folder / "etl.py").touch()
    served = serve(
        service_scripts_dir=folder, service_tenant_jobs_queued_max=2, service_requests_per_second=0
    )
    for tenant in TENANTS:
        served.tenant(tenant)
    return served


@pytest.fixture(autouse=True)
def empty(served):
    """No job waits."""
    for tenant in TENANTS:
        served.service.queue.forget(ENVIRONMENT, tenant)


def end(served, status, outcome="{}"):
    """Let the next job end; return its tenant."""
    return served.service.queue.finish(served.service.queue.claim("worker"), status, outcome).tenant


def test_all_tenants_of_a_prefix_get_a_job(served, api):
    """Location shows how far they are; the list has failed ones first; each tenant's audit tells of it."""
    order = {"script": "etl.py", "prefix": "eu-", "job_id": "night", "parameters": {"full": True}}
    made = api.post(GROUPS, json=order)
    assert (made.status_code, made.headers["location"]) == (202, f"{GROUPS}/night")
    assert made.json()["counts"] == {"queued": 2}
    outcome = json.dumps(
        {"error": {"code": "SCRIPT_FAILED", "problem": "It failed.", "cause": "KeyError: 'Email'"}}
    )
    end(served, "failed", outcome)

    found = api.get(made.headers["location"]).raise_for_status().json()
    assert {**found, "created": ""} == {
        "group": "night",
        "environment": ENVIRONMENT,
        "script": "etl.py",
        "dry_run": False,
        "parameters": {"full": True},
        "submitted_by": found["submitted_by"],
        "message": "",
        "created": "",
        "jobs": 2,
        "counts": {"queued": 1, "failed": 1},
    }
    jobs = api.get(f"/api/v1/environments/{ENVIRONMENT}/jobs", params={"group": "night"}).json()["jobs"]
    assert [(job["tenant"], job["status"], job["group"]) for job in jobs] == [
        ("eu-acme", "failed", "night"),
        ("eu-globex", "queued", "night"),
    ]
    overview = api.get(f"/api/v1/environments/{ENVIRONMENT}/overview").json()
    failed = [(item["tenant"], item["error"], item["is_repeatable"]) for item in overview["failed_jobs"]]
    assert ["night"] == [item["group"] for item in overview["job_groups"]]
    assert [("eu-acme", "KeyError: 'Email'", True)] == failed
    entries = api.get(f"/api/v1/environments/{ENVIRONMENT}/tenants/eu-globex/audit").json()["entries"]
    assert (entries[0]["action"], entries[0]["subject"]) == ("job.run", "night")


@pytest.mark.parametrize("is_held", [False, True])
def test_a_few_tenants_come_first(served, api, is_held):
    """The first by id are held, those of the others begin later, and are held where the group is."""
    queue = served.service.queue
    order = {"script": "etl.py", "prefix": "", "job_id": "night", "canary": 1, "hold": is_held}
    api.post(GROUPS, json=order).raise_for_status()
    job = queue.claim("worker")
    assert (job.tenant, json.loads(job.request)["hold"], queue.claim("worker")) == ("eu-acme", True, None)
    queue.finish(job, "succeeded", "{}")

    done = api.post(f"{GROUPS}/night/publish").raise_for_status().json()

    assert (done["counts"], done["refused"]) == ({"succeeded": 1, "queued": 2}, [])
    assert json.loads(queue.claim("worker").request).get("hold", False) == is_held
    assert api.post(GROUPS, json={**order, "job_id": "x", "dry_run": True}).status_code == 422


def test_a_group_ends_by_one_call(served, api):
    """What waits ends at once, also behind the first ones; what runs is asked to; what is held stays."""
    queue = served.service.queue
    api.post(GROUPS, json={"script": "etl.py", "job_id": "night", "canary": 2}).raise_for_status()
    queue.finish(queue.claim("worker"), "held", "{}")
    running = queue.claim("worker")

    done = api.post(f"{GROUPS}/night/cancel").raise_for_status().json()
    again = api.post(f"{GROUPS}/night/cancel").raise_for_status().json()

    assert {"held": 1, "running": 1, "cancelled": 1} == done["counts"] == again["counts"]
    assert "cancel" == queue.heartbeat(running)
    entries = api.get(f"/api/v1/environments/{ENVIRONMENT}/tenants/us-initech/audit").json()["entries"]
    assert ("job.cancel", "night") == (entries[0]["action"], entries[0]["subject"])


def test_the_same_request_again_adds_new_tenants(served, api):
    """By its Idempotency-Key; another script under the same id is refused."""
    headers = {"idempotency-key": uuid.uuid4().hex}
    order = {"script": "etl.py", "tenants": ["eu-acme"]}
    first = api.post(GROUPS, json=order, headers=headers).json()
    more = api.post(GROUPS, json={**order, "tenants": [*TENANTS]}, headers=headers).json()

    assert (first["group"], first["jobs"], more["group"], more["jobs"]) == (
        more["group"],
        1,
        first["group"],
        3,
    )
    other = {**order, "parameters": {"a": 1}}
    assert api.post(GROUPS, json=other, headers=headers).status_code == 422


def test_dry_runs_of_a_group_are_summed_up(served, api):
    """Why some fail, and which columns come; a job that failed is tried again by a dry run of its own."""
    api.post(GROUPS, json={"script": "etl.py", "prefix": "eu-", "job_id": "dry", "dry_run": True})
    error = {"code": "SCRIPT_FAILED", "problem": "It failed.", "cause": "KeyError: 'Email'"}
    failed = end(served, "failed", json.dumps({"error": error}))
    columns = {"columns_added": {"Note": "string"}, "columns_dropped": {}, "columns_retyped": {}}
    effect = {"fate": "changed", "inserted": 3, "updated": 2, "unchanged": 1, "deleted": 0, "key": ["Id"]}
    effect |= columns
    dry_run = {"tenant_version": 4, "streams": {"Account": effect}, "files": {}}
    end(served, "succeeded", json.dumps({"dry_run": dry_run}))

    effects = api.get(f"{GROUPS}/dry/effects").raise_for_status().json()
    assert (effects["dry_runs"], effects["changing"], effects["inserted"]) == (2, 1, 3)
    assert effects["failures"] == [{"error": "KeyError: 'Email'", "tenants": 1, "named": ["eu-acme"]}]
    assert [(item["column"], item["named"]) for item in effects["columns"]] == [("Note", ["eu-globex"])]
    place = f"/api/v1/environments/{ENVIRONMENT}/tenants/{failed}/jobs"
    assert api.get(f"{place}/dry").json()["dry_run"]
    again = api.post(f"{place}/dry/dry-runs").raise_for_status().json()
    assert (again["dry_run"], again["script"], again["status"], again["attempts_max"]) == (
        True,
        "etl.py",
        "queued",
        1,
    )
    assert api.post(f"{place}/{again['job_id']}/dry-runs").status_code == 422


@pytest.mark.parametrize(
    ("order", "status", "words"),
    [
        ({"tenants": ["eu-acme", "nobody"]}, 404, "nobody"),
        ({"tenants": ["eu-acme"], "prefix": "eu-"}, 422, "cannot be used together"),
        ({"prefix": "nobody"}, 422, "No tenant is selected"),
        ({"script": "gone.py"}, 404, "gone.py"),
        ({"tenants": []}, 422, "tenants"),
    ],
)
def test_what_cannot_be_run_queues_nothing(served, api, order, status, words):
    """A tenant that is not there, no tenant, or no script."""
    answer = api.post(GROUPS, json={"script": "etl.py", "job_id": "none", **order})

    assert answer.status_code == status
    assert words in answer.text
    assert api.get(f"{GROUPS}/none").status_code == 404
    assert served.service.queue.counts()["queued"] == 0


def test_a_full_queue_of_one_tenant_queues_nothing(served, api):
    """429 names the tenant and the setting."""
    for name in ("a", "b"):
        api.post(GROUPS, json={"script": "etl.py", "tenants": ["us-initech"], "job_id": name})
    answer = api.post(GROUPS, json={"script": "etl.py", "job_id": "c"})

    assert (answer.status_code, "us-initech: nothing was queued" in answer.text) == (429, True)
    assert served.service.queue.counts()["queued"] == 2


def test_a_bound_key_runs_and_sees_its_own_tenants(served, api):
    """All are all of its own; of a group of all tenants it sees its own jobs alone."""
    with served.client(served.key(tenants=["eu-acme"])) as bound:
        own = bound.post(GROUPS, json={"script": "etl.py", "job_id": "own"})
        api.post(GROUPS, json={"script": "etl.py", "job_id": "all"}).raise_for_status()
        api.post(GROUPS, json={"script": "etl.py", "job_id": "other", "tenants": ["us-initech"]})

        assert (own.json()["jobs"], bound.get(f"{GROUPS}/all").json()["jobs"]) == (1, 1)
        assert bound.get(f"{GROUPS}/other").status_code == 404
        refused = bound.post(GROUPS, json={"script": "etl.py", "tenants": ["us-initech"]})
        assert refused.status_code == 404
    with served.client(served.key("jobs:run")) as runner:
        made = runner.post(GROUPS, json={"script": "etl.py", "job_id": "run", "tenants": ["eu-globex"]})
        assert (made.json()["script"], made.json()["jobs"]) == ("", 1)
        assert runner.post(GROUPS, json={"script": "etl.py"}).status_code == 403
