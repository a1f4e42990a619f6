"""Our reader against the recorded answers of Spark: no Spark is needed, and nothing beside the repository."""

import pyarrow as pa
import pytest
from tests.oracle.answers import FOLDER, load, plain_rows, plain_type, unpack
from tests.oracle.definitions import TABLES

from freezeframe.errors import CorruptLog, FreezeframeError, UnsupportedTable
from freezeframe.log import DeltaLog

ANSWERS = load()
REFUSED = {
    "damaged-gap": CorruptLog,
    "damaged-commit": CorruptLog,
    "newer-reader-feature": UnsupportedTable,
    "newer-reader-version": UnsupportedTable,
}


@pytest.fixture
def table(request, tmp_path):
    """The folder of the table that the test's parameter names."""
    unpack(request.getfixturevalue("name"), tmp_path)
    return tmp_path


def newest(answer):
    """Return the answer for the newest version, or the one for all."""
    return list(answer["versions"].values())[-1] if "versions" in answer else answer


def test_every_table_has_answers_and_the_other_way_round():
    """And they take little room in the repository."""
    assert list(TABLES) == list(ANSWERS)
    assert {*TABLES} == {path.stem for path in FOLDER.glob("*.zip")}
    assert {*REFUSED} == {name for name, answer in ANSWERS.items() if "error" in newest(answer)}
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < 600_000


@pytest.mark.parametrize("name", [name for name in TABLES if name not in REFUSED])
def test_every_version_is_what_spark_reads(name, table):
    """Schema, rows with each value, number of files, operation; a version that Spark cannot read neither."""
    log = DeltaLog.open(table)
    answer = ANSWERS[name]
    assert answer["history"] == sorted(
        [entry.version, entry.commit_info.to_json()["operation"]] for entry in log.history()
    )
    for version, expected in answer["versions"].items():
        if "error" in expected:
            with pytest.raises(FreezeframeError):
                log.snapshot_at(version=int(version)).to_arrow()
            continue
        snapshot = log.snapshot_at(version=int(version))
        assert expected["schema"] == plain_type(snapshot.delta_schema["fields"])
        assert expected["rows"] == plain_rows(snapshot.to_arrow())
        assert expected["files"] == snapshot.count


@pytest.mark.parametrize("name", [name for name in TABLES if "changes" in ANSWERS.get(name, {})])
def test_changes_are_those_that_spark_reads(name, table):
    """Each inserted, deleted and updated row, with its version."""
    changes = DeltaLog.open(table).changes(0).read_all().drop_columns(["_commit_timestamp"])
    assert ANSWERS[name]["changes"] == plain_rows(changes)


@pytest.mark.parametrize("name", REFUSED)
def test_what_spark_refuses_is_refused(name, table):
    """A damaged log is damage, and a feature of the future is named."""
    with pytest.raises(REFUSED[name]):
        pa.table(DeltaLog.open(table).to_arrow())
