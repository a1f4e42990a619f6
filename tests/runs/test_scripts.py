"""Scripts as they were written for hotglue, run as jobs: their own CSV files, or streams of ours."""

import json

import nbformat
import pytest

# A library of the shape that hotglue's page shows: whole CSV files, read, merged and written again.
CSV_LIBRARY = """
import os
import pandas as pd

def get_snapshot(snapshot_dir, stream):
    path = f"{snapshot_dir}/{stream}.snapshot.csv"
    return pd.read_csv(path, dtype=str) if os.path.isfile(path) else None

def update_snapshot(snapshot_dir, stream, key, frame):
    rows = frame.drop_duplicates(key, keep="last").set_index(key)
    before = get_snapshot(snapshot_dir, stream)
    if before is not None:
        rows = rows.combine_first(before.set_index(key))
    rows = rows.reset_index()
    rows.to_csv(f"{snapshot_dir}/{stream}.snapshot.csv", index=False)
    return rows
"""
SCRIPT = """
import os
import pandas as pd
{library}

ROOT_DIR = {root}
INPUT_DIR = f"{{ROOT_DIR}}/sync-output"
SNAPSHOT_DIR = f"{{ROOT_DIR}}/snapshots"

for name in sorted(os.listdir(INPUT_DIR)):
    rows = pd.read_csv(f"{{INPUT_DIR}}/{{name}}", dtype=str)
    util.update_snapshot(SNAPSHOT_DIR, name.split("-")[0], ["Id"], rows)
accounts = util.get_snapshot(SNAPSHOT_DIR, "Account")
print(",".join(sorted(accounts["Id"])))
"""


def _input(tmp_path, day, **streams):
    folder = tmp_path / f"day-{day}" / "sync-output"
    folder.mkdir(parents=True)
    for stream, text in streams.items():
        (folder / f"{stream}-2026010{day}T000000.csv").write_text(text)
    return folder


def test_a_script_with_its_own_csv_library_is_atomic(runs, tmp_path):
    """Its files are versions of the tenant's: both appear with the run, and a failed run changes none."""
    script = runs.script(
        SCRIPT.format(library="from lib import util", root='os.environ.get("ROOT_DIR", ".")')
    )
    (script.parent / "lib").mkdir()
    (script.parent / "lib" / "util.py").write_text(CSV_LIBRARY)
    first = _input(tmp_path, 1, Account="Id,Name\n007,Bond\n8,Bill\n", Contact="Id\nc1\n")
    done = runs.run(script, input_dir=first)
    assert done.status == "succeeded", done.error
    assert list(done.receipt["files_written"]) == ["Account.snapshot.csv", "Contact.snapshot.csv"]
    script.write_text(script.read_text() + "raise ValueError\n")
    second = _input(tmp_path, 2, Account="Id,Name\n9,Nora\n", Contact="Id\nc2\n")
    assert runs.run(script, input_dir=second).status == "failed"
    assert [runs.lines[0], runs.lines[-1]] == ["007,8,9", "ValueError"]
    assert runs.tenant.files.read_text("Account.snapshot.csv") == "Id,Name\n007,Bond\n8,Bill\n"
    assert runs.tenant.version == 0


def test_a_relative_root_means_the_jobs_own(runs, tmp_path):
    """A script that stands in its root and says "." works the same, as a file and as a notebook."""
    source = SCRIPT.format(library="from lib import util", root='"."')
    cells = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source)])
    for name, text in (("etl.py", source), ("etl.ipynb", nbformat.writes(cells))):
        script = runs.script("", name=name)
        script.write_text(text)
        (script.parent / "lib").mkdir()
        (script.parent / "lib" / "util.py").write_text(CSV_LIBRARY)
        done = runs.run(script, input_dir=_input(tmp_path, name[-2:], Account="Id\n007\n"))
        assert done.status == "succeeded", done.error
        assert runs.lines[-1] == "007"


