"""A dry run tells what a script would change, and leaves nothing; a real run changes just that."""

import hashlib
from pathlib import Path

import pyarrow as pa
import pytest
from tests.examples import sampled

from freezeframe.engine.protocol import DeferredEngine
from freezeframe.runs.dry_run_changes import KeptChanges, kept_changes
from freezeframe.script.tenants import shared_engine
from freezeframe.store import Tenant
from freezeframe.store.diff.tenant_diff import NO_COLUMNS, ColumnChanges
from freezeframe.store.schema.columns import type_names
from freezeframe.store.transaction.changes import TenantGuard

pytestmark = pytest.mark.long

BEGIN = """
import os
from pathlib import Path
import pandas as pd
import freezeframe as ff
import freezeframe.gluestick as gs
from freezeframe.script import get_snapshot, update_snapshot

SNAPSHOTS = os.environ["snapshot_dir"]
tenant = ff.open_tenant(SNAPSHOTS)

def update(stream, rows, key="Id", **options):
    print(stream, len(update_snapshot(SNAPSHOTS, stream, key, pd.DataFrame(rows), **options)))

"""
SCRIPTS = """
#: an upsert
update("Account", {"Id": [2, 9], "Name": ["Bo", "New"]})
#: cells that are cleared
update("Account", {"Id": [1], "Name": [None], "Total": [2]}, nulls="overwrite")
#: a full extract
update("Account", {"Id": [1, 2], "Name": ["a", "B"], "Total": [1, 2]}, mode="full")
#: an override
update("Account", {"Id": [1, 5], "Other": ["x", "y"]}, override=True)
#: a window
update("Line", {"Day": ["2026-10-02"], "v": [7]}, None, replace_where="Day = '2026-10-02'")
#: rows without a key
update("Line", {"Day": ["2026-10-02", "x"], "v": [2, 3]}, None, override=True)
#: a history
update("Price", {"Id": [1, 3], "v": [11, 30]}, history="scd2")
#: rows that end in a history
update("Price", {"Id": [1], "v": [10]}, mode="full", max_delete_ratio=1)
#: a new column
update("Account", {"Id": [1, 2], "Phone": ["007", None]})
#: a dropped column
update("Account", {"Id": [1], "Name": ["a"]}, drop_column="Total")
#: a wider type
update("Account", {"Id": [1], "Total": [1.5]})
#: a column that becomes text
update("Account", {"Id": [1], "Total": ["n/a"]}, on_drift="string")
#: a new stream
update("Contact", {"Id": ["c1", "c2"]})
#: several streams
update("Account", {"Id": [7]})
update("Lead", {"Id": [1]})
update("Line", {"v": [1]}, None, override=True)
#: one stream twice
update("Account", {"Id": [7]})
update("Account", {"Id": [7, 1], "Name": ["g", "a"]})
#: rows that are there already
update("Account", {"Id": [1], "Name": ["a"]})
#: nothing
print("nothing")
#: files
Path("snapshots/a").mkdir()
Path("snapshots/a/b.txt").write_text("ü")
Path("snapshots/note.txt").unlink()
Path("snapshots/config.json").write_text('{"n": 2}')
#: a state and a sealed file
tenant.files.patch_json("state.json", {"since": 5})
tenant.files.write("token", b"secret", sealed=True)
assert tenant.files.read("token") == b"secret"
#: a file for nothing
tenant.files.write("new.txt", b"1")
tenant.files.delete("new.txt")
#: rows made of what is stored
rows = get_snapshot(SNAPSHOTS, "Account")
rows["Total"] = rows["Total"] + 1
update("Account", rows)
gs.to_export(rows, "Account", "etl-output", export_format="csv")
#: a snapshot file of before
pd.DataFrame({"Id": ["1"], "v": ["a"]}).to_csv("snapshots/Old.snapshot.csv", index=False)
update("Old", {"Id": ["2"], "v": ["b"]})
#: frames of Spark
rows = ff.spark().createDataFrame([(2, "Bo", 5.5), (8, "Eve", None)], "Id int, Name string, Total double")
update_snapshot(SNAPSHOTS, "Account", "Id", rows)
stored = get_snapshot(SNAPSHOTS, "Account", as_="spark")
update_snapshot(SNAPSHOTS, "Rich", "Id", stored.where("Total > 2").select("Id", "Total"))
gs.to_export(stored, "Account", "etl-output", export_format="csv")
#: files of the sync
for name, rows in gs.read_csv_folder("sync-output").items():
    update(name, rows)
"""
BY_NAME = dict(text.split("\n", 1) for text in SCRIPTS.split("#: ")[1:])
IDLE = {"nothing", "a file for nothing", "rows that are there already"}


MERGED = {
    *("a full extract", "an override", "a window", "rows without a key", "a history", "several streams"),
    *("rows that end in a history", "a dropped column", "a wider type", "a column that becomes text"),
    "frames of Spark",
}
"""Scripts whose updates Spark merges."""


@pytest.fixture
def sealing(tmp_path):
    """A setting: the file of a master key."""
    key = tmp_path / "master.key"
    key.write_bytes(bytes(range(32)))
    key.chmod(0o600)
    return {"master_key_file": key}


