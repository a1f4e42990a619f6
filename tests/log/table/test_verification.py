"""Looking for damage: what is sound gives no finding, what is damaged is named."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.log.tables import TableBuilder

from freezeframe.log.format.actions import Add
from freezeframe.log.primitives.paths import checkpoint_name, commit_name
from freezeframe.log.scan.file_statistics import bounded_columns
from freezeframe.log.table.verification import verify_log
from freezeframe.storage import LocalStorage


@pytest.fixture
def table(tmp_path):
    """Eight commits with real data files, a checkpoint, a hint and a checksum."""
    made = TableBuilder(LocalStorage(tmp_path), "t").create()
    for number in range(7):
        path = tmp_path / "t" / f"f{number}.parquet"
        pq.write_table(pa.table({"id": [number]}), path, write_page_checksum=True)
        stats = '{"numRecords":1}'
        made.commit(Add(path.name, path.stat().st_size, {"p": "a"}, 1, stats=stats))
    made.checkpoint(5).hint(5)
    return made.checksum(7, numFiles=7)


def findings(table):
    found = verify_log(table.storage, table.folder) or table.log().maintenance.verify()
    return [(finding.file.rsplit("/", 1)[-1], finding.code) for finding in found]


@pytest.mark.parametrize(
    ("damage", "expected"),
    [
        (lambda table: table, []),
        (
            lambda table: table.raw(commit_name(2), b'{"add":{"pa'),  # below the checkpoint
            [(commit_name(2), "DELTA_LOG_MALFORMED_JSON")],
        ),
        (
            lambda table: table.raw(checkpoint_name(5), b"PAR1"),  # readers go around it
            [(checkpoint_name(5), "CHECKPOINT_DAMAGED")],
        ),
        (lambda table: table.raw("_last_checkpoint", b"{"), [("_last_checkpoint", "HINT_GARBLED")]),
        (
            lambda table: table.checksum(7, numFiles=8),  # its counts are compared with the state
            [(f"{7:020d}.crc", "DELTA_TXN_LOG_FAILED_INTEGRITY")],
        ),
    ],
    ids=["sound", "torn commit", "checkpoint", "hint", "checksum"],
)
def test_each_damaged_file_of_the_log_is_named(table, damage, expected):
    """Also where reading the newest version does not meet it; a sound table has no finding."""
    damage(table)
    assert expected == findings(table)


def test_a_gap_a_stale_hint_and_an_incomplete_checkpoint_are_named(table):
    """Each by its own code."""
    table.delete(checkpoint_name(5)).checkpoint(5, "parts").delete(commit_name(3))
    table.delete(f"{5:020d}.checkpoint.{2:010d}.{2:010d}.parquet")
    found = dict(findings(table))
    assert set(found.values()) == {"DELTA_VERSIONS_NOT_CONTIGUOUS", "CHECKPOINT_INCOMPLETE", "HINT_STALE"}


def test_a_missing_and_a_damaged_data_file_are_both_named(table, tmp_path):
    """The look goes on after the first damage."""
    (tmp_path / "t" / "f1.parquet").unlink()
    path = tmp_path / "t" / "f4.parquet"
    content = bytearray(path.read_bytes())
    content[len(content) // 3] ^= 0xFF
    path.write_bytes(content)
    assert sorted(name for name, _ in findings(table)) == ["f1.parquet", "f4.parquet"]


def test_bounds_that_pass_over_nan_are_told(table, tmp_path):
    """Spark leaves rows out by them; a file whose bounds are right, or that has none, is sound."""
    columns = {"x": [0.1, float("nan")], "s": [{"y": float("nan")}, {"y": 1.0}], "z": [0.1, 0.2]}
    rows = pa.table({"id": [1, 2], **columns})
    for name, bounded in (("old", True), ("new", bounded_columns(rows.schema))):
        path = tmp_path / "t" / f"{name}.parquet"
        pq.write_table(rows, path, write_statistics=bounded, write_page_checksum=True)
        table.commit(Add(path.name, path.stat().st_size, {"p": "a"}, 1, stats='{"numRecords":2}'))

    assert [("old.parquet", "BOUNDS_WITHOUT_NAN")] == findings(table)
    (finding,) = table.log().maintenance.verify()
    assert "NaN in x, s.y:" in finding.problem