@pytest.mark.spark
def test_a_notebook_on_streams_and_files_is_one_commit(runs, tmp_path, spark_settings):
    """Streams, a file and an adopted CSV file change together, and only if the end is reached."""
    source = SCRIPT.format(library="import freezeframe as util", root='"."')
    source += "open(f'{SNAPSHOT_DIR}/note.txt', 'w').write('kept')\n"
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source)])
    script = runs.script("", name="etl.ipynb")
    nbformat.write(notebook, script)
    runs.tenant.files.write("Account.snapshot.csv", b"Id,Name\n007,James\n")
    before = runs.tenant.version
    first = _input(tmp_path, 1, Account="Id,Name\n008,Bill\n", Contact="Id\nc1\n")
    done = runs.run(script, input_dir=first, settings=spark_settings, job_id="monday")
    assert done.status == "succeeded", done.error
    assert runs.lines[-1] == "007,008"
    assert before + 1 == runs.tenant.version
    assert {name: told["inserted"] for name, told in done.receipt["streams"].items()} == {
        "Account": 2,
        "Contact": 1,
    }
    # What the stream made of the adopted file is the stream's; the file is what it was.
    assert list(done.receipt["files_written"]) == ["note.txt"]
    assert runs.tenant.files.read("Account.snapshot.csv") == b"Id,Name\n007,James\n"
    assert runs.run(script, input_dir=first, settings=spark_settings, job_id="monday").status == "repeated"
    notebook.cells.append(nbformat.v4.new_code_cell("raise ValueError"))
    nbformat.write(notebook, script)
    second = _input(tmp_path, 2, Account="Id,Name\n009,Nora\n")
    failed = runs.run(script, input_dir=second, settings=spark_settings)
    assert (failed.status, next(line for line in runs.lines if "," in line)) == ("failed", "007,008,009")
    assert runs.tenant.stream("Account").read()["Id"].tolist() == ["007", "008"]
    assert before + 1 == runs.tenant.version
    notebook.cells.pop()
    nbformat.write(notebook, script)
    again = runs.run(script, input_dir=second, settings=spark_settings)
    # The file that the script's stream exported is known: it is not taken in a second time.
    assert tuple(
        again.receipt["streams"]["Account"][count] for count in ("inserted", "updated", "unchanged")
    ) == (1, 0, 0)


@pytest.mark.spark
def test_sample_reports_as_two_dated_jobs(runs, samples, spark_settings):
    """A full sync and an incremental one of the same reports: the window is replaced, the rest is kept."""
    script = runs.script(
        """
        import os
        import freezeframe
        import freezeframe.gluestick as gs
        from freezeframe.script.reading import read_csv_folder

        ROOT_DIR = os.environ.get("ROOT_DIR", ".")
        for stream, rows in read_csv_folder(f"{ROOT_DIR}/sync-output").items():
            full = os.environ["SYNC_TYPE"] == "full_sync"
            window = {"override": True} if full else {"replace_where": f"Date >= '{rows['Date'].min()}'"}
            kept = freezeframe.update_snapshot(f"{ROOT_DIR}/snapshots", stream, None, rows, **window)
            print(stream, len(rows), len(kept))
        """
    )
    reports = samples / "quickbooks-reports"
    first = runs.run(script, input_dir=reports / "full-sync", settings=spark_settings)
    assert first.status == "succeeded", first.error
    counts = {line.split()[0]: int(line.split()[2]) for line in runs.lines if "Report " in line}
    state = runs.folder / "state.json"
    state.write_text(json.dumps({"bookmarks": {}}))
    second = runs.run(script, input_dir=reports / "incremental-sync", state=state, settings=spark_settings)
    assert second.status == "succeeded", second.error
    ledger = "GeneralLedgerCashReport"
    assert [ledger] == list(second.receipt["streams"])
    told = second.receipt["streams"][ledger]
    stream = runs.tenant.stream(ledger)
    assert counts[ledger] == stream.count(version=0)
    assert counts[ledger] + told["inserted"] - told["deleted"] == stream.count()
    assert (first.tenant_version, second.tenant_version) == (0, 1)
    assert counts == {name: runs.tenant.stream(name).count(version=0) for name in counts}


@pytest.mark.nightly
@pytest.mark.spark
def test_a_script_that_speaks_to_spark_finds_the_warm_server(runs, spark_settings, spark_engine):
    """Its own session is on the server that the library uses; an erasure takes the older roots along."""
    done = runs.run(
        """
        from pyspark.sql import SparkSession
        import freezeframe

        rows = SparkSession.builder.getOrCreate().range(3).withColumnRenamed("id", "Id")
        kept = freezeframe.update_snapshot("snapshots", "Number", "Id", rows)
        print(kept.count(), freezeframe.get_snapshot("snapshots", "Number")["Id"].tolist())
        """,
        settings=spark_settings,
    )
    assert done.status == "succeeded", done.error
    assert runs.lines[-1] == "3 [0, 1, 2]"
    assert runs.tenant.erase("Number", [1]).left.is_clean
    assert not done.job_root.exists()
    later = runs.run("pass")
    runs.tenant.gc()
    assert later.job_root.exists()
