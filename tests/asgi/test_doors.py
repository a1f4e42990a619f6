"""An operation with a route and a command is one: same parameters, same answer, the same refusal.

A row has the request, the command that asks the same, and what both answer (members of it). What changes a
tenant is asked of two tenants that are alike, one by each door.
"""

import io
import json
import shlex
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field, replace
from urllib.parse import quote

import pyarrow as pa
import pytest
from tests.asgi.places import PLACE

from freezeframe.cli.main import main
from freezeframe.control.schedules import ScheduleRequest, Timing
from freezeframe.control.submission import Submission
from freezeframe.runs.kept_jobs import KeptJob
from freezeframe.runs.request import RunRequest
from freezeframe.service.operations.catalogue import OPERATIONS
from freezeframe.store.blobs.kept_inputs import open_inputs
from freezeframe.store.tenant import open_job

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(PLACE != "", reason="commands find the store and its database on this disk"),
]

BOTH = {item.routes[0]: item for item in OPERATIONS if item.run is not None and item.method and item.commands}
# Their commands ask, or do two operations; `tests/cli` has them.
BY_HAND = {"drop_stream", "erase_rows", "restore_stream", "restore_tenant", "revert_version", "set_policy"}
PLACES = {
    "tenant": "/api/v1/environments/dev/tenants/{tenant}",
    "job": "/api/v1/environments/dev/tenants/{tenant}",
    "environment": "/api/v1/environments/dev",
    "service": "/api/v1",
}
# Who, when, where a page goes on, and secrets: both doors have them, or neither has.
MOVING = {
    *("timestamp", "modified", "created", "started", "finished", "run_at", "expires", "last_used"),
    *("request_id", "who", "submitted_by", "created_by", "next_cursor", "next_due", "next_runs"),
    *("script", "id", "key", "revoked", "sha256", "seconds"),
}


@dataclass(frozen=True)
class Row:
    """A question by both doors, and members of the answer or, of a refusal, the status and the exit code."""

    operation: str
    values: dict = field(default_factory=dict)
    command: str = ""
    answer: object = None
    refused: tuple[int, int] | None = None


