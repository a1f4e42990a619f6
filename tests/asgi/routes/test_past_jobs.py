"""Jobs that have ended: run again under another id, and their executed notebooks."""

import json

import pytest

from freezeframe.control.submission import Submission
from freezeframe.runs.request import RunRequest
from freezeframe.store.model.directory import job_roots_folder

NOTEBOOK = b'{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}'


@pytest.fixture(scope="module")
def running(serve, tmp_path_factory):
    """A service with a script of its own."""
    scripts = tmp_path_factory.mktemp("scripts")
    (scripts / "etl.py").write_text("")
    return serve(service_scripts_dir=scripts)


@pytest.fixture(scope="module")
def client(running):
    """One who may do everything."""
    with running.client() as found:
        yield found


@pytest.fixture(scope="module")
def jobs(running):
    """The path of a tenant's jobs."""
    return f"{running.tenant('acme')}/jobs"


def ended(running, outcome):
    """Ends the job that waits, as a worker does."""
    queue = running.service.jobs._queue
    return queue.finish(queue.claim("worker"), "succeeded", json.dumps(outcome))


def test_a_job_is_run_again_with_its_parameters(running, client, jobs):
    """The new job has an id of its own and the order of the old one; it waits like any other."""
    order = {"script": "etl.py", "parameters": {"full": True}, "flow": "F1", "attempts_max": 2}
    first = client.post(jobs, json=order).json()["job_id"]
    early = client.post(f"{jobs}/{first}/repetitions")
    past = ended(running, {})
    answer = client.post(f"{jobs}/{first}/repetitions")
    again = running.service.jobs._queue.get("dev", "acme", answer.json()["job_id"])
    ended(running, {})
    old, new = json.loads(past.request), json.loads(again.request)

    assert answer.json()["is_repeatable"] is False
    assert client.get(f"{jobs}/{first}").json()["is_repeatable"] is True
    assert (early.status_code, answer.status_code, answer.json()["status"]) == (422, 202, "queued")
    assert answer.headers["location"].endswith(again.job_id)
    assert first != again.job_id
    assert (old["script"], old["parameters"], old["flow"], 2) == (
        new["script"],
        new["parameters"],
        new["flow"],
        again.attempts_max,
    )


def test_a_job_says_what_it_runs_and_for_whom(running, client, jobs):
    """Script, parameters and submitter; an import names its stream and shows no option of its own."""
    order = {"script": "etl.py", "parameters": {"limit": 5}, "message": "Ticket 7"}
    script = client.post(jobs, json=order).json()
    rows = client.post(
        f"{running.tenant('acme')}/streams/Account/import?key=Id",
        content=b"Id\n1\n",
        headers={"content-type": "text/csv"},
    ).json()
    ended(running, {})
    ended(running, {})
    fields = ("script", "import_stream", "parameters", "message")

    assert [script[name] for name in fields] == ["etl.py", None, {"limit": 5}, "Ticket 7"]
    assert [rows[name] for name in fields] == ["", "Account", {}, "import Account"]
    assert script["submitted_by"].startswith("key ")


def test_what_others_submitted_is_not_run_again(running, client, jobs, tmp_path):
    """A script from elsewhere is not run by who may only run the service's."""
    request = RunRequest(running.root, "dev", "acme", tmp_path / "other.py", "elsewhere")
    running.service.jobs._queue.submit(
        Submission(
            json.dumps(request.to_json()),
            environment="dev",
            tenant="acme",
            job_id="elsewhere",
            attempts_max=1,
        )
    )
    ended(running, {})
    answer = client.post(f"{jobs}/elsewhere/repetitions")

    assert answer.status_code == 422
    assert str(tmp_path) not in answer.text
    assert client.get(f"{jobs}/elsewhere").json()["is_repeatable"] is False


def test_an_executed_notebook_is_downloaded(running, client, jobs, tmp_path):
    """Its bytes under its name; the job says that there is one; where there is none that is told."""
    (running.service.settings.service_scripts_dir / "etl.ipynb").write_bytes(NOTEBOOK)
    job = client.post(jobs, json={"script": "etl.ipynb"}).json()["job_id"]
    tenant = running.service.stores.environment("dev").tenant("acme")
    root = job_roots_folder(tenant.context.storage, running.service.settings) / "20261126T000000-j-0"
    root.mkdir(parents=True)
    notebook = root / "etl.ipynb"
    notebook.write_bytes(NOTEBOOK)
    ended(running, {"job_root": str(root), "notebook": str(notebook)})
    body = client.get(f"{jobs}/{job}")
    answer = client.get(f"{jobs}/{job}/notebook")
    notebook.unlink()
    (tmp_path / "secret").write_text("secret")
    notebook.symlink_to(tmp_path / "secret")

    assert body.json()["outcome"]["has_notebook"]
    assert str(root) not in body.text
    assert (answer.status_code, answer.content) == (200, NOTEBOOK)
    assert "etl.ipynb" in answer.headers["content-disposition"]
    assert client.get(f"{jobs}/{job}/notebook").status_code == 404
