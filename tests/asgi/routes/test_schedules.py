"""Schedules over HTTP: made, listed with their next times, paused, run at once, removed."""

import pytest


@pytest.fixture(scope="module")
def timed(serve, tmp_path_factory):
    """A server with a script, and a tenant's path."""
    scripts = tmp_path_factory.mktemp("scripts")
    (scripts / "etl.py").write_text("")
    served = serve(service_scripts_dir=scripts)
    return served, served.tenant("timed")


NEW = {"name": "nightly", "script": "etl.py", "cron": "0 6 * * 1-5", "zone": "Europe/Berlin"}


def test_a_schedule_is_made_paused_run_and_removed(timed):
    """The list tells the next three times; while it is paused there are none; a run is a job of its own."""
    served, tenant = timed
    place = "/api/v1/environments/dev/schedules"
    with served.client() as api:
        made = api.post(f"{tenant}/schedules", json=NEW)
        again = api.post(f"{tenant}/schedules", json=NEW)
        other = api.post(f"{tenant}/schedules", json={**NEW, "cron": "0 7 * * *"})
        listed = api.get(place, params={"tenant": "timed"}).json()["schedules"]
        paused = api.patch(f"{tenant}/schedules/nightly", json={"enabled": False}).json()
        resumed = api.patch(f"{tenant}/schedules/nightly", json={"enabled": True}).json()
        run = api.post(f"{tenant}/schedules/nightly/runs")
        job = api.get(run.headers["Location"]).json()
        after = api.get(place, params={"tenant": "timed"}).json()["schedules"]
        deleted = api.delete(f"{tenant}/schedules/nightly")
        gone = api.post(f"{tenant}/schedules/nightly/runs")
        audit = [item["action"] for item in api.get(f"{tenant}/audit").json()["entries"]]

    answers = (made, again, other, run, deleted, gone)
    assert tuple(answer.status_code for answer in answers) == (201, 201, 409, 202, 204, 404)
    assert made.json() == again.json()
    assert [(item["name"], item["script"], item["zone"], len(item["next_runs"])) for item in listed] == [
        ("nightly", "etl.py", "Europe/Berlin", 3)
    ]
    assert listed[0]["next_due"] == listed[0]["next_runs"][0]
    assert (paused["enabled"], paused["next_due"], paused["next_runs"]) == (False, None, [])
    assert (resumed["enabled"], len(resumed["next_runs"])) == (True, 3)
    assert (job["status"], job["tenant"]) == ("queued", "timed")
    # What came of the last run stands beside the next ones.
    assert (listed[0]["last_job"], after[0]["last_job"]["job_id"]) == (None, job["job_id"])
    assert {"schedule.create", "schedule.change", "schedule.delete", "job.run"} <= set(audit)


def test_the_list_has_pages_and_only_what_is_the_callers(timed):
    """By tenant and name; a bound key sees its own tenants' alone."""
    served, tenant = timed
    other = served.tenant("another")
    with served.client() as api:
        for path in (tenant, other):
            api.post(f"{path}/schedules", json={**NEW, "name": "hourly"}).raise_for_status()
        first = api.get("/api/v1/environments/dev/schedules", params={"limit": 1}).json()
        rest = {"limit": 1, "cursor": first["next_cursor"]}
        second = api.get("/api/v1/environments/dev/schedules", params=rest).json()
    with served.client(served.key("jobs:read", tenants=["timed"])) as bound:
        mine = bound.get("/api/v1/environments/dev/schedules").json()["schedules"]
        none = bound.get("/api/v1/environments/dev/schedules", params={"tenant": "another"}).json()

    assert [item["tenant"] for item in first["schedules"]] == ["another"]
    assert ([item["tenant"] for item in second["schedules"]], second["next_cursor"]) == (["timed"], None)
    assert [item["tenant"] for item in mine] == ["timed"]
    assert none["schedules"] == []


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"cron": "every day"}, 422),
        ({"zone": "Nowhere"}, 422),
        ({"script": "none.py"}, 404),
        ({"name": "a/b"}, 422),
    ],
)
def test_what_cannot_be_a_schedule_is_refused(timed, change, status):
    """Nothing is kept of it."""
    served, tenant = timed
    with served.client() as api:
        before = api.get("/api/v1/environments/dev/schedules").json()
        answer = api.post(f"{tenant}/schedules", json={**NEW, **change})

        assert status == answer.status_code, answer.text
        assert before == api.get("/api/v1/environments/dev/schedules").json()