def fill(tenant):
    """Give the tenant a version with streams of several kinds, and files."""
    with tenant.job("before") as job:
        job.stream("Account").update(
            pa.table({"Id": [1, 2, 3], "Name": ["a", "b", "c"], "Total": [1, 2, 3]}), key="Id"
        )
        job.stream("Line").update(pa.table({"Day": ["2026-10-01", "2026-10-02"], "v": [1, 2]}), override=True)
        job.stream("Price").update(pa.table({"Id": [1, 2], "v": [10, 20]}), key="Id", history="scd2")
        job.files.write("note.txt", b"old")
        job.files.write_json("config.json", {"n": 1})


def contents(runs):
    """Every folder, and the bytes of every file of the store, but for what jobs printed and exported."""
    root = Path(runs.root)
    paths = [path for path in sorted(root.rglob("*")) if "job-roots" not in path.relative_to(root).parts]
    return {
        str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        for path in paths
    }


def effects(tenant, before, receipt):
    """What a version did, in the form of a dry run, from the difference of the two versions."""
    difference, streams = tenant.diff(before, before + 1), {}
    for name, counts in receipt["streams"].items():
        found = difference.streams.get(name)
        columns = NO_COLUMNS
        if found is not None and found.fate == "changed":
            sides = (found.before, found.after)
            columns = ColumnChanges.between(*(type_names(side.delta_schema) for side in sides))
        streams[name] = {
            "fate": "unchanged" if found is None else found.fate,
            **{kind: counts[kind] for kind in ("inserted", "updated", "unchanged", "deleted")},
            "key": list(tenant.stream(name).key),
            "columns_added": dict(columns.added),
            "columns_dropped": dict(columns.dropped),
            "columns_retyped": {column: list(kinds) for column, kinds in columns.retyped.items()},
        }
    files = {
        path: {
            "fate": item.fate,
            "size_bytes": None if item.after is None else item.after.size,
            "sealed": item.is_sealed,
        }
        for path, item in difference.files.items()
    }
    return {"tenant_version": before, "streams": streams, "files": files, "failed_checks": []}


def rows_of(tables):
    """The rows by stream, in an order of their own."""
    return {name: sorted(map(repr, table.to_pylist())) for name, table in tables.items()}