TEXT = '--- config.json\n+++ config.json\n@@ -1 +1 @@\n-{"a": 1}\n+{"a": 2}'
ROWS = [
    Row("list_tenants", {"prefix": "{tenant}", "limit": 1}, "--prefix {tenant} --limit 1",
        {"tenants": ["T"]}),
    Row("list_tenants", {"prefix": "none-"}, "--prefix none-", {"tenants": []}),
    Row("list_files", {}, "", {"folders": ["maps"], "files": ["config.json"], "version": 6}),
    Row("list_files", {"folder": "maps"}, "maps", {"folder": "maps", "files": ["maps/a.bin"]}),
    Row("list_files", {"folder": "maps", "version": 2}, "maps --version 2", {"files": [], "version": 2}),
    Row("list_files", {"recursive": True}, "--recursive", {"files": ["config.json", "maps/a.bin"]}),
    Row("list_files", {"recursive": True, "limit": 1}, "--recursive --limit 1", {"files": ["config.json"]}),
    Row("list_files", {"as_of": "2999-01-01T00:00:00Z"}, "--as-of 2999-01-01T00:00:00Z", {"version": 6}),
    Row("list_files", {"version": 1, "as_of": "2999-01-01T00:00:00Z"},
        "--version 1 --as-of 2999-01-01T00:00:00Z", refused=(422, 2)),
    Row("list_files", {"version": 99}, "--version 99", refused=(404, 4)),
    Row("list_files", {"cursor": "["}, "--cursor [", refused=(422, 2)),
    Row("list_files", {"cursor": "[1]"}, "--cursor [1]", refused=(422, 2)),
    Row("file_history", {"path": "config.json", "limit": 1}, "config.json --limit 1",
        {"path": "config.json", "revisions": [2]}),
    Row("file_history", {"path": "nope"}, "nope", refused=(404, 4)),
    Row("file_history", {"path": "../x"}, "../x", refused=(422, 2)),
    Row("delete_file", {"path": "config.json", "message": "why"}, "config.json --message why",
        {"tenant_version": 7}),
    Row("delete_file", {"path": "nope"}, "nope", refused=(404, 4)),
    Row("move_file", {"path": "config.json", "target": "a/b.json", "message": "why"},
        "config.json a/b.json --message why", {"path": "a/b.json", "size": 8, "version": 7, "sealed": False}),
    Row("move_file", {"path": "nope", "target": "x"}, "nope x", refused=(404, 4)),
    Row("move_file", {"path": "config.json", "target": "Account.snapshot.csv"},
        "config.json Account.snapshot.csv", refused=(409, 2)),
    Row("move_file", {"path": "config.json", "target": "../x"}, "config.json ../x", refused=(422, 2)),
    Row("list_history", {}, "", {"versions": [6, 5, 4, 3, 2, 1, 0]}),
    Row("list_history", {"limit": 1}, "--limit 1", {"versions": [6]}),
    Row("list_history", {"stream": "Lead"}, "--stream Lead", {"versions": [5, 1]}),
    Row("list_history", {"path": "config.json"}, "--file config.json", {"versions": [2, 1]}),
    Row("list_history", {"job_id": "sync-1"}, "--job sync-1", {"versions": [1]}),
    Row("list_history", {"cursor": "x"}, "--cursor x", refused=(422, 2)),
    Row("show_difference", {}, "", {"before": 5, "after": 6}),
    Row("show_difference", {"before": 0, "after": 1}, "0 1",
        {"files": {"config.json": {"fate": "added", "sealed": False, "text": None}}}),
    Row("show_difference", {"before": 1, "after": 2, "texts": True}, "1 2 --text",
        {"files": {"config.json": {"fate": "changed", "sealed": False, "text": TEXT}}}),
    Row("show_difference", {"before": 99}, "99", refused=(404, 4)),
    Row("set_tag", {"tag": "live", "version": 1}, "live 1", {"name": "live", "version": 1}),
    Row("set_tag", {"tag": "live"}, "live", {"name": "live", "version": 6}),
    Row("set_tag", {"tag": "mine", "version": 1}, "mine 1", refused=(409, 2)),
    Row("set_tag", {"tag": "live", "version": 99}, "live 99", refused=(404, 4)),
    Row("remove_tag", {"tag": "mine"}, "mine"),
    Row("remove_tag", {"tag": "nope"}, "nope", refused=(404, 4)),
    Row("list_deliveries", {}, "",
        {"deliveries": [{"stream": "Lead", "target": "shop", "state": "Lead.delivery.shop"}]}),
    Row("show_delivery", {"stream": "Lead", "target": "shop", "limit": 1}, "Lead shop --limit 1",
        {"accepted": 1, "rejected": 1,
         "pending": {"inserted": 1, "updated": 0, "unchanged": 0, "deleted": 1}}),
    Row("show_delivery", {"stream": "Nope", "target": "shop"}, "Nope shop", refused=(404, 4)),
    Row("show_delivery", {"stream": "Lead", "target": "a.b"}, "Lead a.b", refused=(422, 2)),
    Row("retry_delivery", {"stream": "Lead", "target": "shop", "keys": ['[7, "a"]'], "message": "why"},
        "Lead shop --key '[7, \"a\"]' --message why", {"rows": 1, "tenant_version": 7, "committed": True}),
    Row("retry_delivery", {"stream": "Lead", "target": "shop"}, "Lead shop", {"rows": 1}),
    Row("retry_delivery", {"stream": "Lead", "target": "shop", "keys": ['[8, "b"]']},
        "Lead shop --key '[8, \"b\"]'", {"rows": 0, "committed": False}),
    Row("retry_delivery", {"stream": "Lead", "target": "crm"}, "Lead crm", refused=(404, 4)),
    Row("retry_delivery", {"stream": "Lead", "target": "shop", "keys": ["7"]}, "Lead shop --key 7",
        refused=(422, 2)),
    Row("list_all_jobs", {"tenant": "{tenant}"}, "--tenant {tenant}", {"jobs": ["ended", "waiting", "held"]}),
    Row("list_all_jobs", {"tenant": "{tenant}", "status": "queued", "limit": 1},
        "--tenant {tenant} --status queued --limit 1", {"jobs": ["waiting"]}),
    Row("list_all_jobs", {"tenant": "{tenant}", "job_id": "ended"}, "--tenant {tenant} --job-id ended",
        {"jobs": ["ended"]}),
    Row("list_all_jobs", {"tenant": "{tenant}", "group": "held-{tenant}"},
        "--tenant {tenant} --group held-{tenant}", {"jobs": ["held"]}),
    Row("list_all_jobs", {"tenant": "{tenant}", "schedule": "nightly"},
        "--tenant {tenant} --schedule nightly", {"jobs": []}),
    Row("list_all_jobs", {"tenant": "{tenant}", "since": "2999-01-01T00:00:00Z"},
        "--tenant {tenant} --since 2999-01-01T00:00:00Z", {"jobs": []}),
    Row("list_all_jobs", {"tenant": "{tenant}", "until": "2000-01-01"},
        "--tenant {tenant} --until 2000-01-01", {"jobs": []}),
    Row("list_all_jobs", {"status": "lost"}, "--status lost", refused=(422, 2)),
    Row("list_all_jobs", {"cursor": "x"}, "--cursor x", refused=(422, 2)),
    Row("show_job", {"job_id": "waiting"}, "waiting",
        {"job_id": "waiting", "tenant": "T", "status": "queued", "attempts_max": 3}),
    Row("show_job", {"job_id": "nope"}, "nope", refused=(404, 4)),
    Row("cancel_job", {"job_id": "waiting"}, "waiting", {"status": "cancelled"}),
    Row("cancel_job", {"job_id": "nope"}, "nope", refused=(404, 4)),
    Row("publish_job", {"job_id": "held"}, "held", {"status": "succeeded"}),
    Row("publish_job", {"job_id": "held", "again": True}, "held --again", {"status": "succeeded"}),
    Row("publish_job", {"job_id": "waiting"}, "waiting", refused=(422, 2)),
    Row("publish_job", {"job_id": "nope"}, "nope", refused=(404, 4)),
    Row("discard_job", {"job_id": "held"}, "held", {"status": "cancelled"}),
    Row("discard_job", {"job_id": "ended"}, "ended", refused=(422, 2)),
    Row("replay_jobs", {"jobs": ["sync-1"], "job_id": "again"}, "sync-1 --job-id again",
        {"job_id": "again", "replays": ["sync-1"], "status": "queued", "script": False}),
    Row("replay_jobs", {"jobs": ["nope"], "timeout_seconds": 5, "message": "why", "dry_run": True},
        "nope --timeout-seconds 5 --message why --dry-run", refused=(404, 4)),
    Row("replay_jobs", {"jobs": ["sync-1"], "script": "../x"}, "sync-1 --script ../x", refused=(422, 4)),
    Row("replay_jobs", {"jobs": ["sync-1", "sync-1"]}, "sync-1 sync-1", refused=(422, 2)),
    Row("replay_jobs", {"jobs": []}, "", refused=(422, 2)),
    Row("cancel_group", {"group": "waiting-{tenant}"}, "waiting-{tenant}",
        {"counts": {"cancelled": 1}, "left": 0, "refused": []}),
    Row("cancel_group", {"group": "nope"}, "nope", refused=(404, 4)),
    Row("publish_group", {"group": "held-{tenant}", "passed": True}, "held-{tenant} --passed",
        {"counts": {"succeeded": 1}, "left": 0, "refused": []}),
    Row("publish_group", {"group": "nope"}, "nope", refused=(404, 4)),
    Row("discard_group", {"group": "held-{tenant}"}, "held-{tenant}",
        {"counts": {"cancelled": 1}, "left": 0, "refused": []}),
    Row("discard_group", {"group": "nope"}, "nope", refused=(404, 4)),
    Row("list_schedules", {"tenant": "{tenant}", "limit": 1}, "--tenant {tenant} --limit 1",
        {"schedules": ["nightly"]}),
    Row("list_schedules", {"tenant": "nobody"}, "--tenant nobody", {"schedules": []}),
    Row("list_schedules", {"cursor": "x"}, "--cursor x", refused=(422, 2)),
    Row("list_keys", {"limit": 1}, "--limit 1"),
    Row("create_key",
        {"name": "ci", "scopes": ["jobs:read"], "environments": ["dev"], "tenants": ["acme"], "days": 9},
        "--name ci --scope jobs:read --env dev --tenant acme --days 9",
        {"name": "ci", "scopes": ["jobs:read"], "environments": ["dev"], "tenants": ["acme"]}),
    Row("create_key", {"scopes": ["everything"]}, "--scope everything", refused=(422, 2)),
    Row("create_key", {"environments": ["../x"]}, "--env ../x", refused=(422, 2)),
    Row("create_key", {"days": -1}, "--days -1", refused=(422, 2)),
    Row("rotate_key", {"key_id": "{made}", "overlap_hours": 1}, "{made} --overlap-hours 1"),
    Row("rotate_key", {"key_id": "nobody"}, "nobody", refused=(404, 4)),
    Row("revoke_key", {"key_id": "{made}"}, "{made}", {"name": "made"}),
    Row("revoke_key", {"key_id": "nobody"}, "nobody", refused=(404, 4)),
]  # fmt: skip


