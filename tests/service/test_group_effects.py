"""The dry runs of many tenants, summed up: reasons of failures, unusual counts, columns."""

import json

import pyarrow as pa
import pytest

from freezeframe.control.database import ControlDatabase
from freezeframe.control.groups import jobs_of_group, submit_group
from freezeframe.control.queue import JobQueue
from freezeframe.control.submission import Submission
from freezeframe.script.tenants import open as open_store
from freezeframe.service.group_effects import group_effects
from freezeframe.service.overview import Overviews

QUIET = {"columns_added": {}, "columns_dropped": {}, "columns_retyped": {}}


def effect(inserted=0, deleted=0, **columns):
    """What a dry run tells of a stream."""
    counts = {"inserted": inserted, "updated": 1, "unchanged": 0, "deleted": deleted}
    return {"fate": "changed", **counts, "key": ["Id"], **QUIET, **columns}


@pytest.fixture
def sum_up(tmp_path):
    """Sum up jobs that ended: a tenant's error, or the effects on its streams, by its id."""
    store = open_store(str(tmp_path / "store"))

    def run(ends):
        database = ControlDatabase.open(f"sqlite:///{tmp_path}/control.db")
        queue = JobQueue(database)
        submit_group(
            database, [Submission('{"dry_run": true}', "default", name, "g", group="g") for name in ends]
        )
        for _ in ends:
            job = queue.claim("worker")
            end = ends[job.tenant]
            if isinstance(end, str):
                outcome = {"error": {"code": "SCRIPT_FAILED", "problem": "It failed.", "cause": end}}
                queue.finish(job, "failed", json.dumps(outcome))
            else:
                dry_run = {"tenant_version": 1, "streams": end, "files": {}}
                queue.finish(job, "succeeded", json.dumps({"dry_run": dry_run}))
        try:
            return group_effects(jobs_of_group(database, "default", "g"), store.tenant, Overviews())
        finally:
            database.close()

    return run


def test_failures_are_counted_by_their_reason(sum_up):
    """The first line of each; the reason of most tenants first, columns likewise."""
    retyped = effect(columns_retyped={"Total": ["long", "double"]}, columns_added={"Note": "string"})
    found = sum_up(
        {
            "a": "ValueError: 1\nmore",
            "b": "KeyError: 'Email'\nmore",
            "c": "KeyError: 'Email'\nother",
            "d": {
                "Account": effect(
                    inserted=2, columns_added={"Note": "string"}, columns_dropped={"Old": "date"}
                )
            },
            "e": {"Account": retyped, "Lead": effect()},
            "f": {},
        }
    )

    assert [(item.error, item.tenants, item.named) for item in found.failures] == [
        ("KeyError: 'Email'", 2, ("b", "c")),
        ("ValueError: 1", 1, ("a",)),
    ]
    assert [(c.column, c.change, c.before, c.after, c.named) for c in found.columns] == [
        ("Note", "added", None, "string", ("d", "e")),
        ("Old", "dropped", "date", None, ("d",)),
        ("Total", "retyped", "long", "double", ("e",)),
    ]
    assert (found.dry_runs, found.changing, found.inserted, found.updated, found.deleted) == (6, 2, 2, 3, 0)


def test_counts_are_compared_with_the_tenants_own_past(sum_up, tmp_path):
    """A quarter of the rows deleted, or a doubling, if no version since the first load did the like."""
    store = open_store(str(tmp_path / "store"))
    for name in ("usual", "unusual", "small"):
        stream = store.tenant(name, create=True).stream("Account")
        stream.update(pa.table({"Id": list(range(200))}), "Id")
        if name == "usual":
            stream.update(pa.table({"Id": list(range(200, 500))}), "Id")

    found = sum_up(
        {
            "usual": {"Account": effect(inserted=700)},
            "unusual": {"Account": effect(deleted=120, inserted=300), "New": effect(inserted=700)},
            "small": {"Account": effect(deleted=20, inserted=90)},
            "gone": {"Account": effect(deleted=1000)},
        }
    )
    assert [(item.tenant, item.stream, item.kind, item.rows, item.rows_before) for item in found.unusual] == [
        ("unusual", "Account", "growth", 300, 200),
        ("unusual", "Account", "deletion", 120, 200),
    ]
