"""Tables of other Delta projects: our log must answer what Delta's own Spark reader answered."""

import json
import os
import shutil
from pathlib import Path

import pytest

from freezeframe.cli.commands.delta import describe
from freezeframe.errors import CorruptData, FreezeframeError, UnsupportedTable
from freezeframe.log import DeltaLog, LogOptions
from freezeframe.log.scan import rows
from freezeframe.storage import LocalStorage

FOLDER = Path(os.environ.get("FREEZEFRAME_CONFORMANCE", ""))
EXPECTED_FILE = FOLDER / "expected.json"
PRESENT = bool(os.environ.get("FREEZEFRAME_CONFORMANCE")) and EXPECTED_FILE.is_file()
EXPECTED = json.loads(EXPECTED_FILE.read_text()) if PRESENT else {}
TABLES = sorted(name for name in EXPECTED if not name.startswith("_"))
REFUSED = [name for name in TABLES if "error" in EXPECTED[name]]
READ = [name for name in TABLES if "error" not in EXPECTED[name] and EXPECTED[name]["version"] >= 0]

pytestmark = pytest.mark.skipif(
    not PRESENT, reason=f"conformance data not found at {FOLDER}: skipped (set FREEZEFRAME_CONFORMANCE)"
)


def open_table(name):
    return DeltaLog(LocalStorage(FOLDER / "tables" / name), options=LogOptions(sleep=lambda _: None)).update()


def features(protocol, name):
    return sorted(set(protocol.get(name) or ()))


def renamed(record, **names):
    return {names.get(name, name): value for name, value in record.items()}


def _place(file):
    return file["path"], file["deletion_vector"] or ""


@pytest.mark.parametrize("name", READ)
def test_the_snapshot_is_what_spark_says(name, tmp_path):
    """Version, protocol, metadata, segment, files, tombstones and transactions are the oracle's.

    Cut off above its oldest version, a table gives that version as time travel does.
    """
    expected, actual = EXPECTED[name], describe(open_table(name))
    assert expected["version"] == actual["version"]
    for key, ours in (("minReaderVersion", "min_reader_version"), ("minWriterVersion", "min_writer_version")):
        assert expected["protocol"][key] == actual["protocol"][ours]
    for key, ours in (("readerFeatures", "reader_features"), ("writerFeatures", "writer_features")):
        assert features(expected["protocol"], key) == features(actual["protocol"], ours)
    assert renamed(expected["metadata"], partitionColumns="partition_columns") == actual["metadata"]
    assert renamed(expected["segment"], checkpointVersion="checkpoint_version") == actual["segment"]
    files = [
        renamed(file, partitionValues="partition_values", dv="deletion_vector") for file in expected["files"]
    ]
    assert sorted(files, key=_place) == actual["files"]
    assert expected["numTombstones"] == actual["tombstones"]
    assert expected["transactions"] == actual["transactions"]

    log = DeltaLog(LocalStorage(FOLDER / "tables" / name))
    version = log.earliest_version()
    travelled = describe(log.snapshot_at(version))
    copy = tmp_path / "table" / "_delta_log"
    shutil.copytree(FOLDER / "tables" / name / "_delta_log", copy)
    copy.chmod(0o755)
    for file in copy.iterdir():
        if file.name == "_last_checkpoint" or (file.name[:20].isdigit() and int(file.name[:20]) > version):
            file.unlink()
    cut = describe(DeltaLog(LocalStorage(tmp_path / "table")).current_snapshot)
    assert travelled["files"] == cut["files"]
    assert travelled["metadata"] == cut["metadata"]
    assert version == cut["version"]


@pytest.mark.parametrize("name", REFUSED)
def test_what_spark_refuses_is_refused_with_its_error_class(name):
    """A table that Delta does not load is not loaded, and the error is Delta's class."""
    with pytest.raises(FreezeframeError) as caught:
        open_table(name)
    assert EXPECTED[name]["error"] == caught.value.error_code


def test_b002_a_log_without_commit_and_checkpoint_is_version_minus_one():
    """A log folder with neither commits nor checkpoints is an empty table, as in Spark."""
    empty = [name for name in TABLES if EXPECTED[name].get("version") == -1]
    assert [{"version": -1}] * len(empty) == [describe(open_table(name)) for name in empty]
    assert empty


# Upstream's tests gave vector files another prefix and one table an absolute path to fill in.
TEST_PREFIX = "test%dv%prefix-"
PLACEHOLDER = "{{FOLDER_WITH_SPECIAL_CHAR}}"


def table(name, tmp_path):
    """A copy of the table with what upstream's tests would have put in place."""
    copy = tmp_path / "table"
    shutil.copytree(FOLDER / "tables" / name, copy)
    for path in [*copy.rglob(f"{TEST_PREFIX}*.bin")]:
        path.rename(path.with_name(path.name.removeprefix(TEST_PREFIX)))
    folder = str(copy / "folder&with%special char").replace("%", "%25").replace(" ", "%20")
    for path in (copy / "_delta_log").glob("*.json"):
        text = path.read_text()
        if PLACEHOLDER in text:
            path.write_text(text.replace(PLACEHOLDER, folder).replace(TEST_PREFIX.replace("%", "%25"), ""))
    return DeltaLog.for_table(copy).update()


def by_answer(wanted):
    """Parametrize a test with the tables whose answers are wanted."""
    tables = [pytest.param(name, EXPECTED[name], id=name) for name in TABLES if wanted(EXPECTED[name])]
    return pytest.mark.parametrize(("name", "answer"), tables)


def is_shredded(answer):
    return "delta.enableVariantShredding" in answer["metadata"]["configuration"]


@by_answer(lambda a: "rows" in a and not a.get("dataAbsent") and not is_shredded(a))
def test_rows_and_columns_are_sparks(name, answer, tmp_path):
    """A full read gives as many rows as Spark counts, under the same column names, valid throughout."""
    snapshot = table(name, tmp_path)
    found = rows.read(snapshot)
    found.validate(full=True)
    assert (answer["rows"], answer["columns"]) == (found.num_rows, found.column_names)
    assert answer["rows"] == rows.count(snapshot)


@by_answer(lambda a: "rows" in a and a.get("dataAbsent"))
def test_rows_of_absent_files_are_counted_and_refused(name, answer, tmp_path):
    """Where files are missing the log still knows the number of rows; reading them names a missing file."""
    snapshot = table(name, tmp_path)
    assert answer["rows"] == rows.count(snapshot)
    with pytest.raises(CorruptData) as caught:
        rows.read(snapshot)
    assert caught.value.error_code == "FAILED_READ_FILE.FILE_NOT_EXIST"


@by_answer(lambda a: "rows" in a and is_shredded(a))
def test_shredded_variants_are_refused_by_name(name, answer, tmp_path):
    """Variants in shredded form are not guessed at: the feature is named, other columns are read."""
    snapshot = table(name, tmp_path)
    assert answer["rows"] == rows.count(snapshot)
    with pytest.raises(UnsupportedTable) as caught:
        rows.read(snapshot)
    assert caught.value.details["features"] == ["variantShredding"]
    if "i" in answer["columns"]:
        assert answer["rows"] == rows.read(snapshot, ["i"]).num_rows


@by_answer(lambda a: "readError" in a)
def test_rows_that_spark_refuses_are_refused(name, answer, tmp_path):
    """Where Spark's read fails, ours fails with the same error class."""
    with pytest.raises(FreezeframeError) as caught:
        rows.read(table(name, tmp_path))
    assert answer["readError"]["error"] == caught.value.error_code