class Doors:
    """A store with a service, and tenants that are alike."""

    def __init__(self, served, script):
        self.served, self.script, self.count = served, script, 0
        self.reads = self.names("tenant")

    def names(self, place):
        """Names of what a request or a command changes there: a tenant of its own, or a key."""
        made = self.served.service.keys.create(name="made", scopes=["jobs:read"]).id
        return {"tenant": "nobody" if place == "service" else self.tenant(), "made": made}

    def tenant(self):
        """A new tenant with versions, a tag, a delivery, jobs and a schedule."""
        self.count += 1
        name = f"doors-{self.count}"
        service = self.served.service
        tenant = service.stores.environment("dev").tenant(name, create=True)
        tenant.stream("Account").update(pa.table({"Id": [1, 2], "v": ["a", "b"]}), "Id")
        with tenant.job("sync-1", message="Nightly", who="ops") as job:
            job.stream("Lead").update(pa.table({"Id": [7, 8], "Day": ["a", "b"]}), ["Id", "Day"])
            job.files.write("config.json", b'{"a": 1}')
        inputs = open_inputs(tenant.context.storage, tenant.context.settings, 0)
        kept = KeptJob("sync-1", name, "dev", "etl.py", {}, {}, 0, {}, ())
        inputs.record(inputs.folder(1), "sync-1", kept.to_json())
        tenant.files.write("config.json", b'{"a": 2}')
        tenant.files.write("maps/a.bin", b"\xff")
        lead, delivery = tenant.stream("Lead"), tenant.delivery("shop")
        rows = delivery.pending("Lead")
        answers = rows.assign(_target_id="s8"), rows.assign(_error="no email")
        with tenant.job() as job:
            job.delivery("shop").accept("Lead", answers[0][rows["Id"] == 8])
            job.delivery("shop").reject("Lead", answers[1][rows["Id"] == 7])
        lead.update(pa.table({"Id": [7, 9], "Day": ["a", "c"]}), mode="full", max_delete_ratio=1)
        tenant.tag("mine", 0)
        self.submit(tenant, name)
        return name

    def submit(self, tenant, name):
        """A job that waits, one that was cancelled and one that is held; a schedule."""
        service, place = self.served.service, {"environment": "dev", "tenant": name}
        place["incarnation"] = service.stores.environment("dev").folder(name)
        request = RunRequest(self.served.root, "dev", name, self.script, "held")
        for job_id in ("held", "waiting", "ended"):
            text = json.dumps(replace(request, job_id=job_id, hold=job_id == "held").to_json())
            more = {"priority": int(job_id == "held")}
            more |= {} if job_id == "ended" else {"group": f"{job_id}-{name}"}
            service.queue.submit(Submission(text, job_id=job_id, **place, **more))
        held = service.queue.claim("worker")
        assert ("held", name) == (held.job_id, held.tenant)
        with open_job(replace(tenant.context, review=lambda effects, _: effects), "held") as job:
            job.stream("Account").update(pa.table({"Id": [4], "v": ["d"]}), "Id")
        service.queue.finish(held, "held", json.dumps({"dry_run": job.dry_run.to_json()}))
        service.queue.cancel("dev", name, "ended")
        text = json.dumps(request.to_json())
        daily = ScheduleRequest("nightly", timing=Timing("@daily"), request=text, **place)
        service.schedules._schedules.create(daily)

    def opened(self, names):
        """The tenant of these names."""
        return self.served.service.stores.environment("dev").tenant(names["tenant"])

    def ask(self, row, names):
        """The status of a request, and its answer."""
        item = BOTH[row.operation]
        values = json.loads(filled(json.dumps(row.values), names))
        path = PLACES[item.place] + item.path
        given = {name: quote(values.pop(name), safe="") for name in row.values if f"{{{name}}}" in path}
        body = {"json": values} if item.body else {"params": values}
        with self.served.client() as api:
            answer = api.request(item.method, path.format(**{**names, **given}), **body)
        return answer.status_code, answer.json() if answer.content else None

    def run(self, row, names):
        """The exit code of a command, and its answer."""
        item = BOTH[row.operation]
        words = [*item.commands[0].split(), *shlex.split(filled(row.command, names))]
        words += ["--root", self.served.root, "--json"]
        words += ["--env", "dev"] if item.place != "service" else []
        words += ["--tenant", names["tenant"]] if item.place in {"tenant", "job"} else []
        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            code = main(words)
        return code, json.loads(out.getvalue() or err.getvalue())


