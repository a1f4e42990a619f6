"""Scripts of the service over HTTP: listed with what they declare; a run is held to it."""

import json

import pytest

from freezeframe.runs.queue.worker import Worker, WorkerOptions
from freezeframe.runs.running import run

SCRIPT = """# /// script
# [tool.freezeframe]
# description = "Brings invoices in."
# [tool.freezeframe.parameters]
# limit = 100
# mode = { choices = ["upsert", "full"], default = "upsert", description = "How rows come in." }
# since = { type = "text", required = true }
# ///
import json, os
found = {"file": json.load(open("parameters.json")), "limit": os.environ["PARAM_limit"]}
open("snapshots/found.json", "w").write(json.dumps(found))
"""


@pytest.fixture(scope="module")
def scripted(serve, tmp_path_factory):
    """A service with scripts of several kinds, some of which are none to run."""
    place = tmp_path_factory.mktemp("scripts")
    (place / "lib").mkdir()
    (place / "nightly").mkdir()
    files = {
        "etl.py": SCRIPT,
        "free.py": "print(1)\n",
        "nightly/broken.py": "# /// script\n# [tool.freezeframe]\n# parameters = 5\n# ///\n",
        "lib/helper.py": "",
        "_private.py": "",
        "notes.txt": "",
    }
    for name, text in files.items():
        (place / name).write_text(text)
    outside = tmp_path_factory.mktemp("outside") / "secret.py"
    outside.write_text("")
    (place / "link.py").symlink_to(outside)
    served = serve(service_scripts_dir=place)
    return served, served.tenant("scripted")


def test_scripts_are_listed_with_their_parameters(scripted):
    """By name; modules, private files and what lies outside are left out; a header's problem is told."""
    served, _ = scripted
    with served.client() as api:
        found = {item.pop("script"): item for item in api.get("/api/v1/scripts").json()["scripts"]}
    assert list(found) == ["etl.py", "free.py", "nightly/broken.py"]
    assert found["free.py"] == {"description": "", "parameters": None, "problem": None}
    assert "header cannot be read" in found["nightly/broken.py"]["problem"]
    declared = {item["name"]: (item["type"], item["default"]) for item in found["etl.py"]["parameters"]}
    assert declared == {"limit": ("integer", 100), "mode": ("text", "upsert"), "since": ("text", None)}
    assert [item["choices"] for item in found["etl.py"]["parameters"]] == [[], ["upsert", "full"], []]


@pytest.mark.parametrize(
    ("parameters", "told"),
    [
        ({}, "since is missing"),
        ({"since": "today", "BASH_ENV": "x"}, "no parameter 'BASH_ENV'"),
        ({"since": "today", "limit": "ten"}, "limit cannot be 'ten'"),
        ({"since": "today", "limit": True}, "limit cannot be True"),
        ({"since": "today", "mode": "replace"}, "mode cannot be 'replace'"),
    ],
)
def test_a_run_or_schedule_of_other_parameters_is_refused(scripted, parameters, told):
    """What is not declared, not of its type, no choice, or missing; nothing is queued."""
    served, tenant = scripted
    order = {"script": "etl.py", "parameters": parameters}
    with served.client() as api:
        run_answer = api.post(f"{tenant}/jobs", json=order)
        timed = api.post(f"{tenant}/schedules", json={**order, "name": "n", "cron": "@daily"})
        jobs = api.get(f"{tenant}/jobs").json()["jobs"]
    assert (run_answer.status_code, timed.status_code, jobs) == (422, 422, [])
    assert told in run_answer.json()["title"]


def test_a_run_gets_what_is_declared(scripted):
    """The script finds the defaults beside what was given."""
    served, _ = scripted
    tenant = served.tenant("filled")
    order = {"script": "etl.py", "parameters": {"since": "today"}}
    with served.client() as api:
        answer = api.post(f"{tenant}/jobs", json=order)
        service = served.service
        Worker(service.database, run, service.settings, WorkerOptions()).work("one")
        job = api.get(answer.headers["Location"]).json()
        found = json.loads(api.get(f"{tenant}/files/found.json").content)
    assert job["status"] == "succeeded", job
    assert found == {"file": {"limit": 100, "mode": "upsert", "since": "today"}, "limit": "100"}
