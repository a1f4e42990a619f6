"""Tables of other Delta projects: our log must answer what Delta's own Spark reader answered."""

import json
import os
import shutil
from pathlib import Path

import pytest

from freezeframe.cli.commands.delta import describe
from freezeframe.errors import FreezeframeError
from freezeframe.log import DeltaLog, LogOptions
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
def test_the_snapshot_is_what_spark_says(name):
    """Version, protocol, metadata, segment, files, tombstones and transactions are the oracle's."""
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


@pytest.mark.parametrize("name", READ)
def test_every_version_that_can_be_made_is_made_without_the_newer_files_too(name, tmp_path):
    """Cut off above its oldest version, a table gives that version as time travel does."""
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
