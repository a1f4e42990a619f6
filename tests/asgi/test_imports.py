"""A file comes in over HTTP: service and worker in processes of their own, with the documented settings."""

import json
import os
import subprocess
import sys
import urllib.request

import pytest
from tests.browser.process import Process

import freezeframe

pytestmark = pytest.mark.long

TENANT = "/api/v1/environments/dev/tenants/acme"


@pytest.fixture
def environment(tmp_path):
    """A folder of scripts, as the deployment's page has it."""
    (tmp_path / "scripts").mkdir()
    return {
        **os.environ,
        "FREEZEFRAME_SERVICE_SCRIPTS_DIR": str(tmp_path / "scripts"),
        "FREEZEFRAME_STATE_DIR": str(tmp_path / "state"),
        "FREEZEFRAME_RUNNER_IDLE_SECONDS": "0",
    }


@pytest.fixture
def command(environment, tmp_path):
    """Run a command on the store."""

    def run(*words):
        line = [sys.executable, "-m", "freezeframe", *words, "--root", str(tmp_path / "store")]
        return subprocess.run(line, env=environment, capture_output=True, text=True, check=True).stdout

    return run


def test_imports_run_where_scripts_have_a_folder(environment, command, tmp_path):
    """By key, and as a report without one; an error in the job names the options of a request."""
    command("tenant", "create", "acme", "--env", "dev")
    key = json.loads(command("key", "create", "--env", "dev", "--scope", "admin", "--json"))["key"]
    jobs = {}
    with Process(tmp_path / "store", environment, workers=1) as service:

        def post(place, content):
            headers = {"x-api-key": key, "content-type": "text/csv"}
            request = urllib.request.Request(f"{service.url}{TENANT}{place}", content, headers)
            with urllib.request.urlopen(request) as answer:
                return json.loads(answer.read())

        assert post("/streams/Lead/import-preview?key=Id", b"Id\n1\n")["counts"]["inserted"] == 1
        for name, options in (("Lead", "key=Id"), ("Report", "override=true"), ("Other", "")):
            jobs[name] = post(f"/streams/{name}/import?{options}", b"Id,Total\n1,7\n")["job_id"]
    command("worker", "--drain")

    tenant = freezeframe.open(str(tmp_path / "store"), "dev").tenant("acme")
    assert {name: tenant.stream(name).key() for name in tenant.streams()} == {"Lead": ("Id",), "Report": ()}
    told = json.loads(command("job", "show", jobs["Other"], "--env", "dev", "--json"))
    assert told["status"] == "failed"
    assert "override=true" in json.dumps(told)


def test_a_beginning_without_a_byte_is_a_bad_request(api, acme):
    """An empty CSV is unreadable, as a whole file and as a beginning."""
    answers = [
        api.post(
            f"{acme}/streams/New/import-preview",
            params={"key": "Id", "beginning": beginning},
            headers={"content-type": "text/csv"},
            content=b"",
        )
        for beginning in ("true", "false")
    ]

    assert [answer.status_code for answer in answers] == [answers[1].status_code] * 2
    assert answers[0].status_code in {400, 422}
