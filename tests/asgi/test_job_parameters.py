"""A job's parameters, sent over REST and carried out by a worker, choose no variable of any program."""

import json
import uuid

import pytest

from freezeframe.runs.queue.worker import Worker, WorkerOptions
from freezeframe.runs.running import run

SCRIPT = """
import json, os, subprocess
seen = subprocess.run(["bash", "-c", "echo done"], capture_output=True, text=True).stdout
found = {"env": dict(os.environ), "bash": seen, "parameters": json.load(open("parameters.json"))}
open("snapshots/found.json", "w").write(json.dumps(found))
"""


@pytest.fixture(scope="module")
def running(serve, tmp_path_factory):
    """A service with that script."""
    scripts = tmp_path_factory.mktemp("scripts")
    (scripts / "etl.py").write_text(SCRIPT)
    return serve(service_scripts_dir=scripts)


def test_parameters_run_no_code(running, tmp_path):
    """What bash, Java, Spark or a client of S3 would obey reaches the script under a prefix alone."""
    (tmp_path / "evil.sh").write_text("echo taken over")
    parameters = {
        "BASH_ENV": str(tmp_path / "evil.sh"),
        "JAVA_TOOL_OPTIONS": "-javaagent:evil.jar",
        "SPARK_REMOTE": "sc://evil.example.com",
        "AWS_ENDPOINT_URL": "https://evil.example.com",
        "JAVA_HOME": "/tmp/evil",
        "limit": 5,
    }
    path = running.tenant("acme")
    with running.client() as client:
        answer = client.post(f"{path}/jobs", json={"script": "etl.py", "parameters": parameters})
        service = running.service
        Worker(service.database, run, service.settings, WorkerOptions()).work("one")
        job = client.get(answer.headers["location"]).json()
        found = client.get(f"{path}/files/found.json").json()

    assert job["status"] == "succeeded", job
    assert found["bash"] == "done\n"
    assert parameters == found["parameters"]
    texts = {f"PARAM_{name}": str(value) for name, value in parameters.items()}
    assert texts == {name: found["env"].get(name) for name in texts}
    assert "evil" not in json.dumps({name: text for name, text in found["env"].items() if name not in texts})


@pytest.mark.parametrize("name", ["sync/2026-11-28", ".", "..", "a b?c#d%2F"])
def test_a_job_is_found_at_its_location_or_refused(running, name):
    """By a job_id or an Idempotency-Key, for a script, an import and many tenants: no id leads elsewhere."""
    acme = running.tenant(f"acme-{uuid.uuid4().hex[:8]}")
    key, order = {"idempotency-key": name}, {"script": "etl.py"}
    group = f"{acme.rpartition('/tenants/')[0]}/job-groups"
    many = {**order, "tenants": [acme.rpartition("/")[2]]}
    csv = {"content": b"Id\n1\n", "headers": {"content-type": "text/csv"}}
    with running.client() as api:
        answers = [
            api.post(f"{acme}/jobs", json={**order, "job_id": name}),
            api.post(f"{acme}/jobs", json=order, headers=key),
            api.post(f"{acme}/streams/A/import", params={"key": "Id", "job_id": f"{name}"}, **csv),
            api.post(group, json={**many, "job_id": name}),
        ]
        found = [api.get(each.headers["location"]).status_code for each in answers if each.is_success]

    if name.startswith("a"):
        assert found == [200, 200]  # the id is the script's: no import and no group has it
    else:
        assert [422] * 4 == [each.status_code for each in answers]
