"""The work for a stream grows with its columns, and not with their square, at every verb."""

import io
import sys
import time

import pyarrow as pa
import pytest
from tests import given

from freezeframe.script.inputs.transfer import export_stream, import_stream
from freezeframe.service.rows import column_statistics
from freezeframe.service.rows.differences import (
    DifferenceRequest,
    restored_rows,
    row_difference,
    row_history,
    select_rows,
)
from freezeframe.service.rows.import_preview import ImportFile, import_preview
from freezeframe.service.rows.row_previews import Moment, RowsRequest, change_preview, preview
from freezeframe.service.rows.search import SortOrder, Window, sorted_rows
from freezeframe.service.rows.streams import stream_detail
from freezeframe.storage import LocalStorage
from freezeframe.store.model.update_options import Author

RATIO_MAX = 6.5  # of four times the columns: 4 is linear, 16 is quadratic
SECONDS_MIN = 0.05
"""What takes less is not compared: the clock and what is fixed weigh more there."""


def _rows(ids, value, count):
    return pa.table({"id": ids, **{f"c{number}": [value] * len(ids) for number in range(count)}})


def _csv(count):
    names = ",".join(f"c{number}" for number in range(count))
    return f"id,{names}\n2{',x' * count}\n".encode()


def _verbs(folder, count):
    """Every verb that this process does by itself, by name; each goes on from what the ones before left."""
    tenant = given.tenant(LocalStorage(folder))
    stream, out, now = tenant.stream("Wide"), folder / "out", Moment()
    out.mkdir()
    (out / "plain.csv").write_bytes(_csv(count))

    def previewed(name, **options):
        return import_preview(tenant, name, ImportFile("csv", io.BytesIO(_csv(count))), ("id",), options)

    yield "update", lambda: stream.update(_rows(["1", "2"], "a", count), key=["id"])
    yield "override", lambda: stream.update(_rows(["2", "3"], "o", count), key=["id"], override=True)
    for name, options in (
        ("full, flagged", {"mode": "full", "deletes": "flag"}),
        ("scd2", {"history": "scd2"}),
        ("dropped columns", {"drop_column": [f"c{number}" for number in range(count // 2)]}),
    ):
        yield name, lambda n=name, o=options: tenant.stream(n[:4]).update(_rows(["1"], "v", count), "id", **o)
    for kind in ("pandas", "polars", "arrow"):
        yield f"read as {kind}", lambda kind=kind: stream.read(as_=kind)
    yield "read in batches", lambda: list(stream.read_batches())
    yield "changes", lambda: stream.changes(0)
    yield "diff", lambda: tenant.diff(0).to_json()
    yield "history", lambda: list(tenant.history(stream="Wide"))
    yield "row", lambda: stream.row_history("2")
    for kind in ("csv", "parquet", "jsonl"):
        yield f"export {kind}", lambda kind=kind: export_stream(stream, out, kind)
        file = out / f"Wide.snapshot.{kind}"
        yield f"import {kind}", lambda k=kind, f=file: import_stream(tenant.stream(f"In{k}"), f, "id")
    yield "import", lambda: import_stream(tenant.stream("Plain"), out / "plain.csv", "id")
    yield (
        "import, streamed",
        lambda: import_stream(tenant.stream("Streamed"), out / "plain.csv", "id", memory_bytes_max=1),
    )
    yield "import preview", lambda: previewed("New")
    yield "import preview of stored", lambda: previewed("Wide")
    yield "import preview, full", lambda: previewed("Wide", mode="full")
    yield "description", lambda: stream_detail(stream)
    yield "rows", lambda: list(preview(stream, now, RowsRequest()).json_rows())
    yield "rows, filtered", lambda: list(preview(stream, now, RowsRequest(where=("c1 = 'o'",))).json_rows())
    yield "changed rows", lambda: list(change_preview(stream, 0, None).json_rows())
    yield "row difference", lambda: row_difference(tenant, "Wide", 0, None, DifferenceRequest(), None)
    yield "row history", lambda: row_history(tenant, "Wide", "2", None, 100)
    yield (
        "row restoration",
        lambda: restored_rows(
            tenant, select_rows(tenant, "Wide", 0, [{"id": "2"}]), dry_run=True, author=Author()
        ),
    )
    yield (
        "sorted rows",
        lambda: sorted_rows(tenant, "Wide", now, SortOrder("c1"), columns=(), where=(), window=Window(0, 10)),
    )
    # Of all columns they take some seconds at most, and tell which columns they did not read by then.
    told = {"cache": column_statistics.StatisticsCache(), "columns": ("c1", "c2")}
    yield "statistics", lambda: column_statistics.stream_statistics(tenant, "Wide", now, **told)
    yield "known statistics", lambda: column_statistics.logged_statistics(tenant, "Wide", now, ())
    yield "restore", lambda: tenant.restore(0)
    yield "retype", lambda: stream.retype("c1", "string")
    yield "release", stream.release
    yield "adopt", lambda: tenant.adopt("Wide", "id")
    yield "verify", tenant.verify
    yield "erase", lambda: tenant.erase("Wide", ["2"])


def _calls(verb):
    """How many functions are called, of Python and of C."""
    found = 0

    def count(_frame, event, _arg):
        nonlocal found
        found += event in {"call", "c_call"}

    sys.setprofile(count)
    try:
        verb()
    finally:
        sys.setprofile(None)
    return found


def _seconds(verb):
    """The processor's time, in all threads."""
    began = time.process_time()
    verb()
    return time.process_time() - began


def _measured(folder, count, measure):
    folder.mkdir()
    return {name: measure(verb) for name, verb in _verbs(folder, count)}


def _steep(few, many, least):
    ratios = {name: round(many[name] / max(few[name], least), 1) for name in many if many[name] > least}
    return {name: ratio for name, ratio in ratios.items() if ratio > RATIO_MAX}


@pytest.mark.long
def test_four_times_the_columns_are_at_most_about_four_times_the_calls(tmp_path):
    """Counted, so that it is the same on every machine; what is loaded at first use is loaded before."""
    _measured(tmp_path / "first", 10, _seconds)
    few, many = (_measured(tmp_path / str(count), count, _calls) for count in (24, 96))

    assert _steep(few, many, 1) == {}


@pytest.mark.nightly
def test_four_times_the_columns_are_about_four_times_the_work(tmp_path):
    """As many columns as make a lookup in a list, or a pass through all of them for each, dear."""
    _measured(tmp_path / "first", 10, _seconds)
    few, many = (_measured(tmp_path / str(count), count, _seconds) for count in (1_000, 4_000))

    assert _steep(few, many, SECONDS_MIN) == {}
