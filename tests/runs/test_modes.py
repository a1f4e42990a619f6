"""What a store keeps is its owner's alone, whatever the umask of who writes it: files 0600, folders 0700."""

import io
import os
import stat
import subprocess
import sys

import pyarrow as pa
import pytest

from freezeframe.control.database import ControlDatabase, database_url
from freezeframe.script.inputs.transfer import export_stream
from freezeframe.service.jobs import ImportRequest, TenantJob
from freezeframe.service.service import open_service
from freezeframe.service.staged_blobs import ImportContent
from freezeframe.settings import Settings
from freezeframe.storage import LocalStorage
from freezeframe.store.diff.counts import ArrowEngine
from freezeframe.store.snapshot_store import Store

pytestmark = pytest.mark.long

SCRIPT = """
import os, pathlib
import pandas as pd
from freezeframe import script as util
frame = pd.DataFrame({"Id": ["1", "2"], "City": ["Bern", "Basel"]})
util.update_snapshot(os.environ["ROOT_DIR"] + "/snapshots", "Account", ["Id"], frame)
pathlib.Path("snapshots/notes/deep").mkdir(parents=True)
pathlib.Path("snapshots/notes/deep/a.json").write_text("{}")
pathlib.Path("etl-output/out.csv").write_text("Id")
print("done")
"""


@pytest.fixture(autouse=True)
def open_umask():
    """A umask that takes nothing away."""
    before = os.umask(0)
    yield
    os.umask(before)


def readable(folder):
    """What below (and with) the folder others may read or write, from the folder on."""
    found = [folder, *folder.rglob("*")]
    return sorted(
        str(item.relative_to(folder))
        for item in found
        if not item.is_symlink() and not stat.S_ISSOCK(item.stat().st_mode) and item.stat().st_mode & 0o077
    )


def test_what_the_library_writes(tmp_path):
    """Streams with all that updates make of them, files, clones, archives and exports."""
    storage = LocalStorage(tmp_path / "store" / "deep")
    store = Store(storage, ArrowEngine(), Settings(checkpoint_interval=2, vectors_from_bytes=0))
    tenant = store.tenant("acme", create=True)
    rows = pa.table({"Id": list(range(1000)), "City": ["Bern"] * 1000})
    for number in range(4):
        tenant.stream("Account").update(rows.slice(number * 100), ["Id"])
    tenant.stream("Account").update(pa.table({"Id": [1], "City": ["Thun"]}), ["Id"])
    tenant.stream("Report").update(rows, override=True)
    tenant.files.write("notes/deep/a.json", b"{}")
    store.clone_tenant("acme", "twin")
    (tmp_path / "out").mkdir(0o700)
    export_stream(tenant.stream("Account"), tmp_path / "out", "parquet")
    export_stream(tenant.stream("Account"), tmp_path / "out", "csv")

    assert readable(tmp_path / "store") == []
    assert readable(tmp_path / "out") == []


def test_what_the_service_keeps(tmp_path):
    """Its secret, its databases, uploads, and the inputs of jobs."""
    root, settings = str(tmp_path / "served" / "store"), Settings()
    database = ControlDatabase.open(database_url(settings, root))
    service = open_service(root, settings, database)
    service.stores.environment("dev").tenant("acme", create=True)
    folder = service.stores.environment("dev").folder("acme")
    with service.blobs.stage(folder, "a" * 32) as writer:
        writer.write(b"x")
    content = ImportContent(io.BytesIO(b"Id\n1\n"), "0" * 64)
    order = ImportRequest("Account", "csv", ("Id",))
    service.jobs.submit_import(TenantJob("dev", "acme", "one", folder), order, content, "me")
    database.close()

    assert readable(tmp_path / "served") == []


def test_what_a_run_leaves(tmp_path):
    """The command's whole root: the store, the job's folder with its input, output and log."""
    script, given = tmp_path / "etl.py", tmp_path / "given" / "sub"
    script.write_text(SCRIPT)
    given.mkdir(parents=True)
    (given / "a.csv").write_text("Id\n1\n")
    command = [sys.executable, "-m", "freezeframe", "run", str(script), "--tenant", "acme"]
    command += ["--root", str(tmp_path / "store"), "--input", str(given.parent)]
    state = {"FREEZEFRAME_STATE_DIR": str(tmp_path / "state"), "FREEZEFRAME_RUNNER_IDLE_SECONDS": "0"}
    done = subprocess.run(command, env={**os.environ, **state}, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    assert readable(tmp_path / "store") == []
