"""The rows of the tables that other Delta projects use as fixtures, against Spark's own answers."""

import json
import os
import shutil
from pathlib import Path

import pytest

from freezeframe.errors import CorruptData, FreezeframeError, UnsupportedTable
from freezeframe.log.delta_log import DeltaLog
from freezeframe.log.scan import rows

FOLDER = Path(os.environ.get("FREEZEFRAME_CONFORMANCE", "../shared/conformance"))
EXPECTED = FOLDER / "expected.json"

# Upstream's tests gave vector files another prefix and one table an absolute path to fill in.
TEST_PREFIX = "test%dv%prefix-"
PLACEHOLDER = "{{FOLDER_WITH_SPECIAL_CHAR}}"

pytestmark = pytest.mark.skipif(
    not EXPECTED.is_file(), reason=f"conformance data not found at {FOLDER}: skipped"
)


def answers(wanted):
    if not EXPECTED.is_file():
        return []
    found = json.loads(EXPECTED.read_text())
    return [(name, answer) for name, answer in found.items() if not name.startswith("_") and wanted(answer)]


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


def is_shredded(answer):
    return "delta.enableVariantShredding" in answer["metadata"]["configuration"]


@pytest.mark.parametrize(
    ("name", "answer"),
    answers(lambda a: "rows" in a and not a.get("dataAbsent") and not is_shredded(a)),
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_rows_and_columns_are_sparks(name, answer, tmp_path):
    """A full read gives as many rows as Spark counts, under the same column names, valid throughout."""
    snapshot = table(name, tmp_path)
    found = rows.read(snapshot)
    found.validate(full=True)
    assert (answer["rows"], answer["columns"]) == (found.num_rows, found.column_names)
    assert answer["rows"] == rows.count(snapshot)


@pytest.mark.parametrize(
    ("name", "answer"),
    answers(lambda a: "rows" in a and a.get("dataAbsent")),
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_rows_of_absent_files_are_counted_and_refused(name, answer, tmp_path):
    """Where files are missing the log still knows the number of rows; reading them names a missing file."""
    snapshot = table(name, tmp_path)
    assert answer["rows"] == rows.count(snapshot)
    with pytest.raises(CorruptData) as caught:
        rows.read(snapshot)
    assert caught.value.error_code == "FAILED_READ_FILE.FILE_NOT_EXIST"


@pytest.mark.parametrize(
    ("name", "answer"),
    answers(lambda a: "rows" in a and is_shredded(a)),
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_shredded_variants_are_refused_by_name(name, answer, tmp_path):
    """Variants in shredded form are not guessed at: the feature is named, other columns are read."""
    snapshot = table(name, tmp_path)
    assert answer["rows"] == rows.count(snapshot)
    with pytest.raises(UnsupportedTable) as caught:
        rows.read(snapshot)
    assert caught.value.details["features"] == ["variantShredding"]
    if "i" in answer["columns"]:
        assert answer["rows"] == rows.read(snapshot, ["i"]).num_rows


@pytest.mark.parametrize(
    ("name", "answer"),
    answers(lambda a: "readError" in a),
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_rows_that_spark_refuses_are_refused(name, answer, tmp_path):
    """Where Spark's read fails, ours fails with the same error class."""
    with pytest.raises(FreezeframeError) as caught:
        rows.read(table(name, tmp_path))
    assert answer["readError"]["error"] == caught.value.error_code
