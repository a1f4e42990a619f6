"""What an import would do: told as the job would do it, or said in words that it was not counted."""

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests import given

from freezeframe.errors import InvalidOption, UnreadableInput
from freezeframe.service.exports import export
from freezeframe.service.rows.import_preview import ImportFile, import_preview
from freezeframe.service.rows.streams import Moment
from freezeframe.storage import LocalStorage

STORED = pa.table({"Id": ["1", "2", "3", "4"], "City": ["Bern", "Basel", None, "Chur"], "Age": [1, 2, 3, 4]})
FILE = "Id,City,Age,Note\n1,Bern,1,\n2,Thun,,x\n9,Genf,9,\n"


@pytest.fixture
def tenant(tmp_path):
    """A stream of four rows."""
    tenant = given.tenant(LocalStorage(tmp_path))
    tenant.stream("Account").update(STORED, "Id")
    return tenant


def preview(tenant, text, *, kind="csv", key=(), stream="Account", is_beginning=False, **update):
    content = io.BytesIO(text if isinstance(text, bytes) else text.encode())
    return import_preview(tenant, stream, ImportFile(kind, content, is_beginning), key, update)


def test_an_upsert_is_counted_as_the_job_would(tenant):
    """New, updated and unchanged rows with their cells; an empty cell keeps what is stored."""
    seen = preview(tenant, FILE)
    assert (seen.rows, seen.key, seen.uncounted, seen.problem) == (3, ("Id",), "", None)
    assert (*seen.counts.to_json().values(),) == (1, 1, 1, 0)
    update, insert = seen.examples
    assert (
        update.fate,
        update.changed,
        update.before["City"],
        update.after["City"],
        update.after["Age"],
    ) == ("update", ("City", "Note"), "Basel", "Thun", 2)
    assert (insert.fate, insert.after["Id"]) == ("insert", "9")
    assert (0, STORED.to_pylist()) == (tenant.version, tenant.stream("Account").read(as_="arrow").to_pylist())


def test_a_full_extract_tells_what_it_would_delete(tenant):
    """Rows that the file lacks are counted and shown; to delete more than half is told to be refused."""
    seen = preview(tenant, FILE, mode="full")
    assert (seen.counts.deleted, [example.fate for example in seen.examples[2:]]) == (2, ["delete"] * 2)
    assert [example.before["Id"] for example in seen.examples[2:]] == ["3", "4"]
    assert seen.problem is None
    refused = preview(tenant, "Id,City\n1,Bern\n", mode="full")
    assert (refused.problem.code, refused.counts.deleted) == ("TOO_MANY_DELETIONS", 3)


def test_the_options_of_the_job_count(tenant):
    """Empty cells that overwrite, rows without a key left out, more deletions allowed; contradictions not."""
    assert preview(tenant, "Id,City\n1,\n", nulls="overwrite").counts.updated == 1
    dropped = preview(tenant, "Id,City\n1,Wil\n,Bern\n", null_keys="drop")
    assert (dropped.counts.updated, dropped.counts.inserted, dropped.problem) == (1, 0, None)
    full = preview(tenant, "Id,City\n1,Bern\n", mode="full", max_delete_ratio=1.0)
    assert (full.problem, full.counts.deleted) == (None, 3)
    with pytest.raises(InvalidOption):
        preview(tenant, FILE, deletes="flag")


def test_rows_that_a_full_extract_would_delete_are_found_by_their_keys(tenant):
    """NaN is one key, and so are the zeros of both signs, as for the job."""
    rows = pa.table({"n": [0.0, float("nan"), 2.0], "v": [1, 1, 1]})
    tenant.stream("Floats").update(rows, "n")
    sink = io.BytesIO()
    pq.write_table(rows.slice(0, 2).set_column(0, "n", pa.array([-0.0, float("nan")])), sink)
    seen = preview(
        tenant, sink.getvalue(), kind="parquet", stream="Floats", mode="full", max_delete_ratio=1.0
    )
    assert [("delete", 2.0)] == [(row.fate, row.before["n"]) for row in seen.examples]


def test_what_replaces_the_content_needs_no_key(tenant):
    """A keyless report: rows that go are counted and shown beside those that come."""
    seen = preview(tenant, "Month,Total\n1,7\n", stream="Report", override=True)
    assert (seen.key, seen.problem, seen.counts.inserted) == ((), None, 1)
    over = preview(tenant, "Id,City\n1,Bern\n", override=True)
    assert (over.problem, over.counts.deleted) == (None, 3)
    assert "delete" in {example.fate for example in over.examples}


