"""Names that are not about snapshots: those of the installed gluestick, loaded when they are used."""

import importlib.util
import os
import subprocess
import sys

import pandas as pd
import pytest

import freezeframe.gluestick as gs
from freezeframe.errors import SetupError

pytestmark = pytest.mark.long

needs_gluestick = pytest.mark.skipif(
    importlib.util.find_spec("gluestick") is None, reason="gluestick is not installed (pip install gluestick)"
)

# The shape of a script that keeps a report: a window of it is replaced at each incremental sync.
REPORT_SCRIPT = """
import os
import pandas as pd
import freezeframe.gluestick as gs

ROOT = os.environ["ROOT_DIR"]
SNAPSHOTS, OUTPUT = f"{ROOT}/snapshots", f"{ROOT}/etl-output"
input_data = gs.Reader()
for stream in eval(str(input_data)):
    report = input_data.get(stream)
    snapshot = gs.read_snapshots(stream, SNAPSHOTS)
    if snapshot is not None:
        kept = snapshot[snapshot["Date"] < report["Date"].min()]
        report = pd.concat([kept, report])
    gs.snapshot_records(report, stream, SNAPSHOTS, overwrite=True)
    gs.to_export(report, stream, OUTPUT, export_format="csv")
"""


def test_gluestick_is_loaded_for_its_own_names_alone():
    """Those say what to install where it is absent, however they are asked for."""
    code = (
        "import sys, freezeframe.gluestick as gs; gs.read_snapshots('A', 'nowhere')\n"
        "print([n for n in ('gluestick', 'polars', 'pyspark') if n in sys.modules],"
        "hasattr(gs, '__wrapped__'))\n"
        "sys.modules['gluestick'] = None\n"
        "from freezeframe.errors import SetupError\n"
        "for ask in (lambda: gs.Reader, lambda: exec('from freezeframe.gluestick import Unit')):\n"
        "    try: ask()\n"
        "    except SetupError as error: print(error)\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded, *told = run.stdout.splitlines()
    assert loaded == "[] False"
    assert [line.split()[0].split(".")[-1] for line in told] == ["Reader", "Unit"]
    assert run.stdout.count("pip install gluestick") == 2


@needs_gluestick
@pytest.mark.parametrize("kind", ["csv", "json", "jsonl", "parquet"])
def test_a_pandas_frame_is_exported_without_gluestick(kind, tmp_path, monkeypatch):
    """The file is the one that gluestick writes; what only gluestick can do says so."""
    monkeypatch.setenv("ROOT_DIR", str(tmp_path))
    frame = pd.DataFrame(
        {"Id": ["007", None], "tags": [["a"], []], "at": pd.to_datetime(["2026-01-02", None])}
    )
    written = []
    for folder in ("with", "without"):
        (tmp_path / "with").mkdir(exist_ok=True)
        if folder == "without":
            monkeypatch.setitem(sys.modules, "gluestick", None)
        gs.to_export(frame, "Leads", str(tmp_path / folder), export_format=kind)
        written.append((tmp_path / folder / f"Leads.{kind}").read_bytes())
    assert written[0] == written[1]
    for options in ({"export_format": "singer"}, {"export_format": kind, "output_file_prefix": "x_"}):
        with pytest.raises(SetupError, match="pip install gluestick"):
            gs.to_export(frame, "Leads", str(tmp_path), **options)


@needs_gluestick
def test_other_names_are_gluesticks_own():
    """Reader and the like are the very same objects; a name that nobody has is an AttributeError."""
    import gluestick

    assert gluestick.Reader is gs.Reader
    assert gluestick.clean_convert is gs.clean_convert
    assert gluestick.snapshot_records is not gs.snapshot_records
    with pytest.raises(AttributeError, match="no_such_name"):
        gs.no_such_name  # noqa: B018 - asking is the point


@needs_gluestick
def test_a_report_script_runs_unchanged(tmp_path):
    """Reader, read_snapshots, snapshot_records and to_export together, two syncs one after the other."""
    for folder in ("sync-output", "snapshots", "etl-output"):
        (tmp_path / folder).mkdir()
    syncs = (
        "Date,Account#,Amount\n2026-09-30,1,1.5\n2026-10-01,2,2.0\n2026-10-01,2,2.0\n",
        "Date,Account#,Amount\n2026-10-01,3,9.25\n2026-10-02,3,\n",
    )
    for text in syncs:
        (tmp_path / "sync-output" / "GeneralLedger-20261001T000000.csv").write_text(text)
        run = subprocess.run(
            [sys.executable, "-c", REPORT_SCRIPT],
            env={**os.environ, "ROOT_DIR": str(tmp_path)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert run.returncode == 0, run.stderr

    exported = pd.read_csv(next((tmp_path / "etl-output").glob("*.csv")))
    kept = gs.read_snapshots("GeneralLedger", tmp_path / "snapshots")
    assert list(exported["Date"]) == ["2026-09-30", "2026-10-01", "2026-10-02"]
    assert list(kept["Amount"].dropna()) == [1.5, 9.25]
    assert len(kept) == 3
