"""A file comes in over HTTP, and a worker carries the import out in a process of its own."""

import json

import pytest

from freezeframe.cli.main import main

pytestmark = pytest.mark.long


def test_imports_run_where_scripts_have_a_folder(serve, tmp_path, monkeypatch):
    """By key, and as a report without one; an error in the job names the options of a request."""
    (tmp_path / "scripts").mkdir()
    served = serve(service_scripts_dir=tmp_path / "scripts", runner_idle_seconds=1)
    place, jobs = served.tenant("acme"), {}
    with served.client() as api:
        csv = {"content-type": "text/csv"}
        seen = api.post(f"{place}/streams/Lead/import-preview?key=Id", content=b"Id\n1\n", headers=csv)
        for name, options in (("Lead", "key=Id"), ("Report", "override=true"), ("Other", "")):
            path = f"{place}/streams/{name}/import?{options}"
            jobs[name] = api.post(path, content=b"Id,Total\n1,7\n", headers=csv).json()["job_id"]
        monkeypatch.setenv("FREEZEFRAME_SERVICE_SCRIPTS_DIR", str(tmp_path / "scripts"))
        monkeypatch.setenv("FREEZEFRAME_STATE_DIR", str(served.service.settings.state_dir))
        monkeypatch.setenv("FREEZEFRAME_RUNNER_IDLE_SECONDS", "1")
        assert main(["worker", "--drain", "--root", served.root]) == 0
        failed = api.get(f"{place}/jobs/{jobs['Other']}").json()

    tenant = served.service.stores.environment("dev").tenant("acme")
    assert seen.json()["counts"]["inserted"] == 1
    assert {name: tenant.stream(name).key for name in tenant.streams()} == {"Lead": ("Id",), "Report": ()}
    assert failed["status"] == "failed"
    assert "override=true" in json.dumps(failed)


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