def filled(text, names):
    """The text with the names of the tenant that is asked."""
    for name, value in names.items():
        text = text.replace("{" + name + "}", value)
    return text


def alike(value, names):
    """An answer without what no two answers share; that a member is there, and is not null, is kept."""
    if isinstance(value, dict):
        return {
            name: (item is None) if name in MOVING else alike(item, names) for name, item in value.items()
        }
    if isinstance(value, list):
        return [alike(item, names) for item in value]
    return value.replace(names["tenant"], "T") if isinstance(value, str) else value


@pytest.fixture(scope="module")
def doors(serve, tmp_path_factory):
    """A store whose commands and whose service the tests ask."""
    script = tmp_path_factory.mktemp("scripts") / "etl.py"
    script.write_text("print('ran')\n")
    return Doors(serve(service_requests_per_second=0), script)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.operation} {row.command}"[:50])
def test_both_doors_ask_alike_and_answer_alike(doors, row):
    """The answer has the same members by both, and those of the row; a refusal the code of its kind."""
    item = BOTH[row.operation]
    is_read = not item.action or row.refused
    first, second = (doors.reads if is_read else doors.names(item.place) for _ in "ab")
    status, answer = doors.ask(row, first)
    code, printed = doors.run(row, second)

    if row.refused:
        assert row.refused == (status, code), (answer, printed)
        assert answer["code"] == printed["error"]["code"] or status == 422
        return
    assert (item.status, 0) == (status, code), (answer, printed)

    assert alike(answer, first) == alike(printed, second)
    if "message" in row.values:
        newest = [doors.opened(names).history(1)[0].message for names in (first, second)]
        assert [row.values["message"]] * 2 == newest
    for name, value in (row.answer or {}).items():
        assert value == told(alike(answer, first)[name])


def told(value):
    """A member of an answer; of a list of files, versions, jobs or schedules which they are."""
    if not isinstance(value, list) or not value or not isinstance(value[0], dict):
        return value
    names = [name for name in ("path", "version", "job_id", "name") if name in value[0]]
    return [item[names[0]] for item in value] if names else value


def test_each_operation_has_rows_with_all_of_its_parameters():
    """One that is added to the catalogue, or gets a parameter, is asked by both doors too, or this fails."""
    asked = {name: set() for name in BOTH.keys() - BY_HAND}
    for row in ROWS:
        asked[row.operation] |= row.values.keys()

    for name in ("list_tenants", "list_keys"):  # on the command line theirs is the last id, which may be any
        asked[name].add("cursor")
    assert {name: {item.name for item in BOTH[name].parameters} for name in asked} == asked