def exports(outcome):
    folder = outcome.job_root / "etl-output"
    return {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def receipts(outcome):
    """The receipts by stream, without versions and what depends on the moment (a history's rows have it)."""
    left_out = ("seconds", "tenant_version", "stream_version", "committed", "bytes_written")
    return {
        name: {field: value for field, value in receipt.items() if field not in left_out}
        for name, receipt in outcome.receipt["streams"].items()
    }


def require_that_the_run_does_what_the_dry_run_said(runs, script, settings, **given):
    """Run the script dry and then for real, under one id; return both outcomes."""
    before, version = contents(runs), runs.tenant.version
    dry = runs.run(script, job_id="the-job", settings=settings, dry_run=True, **given)
    printed = runs.lines
    assert dry.status == "succeeded", dry.error
    assert contents(runs) == before
    done = runs.run(script, job_id="the-job", settings=settings, **given)
    tenant = runs.tenant
    assert (done.status, done.tenant_version, dry.tenant_version) == ("succeeded", version + 1, None)
    assert effects(tenant, version, done.receipt) == dry.dry_run.to_json()
    kept, difference = kept_changes(dry.job_root), tenant.diff(version)
    changed = {name: item.changes("arrow") for name, item in difference.streams.items()}
    assert rows_of(changed) == rows_of(kept.rows)
    assert {path: item.text() for path, item in difference.files.items()} == kept.files
    assert (printed, exports(dry), receipts(dry)) == (runs.lines, exports(done), receipts(done))
    assert dry.receipt["files_written"] == done.receipt["files_written"]
    assert not dry.receipt["committed"]
    return dry, done


def require_the_same(runs, name, settings):
    """Run one of the scripts for a filled tenant, dry and then for real."""
    sync = runs.folder / "sync-output"
    sync.mkdir()
    (sync / "Account.csv").write_text("Id,Name,Since\n1,é,2026-10-01\n4,d,\n")
    fill(runs.tenant)
    dry, _ = require_that_the_run_does_what_the_dry_run_said(
        runs, runs.script(BEGIN + BY_NAME[name]), settings, input_dir=sync
    )
    assert dry.dry_run.changes_anything == (name not in IDLE)


@pytest.mark.parametrize("name", sorted(BY_NAME.keys() - MERGED))
def test_a_script_changes_what_its_dry_run_said(runs, run_settings, sealing, name):
    """Counts, columns, rows, cells, files, exports and lines are the same; the dry run left no byte."""
    require_the_same(runs, name, run_settings.model_copy(update={"engine": "auto", **sealing}))


@pytest.mark.spark
@pytest.mark.sampled
@pytest.mark.parametrize("name", sampled(sorted(MERGED)))
def test_a_script_whose_rows_spark_merges_changes_what_its_dry_run_said(runs, spark_settings, sealing, name):
    """As without Spark; its files are gone as well."""
    require_the_same(runs, name, spark_settings.model_copy(update=sealing))


def test_a_dry_run_for_a_tenant_that_is_not_there_makes_none(runs, run_settings):
    """Nor a store; what it printed is kept elsewhere. A real run afterwards makes the tenant."""
    script = runs.script("import os\nprint(os.environ['DRY_RUN'])\nopen('snapshots/a', 'w').write('1')")

    first = runs.run(script, dry_run=True, job_id="x")

    assert (first.made_tenant, first.dry_run.tenant_version, first.dry_run.files["a"].fate) == (
        True,
        -1,
        "added",
    )
    assert not Path(runs.root).exists()
    assert (runs.lines, first.log.read_text()) == (["1"], "1\n")
    assert run_settings.state_dir in first.job_root.parents
    assert runs.run("pass", tenant="acma").status == "succeeded"
    before = contents(runs)
    assert runs.run(script, dry_run=True, job_id="x").similar_tenants == ("acma",)
    assert contents(runs) == before
    assert runs.run("open('snapshots/a', 'w').write('1')", job_id="x").tenant_version == 0


@pytest.mark.parametrize(
    ("ending", "code"),
    [
        ("raise ValueError('no')", "SCRIPT_FAILED"),
        ("import os; os._exit(3)", "SCRIPT_DIED"),
        ("import time; time.sleep(60)", "TIMED_OUT"),
        ("import os; os.symlink('/etc/passwd', 'snapshots/link')", "BAD_INPUT"),
        ("import freezeframe; freezeframe.open_tenant('snapshots').gc()", "INVALID_OPTION"),
    ],
)
def test_a_dry_run_fails_as_a_real_one_does(runs, ending, code):
    """With the same status, error and exit code; neither makes a version."""
    fill(runs.tenant)
    script = runs.script(f"open('snapshots/new.txt', 'w').write('x')\n{ending}\n")

    seconds = 2 if code == "TIMED_OUT" else 60
    dry, done = (runs.run(script, dry_run=dry_run, timeout_seconds=seconds) for dry_run in (True, False))

    assert (dry.status, dry.error["code"], dry.dry_run) == (done.status, code, None)
    if code != "TIMED_OUT":  # whose script has a code of its own only if it ended at the first signal
        assert dry.exit_code == done.exit_code
    assert (runs.tenant.version, "new.txt" in [file.path for file in runs.tenant.files.list()]) == (0, False)


def test_a_dry_run_with_a_committed_id_is_answered(runs):
    """As the real one is: the script is not run again."""
    assert runs.run("open('snapshots/a', 'w').write('1')", job_id="x").status == "succeeded"

    again = runs.run("print('again')", job_id="x", dry_run=True)

    assert (again.status, again.tenant_version, again.dry_run, runs.lines) == ("repeated", 0, None, [])


def test_changes_are_kept_up_to_a_limit(runs, run_settings):
    """The first thousand rows by key, and lines of short files; a root without changes has none."""
    script = (
        BEGIN
        + """
update("Many", {"Id": range(1500)})
update("Odd", {"_before": [1]}, "_before")
Path("snapshots/long.txt").write_text("x" * 200_001)
Path("snapshots/short.txt").write_text("x")
"""
    )
    done = runs.run(script, dry_run=True, settings=run_settings.model_copy(update={"engine": "auto"}))

    kept = kept_changes(done.job_root)
    assert done.dry_run.streams["Many"].counts.inserted == 1500
    assert kept.rows["Many"]["Id"].to_pylist() == list(range(1000))
    assert "a column '_before' of its own" in kept.problems["Odd"]
    assert (kept.files["long.txt"], kept.files["short.txt"][-2:]) == (None, "+x")
    (done.job_root / "_freezeframe" / "changes" / "0.arrow").write_text("no")
    assert kept_changes(done.job_root) == kept_changes(done.job_root / "none") == KeptChanges()


def test_garbage_collection_removes_what_a_killed_dry_run_left(runs, run_settings):
    """As of any job that was killed: files and lease; its id is free, and the tenant as it was."""
    fill(runs.tenant)
    before = contents(runs)
    script = BEGIN + BY_NAME["an upsert"] + "tenant.files.write('new.txt', b'1')\nos.kill(os.getpid(), 9)"
    auto = run_settings.model_copy(update={"engine": "auto"})

    killed = runs.run(script, job_id="x", dry_run=True, settings=auto)

    assert (killed.status, killed.error["code"]) == ("failed", "SCRIPT_DIED")
    assert contents(runs).keys() > before.keys()
    storage = runs.tenant.context.storage
    now = run_settings.model_copy(update={"lease_dead_seconds": 0, "gc_grace_seconds": 0})
    tenant = Tenant(storage, DeferredEngine(shared_engine), now, TenantGuard())
    for _ in range(2):
        tenant.gc()
    after = contents(runs)
    assert {path for path, digest in after.items() if digest and "/log/" not in path} == {
        path for path, digest in before.items() if digest and "/log/" not in path
    }
    assert runs.run("pass", job_id="x").status == "succeeded"