def test_an_exported_file_has_its_key(tenant):
    """Of Parquet; rows of a stream without a key become a new one."""
    report = tenant.stream("Report")
    report.update(STORED, override=True)
    sent = [b"".join(export(item, "parquet", Moment())) for item in (tenant.stream("Account"), report)]
    seen = [preview(tenant, content, kind="parquet", stream="New") for content in sent]
    assert [(item.key, item.problem, item.counts.inserted) for item in seen] == [
        (("Id",), None, 4),
        ((), None, 4),
    ]


def test_columns_are_told_with_their_types_of_both_sides(tenant):
    """Known, new, of another type, or only in the stream."""
    seen = preview(tenant, "Id,Age,Note\n1,old,x\n")
    told = {
        column.name: (column.fate, column.file_type, column.stream_type, column.is_key)
        for column in seen.columns
    }
    assert told["Age"] == ("other type", "string", "long", False)
    assert told["Note"] == ("new", "string", None, False)
    assert told["City"] == ("not in the file", None, "string", False)
    assert told["Id"][3]
    assert "SCHEMA_DRIFT" in seen.problem.code
    assert seen.counts is None


def test_a_stream_that_is_not_there_yet_gets_all_rows(tenant):
    """The key must be named then."""
    assert preview(tenant, FILE, stream="New").problem is not None
    seen = preview(tenant, FILE, stream="New", key=["Id"])
    assert (seen.counts.inserted, seen.counts.updated, {column.fate for column in seen.columns}) == (
        3,
        0,
        {"new"},
    )
    assert tenant.streams() == ("Account",)


def test_a_key_that_cannot_be_is_told(tenant):
    """It is not in the file, or not the stream's own."""
    assert "no column Id" in preview(tenant, "City\nBern\n").problem.title
    assert "key City" in preview(tenant, FILE, key=["City"]).problem.title


def test_of_a_beginning_the_columns_are_told(tenant):
    """The last line may be cut off, also inside of quotes; rows are not counted, and that is said."""
    seen = preview(tenant, 'Id,City,Age\n1,Bern,1\n2,"Thu\nn', is_beginning=True)
    assert (seen.rows, seen.counts) == (1, None)
    assert "beginning" in seen.uncounted
    for kind in ("parquet", "arrow"):
        with pytest.raises(InvalidOption):
            preview(tenant, b"PAR1", kind=kind, is_beginning=True)


def test_other_kinds_of_files_are_read_too(tenant):
    """Parquet, JSON Lines and Arrow; a file that is damaged is an error with its place."""
    sink = io.BytesIO()
    pq.write_table(STORED.slice(0, 1), sink)
    assert preview(tenant, sink.getvalue(), kind="parquet").counts.unchanged == 1
    assert preview(tenant, '{"Id": "1", "City": "Wil"}\n', kind="jsonl").counts.updated == 1
    for kind in (pa.ipc.new_file, pa.ipc.new_stream):
        sink = io.BytesIO()
        with kind(sink, STORED.schema) as writer:
            writer.write_table(STORED.slice(0, 2))
        assert preview(tenant, sink.getvalue(), kind="arrow").counts.unchanged == 2
    for kind in ("parquet", "arrow"):
        with pytest.raises(UnreadableInput):
            preview(tenant, b"neither of them", kind=kind)


def test_what_only_spark_can_count_is_said(tmp_path):
    """A window of the stream: the job counts, the preview says so; a stream of histories is counted."""
    tenant = given.tenant(LocalStorage(tmp_path))
    tenant.stream("Account").update(STORED, "Id", history="scd2")
    assert (*preview(tenant, FILE).counts.to_json().values(),) == (1, 1, 1, 0)
    seen = preview(tenant, FILE, replace_where="City = 'Bern'")
    assert (seen.counts, seen.problem) == (None, None)
    assert "The job counts them." in seen.uncounted


def test_a_beginning_ends_at_its_last_whole_line(tenant):
    """Quotes say where a line of CSV ends; of JSON Lines every line break does."""
    text = 'Id,City\n1,"a\n""b"\n2,"c\nd'
    assert preview(tenant, text, is_beginning=True).rows == 1
    lines = '{"Id": "1", "City": "\\""}\n{"Id": "2"}\n{"Id'
    assert preview(tenant, lines, kind="jsonl", is_beginning=True).rows == 2
    assert preview(tenant, "Id,City", is_beginning=True).rows == 0
