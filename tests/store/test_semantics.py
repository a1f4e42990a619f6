"""Each line of the page "What an update means" has a test; those without one elsewhere are here."""

import datetime as dt
import re
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from freezeframe.errors import DuplicateKeyError, NullKeyError, SchemaDriftError
from freezeframe.script import get_snapshot, open_tenant, update_snapshot

REPOSITORY = Path(__file__).parent.parent.parent
SNAPSHOTS = "script/test_snapshots.py::"
HERE = "store/test_semantics.py::"
# The first words of each line of the table, and the tests that hold it.
LINES = {
    "new key / known key": (
        f"{SNAPSHOTS}test_new_known_and_unchanged_rows_are_counted",
        "script/test_oracle.py::test_updates_follow_the_rule",
        "script/test_oracle.py::test_nulls_keep_or_overwrite",
    ),
    "column only in the batch": (
        "store/schema/test_schema_evolution.py::test_columns_of_either_side_stay",
        f"{SNAPSHOTS}test_a_frozen_stream_and_drift_as_text",
        "store/model/test_receipt.py::test_rows_without_a_key_are_counted_as_a_multiset",
    ),
    "duplicate keys in the batch": (
        f"{SNAPSHOTS}test_the_last_of_equal_keys_wins",
        f"{HERE}test_repeated_keys_are_an_error_where_asked",
        f"{HERE}test_a_spark_frame_needs_an_order_for_rows_that_differ",
    ),
    "composite key": ("script/test_oracle.py::test_updates_follow_the_rule",),
    "null in a key": (f"{HERE}test_a_null_in_a_key_is_refused_matched_or_dropped",),
    '"007"': (f"{HERE}test_values_stay_exactly_as_they_came",),
    "key type differs": (f"{HERE}test_a_key_of_another_type_is_refused",),
    "a key of whole numbers": (
        "store/test_key_widening.py::test_a_later_key_that_is_no_number_makes_the_key_text",
        "store/test_key_widening.py::test_what_may_be_meant_as_a_number_is_refused",
    ),
    "int to float": (
        "store/schema/test_schema_evolution.py::test_values_that_fit_are_taken",
        "store/schema/test_schema_evolution.py::test_values_that_do_not_fit_are_refused",
        f"{SNAPSHOTS}test_a_wider_type_widens_the_stored_one",
    ),
    "NaN": (f"{HERE}test_whatever_pandas_misses_is_null",),
    "text that is not UTF-8": (
        "engine/frames/test_valid_text.py::test_an_update_is_refused_before_anything_is_written",
        "engine/frames/test_valid_text.py::test_a_spark_frame_is_refused",
        "store/maintenance/test_repair.py::test_a_table_with_text_that_is_no_utf8_is_not_adopted",
    ),
    "Parquet that Spark 2": (
        "log/primitives/test_foreign_parquet.py::test_every_way_of_reading_gives_the_same_rows",
    ),
    "empty batch": (
        f"{HERE}test_an_empty_batch_makes_no_version",
        "store/test_tenant.py::test_an_empty_frame_with_columns_makes_an_empty_stream",
    ),
    "all-null column": (
        f"{SNAPSHOTS}test_an_undecided_column_takes_its_type_later",
        "store/test_idle_columns.py::test_an_upsert_takes_them_in_the_stored_type",
    ),
    "[], {}": (
        "store/test_untyped_data.py::test_what_is_empty_comes_back_as_it_was",
        "store/test_untyped_data.py::test_the_first_value_decides",
    ),
    "override": (f"{SNAPSHOTS}test_override_replaces_everything", f"{SNAPSHOTS}test_override_counts_by_key"),
    "persist": (
        f"{SNAPSHOTS}test_persist_false_writes_nothing",
        f"{SNAPSHOTS}test_persist_false_on_a_new_stream_leaves_no_folder",
    ),
    "drop_column": (f"{SNAPSHOTS}test_dropped_columns_leave_result_and_table",),
    "sort_columns": ("script/test_oracle.py::test_frames_come_back_in_their_kind",),
    "returned frame": (
        "script/test_oracle.py::test_frames_come_back_in_their_kind",
        f"{SNAPSHOTS}test_spark_frames_come_and_go",
        f"{HERE}test_values_stay_exactly_as_they_came",
    ),
    "the batch changes nothing": (f"{SNAPSHOTS}test_a_batch_that_changes_nothing_makes_no_version",),
    "missing stream": (f"{SNAPSHOTS}test_a_missing_stream_is_none",),
    "stream ../t2/x": (f"{SNAPSHOTS}test_a_stream_cannot_lead_elsewhere",),
    "another key": ("store/test_tenant.py::test_another_key_is_refused",),
    "killed half-way": (
        "script/test_interrupted.py::test_a_killed_update_leaves_old_or_new",
        "script/test_interrupted.py::test_two_jobs_at_once_lose_nothing",
        "store/test_tenant.py::test_ten_writers_of_ten_streams_all_commit",
    ),
}
# What the page says beside the table.
SECTIONS = {
    "full extracts": ("store/test_full_extracts.py::test_more_deletions_than_allowed_are_refused",),
    "histories": ("store/test_row_histories.py::test_histories_follow_the_rule",),
    "windows": (f"{SNAPSHOTS}test_a_window_is_replaced_and_the_rest_kept",),
    "changes": (
        "store/diff/test_row_diff.py::test_changes_lead_from_old_to_new",
        "store/model/test_receipt.py::test_changed_rows_are_those_of_the_update_alone",
    ),
    "time travel": (f"{HERE}test_time_travel_has_three_ways",),
    "streams of a flow": (f"{HERE}test_a_stream_of_a_flow_is_one_of_its_own",),
    "adopted files": ("script/test_exported_file.py::test_our_own_copy_is_not_adopted",),
}
ROWS = pd.DataFrame({"Id": ["1", "2"], "v": [1, 2]})


def test_each_line_of_the_table_has_its_tests():
    """No line without a test, no test that is not there."""
    page = (REPOSITORY / "docs/reference/semantics.md").read_text(encoding="utf-8")
    table = page.partition("| case | the CSV recipe")[2].partition("\n\n")[0]
    cases = [line.split("|")[1].replace("`", "").strip() for line in table.splitlines()[2:]]

    assert {case: [words for words in LINES if case.startswith(words)] for case in cases} == {
        case: [words] for case, words in zip(cases, LINES, strict=True)
    }


def test_the_tests_that_are_named_exist():
    """A test that is renamed is renamed here as well."""
    named = {test for tests in (*LINES.values(), *SECTIONS.values()) for test in tests}
    found = set()
    for path in {name.partition("::")[0] for name in named}:
        text = (REPOSITORY / "tests" / path).read_text(encoding="utf-8")
        found |= {f"{path}::{name}" for name in re.findall(r"^def (test_\w+)", text, re.MULTILINE)}

    assert named - found == set()


@pytest.mark.parametrize("override", [False, True])
def test_repeated_keys_are_an_error_where_asked(open_on, memory, override):
    """`drop_duplicates=False` names up to ten keys; without it the last wins, by override as well."""
    stream = open_on(memory).stream("A")
    twice = pd.DataFrame({"Id": [*range(12), *range(12)], "v": [*range(24)]})

    with pytest.raises(DuplicateKeyError, match=r"12 keys.* 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and more"):
        stream.update(twice, key="Id", override=override, drop_duplicates=False)

    assert stream.version == -1
    stream.update(twice, key="Id", override=override)
    assert list(range(12, 24)) == list(stream.read()["v"])


@pytest.mark.spark
def test_a_spark_frame_needs_an_order_for_rows_that_differ(tmp_path, spark_engine, spark_session):
    """It has none of its own: equal rows collapse, others are an error, unless columns decide."""
    rows = [("1", 1, "a"), ("1", 3, "c"), ("1", None, "d"), ("2", 1, "x"), ("2", 1, "x")]
    frame = spark_session.createDataFrame(rows, "Id string, at int, v string")
    stream = open_tenant(tmp_path).stream("A")

    with pytest.raises(DuplicateKeyError, match="'1'"):
        stream.update(frame, key="Id")
    stream.update(frame, key="Id", order_by="at")

    assert sorted(zip(stream.read()["Id"], stream.read()["v"], strict=True)) == [("1", "c"), ("2", "x")]


@pytest.mark.spark
def test_a_null_in_a_key_is_refused_matched_or_dropped(tmp_path, spark_engine):
    """Rows without a key do not pile up: they are one row, or none and counted."""
    stream = open_tenant(tmp_path).stream("A")
    frame = pd.DataFrame({"Id": ["1", None], "v": [1, 2]})
    with pytest.raises(NullKeyError, match="'Id' is null in 1 of 2 rows"):
        stream.update(frame, key="Id")

    dropped = stream.update(frame, key="Id", null_keys="drop")
    first = stream.update(frame, null_keys="match")
    again = stream.update(frame.assign(v=[1, 3]), null_keys="match")

    assert (dropped.inserted, dropped.null_keys_dropped) == (1, 1)
    assert ((first.inserted, first.updated), (again.inserted, again.updated)) == ((1, 0), (0, 1))
    assert sorted(stream.read()["v"]) == [1, 3]


@pytest.mark.spark
def test_values_stay_exactly_as_they_came(tmp_path, spark_engine):
    """Through a write, a merge and back to pandas, in types that have room for what is missing."""
    row = {
        "Id": "007",
        "na": "NA",
        "empty": "",
        "nan": "nan",
        "big": 9007199254740993,
        "day": dt.date(2026, 2, 28),
        "cost": Decimal("1.10"),
        "ok": True,
        "at": pd.Timestamp("2026-03-29T01:30:00.000007Z"),
        "tags": ["a", None],
    }
    first = update_snapshot(tmp_path, "A", "Id", pd.DataFrame([row]))
    merged = update_snapshot(tmp_path, "A", "Id", pd.DataFrame({"Id": ["7", "NA"], "extra": [1, 2]}))

    kept = merged[merged["Id"] == "007"].drop(columns="extra")
    found = [first.to_dict("records"), kept.to_dict("records")]
    assert [[row]] * 2 == [[{**record, "tags": list(record["tags"])} for record in item] for item in found]
    assert {name: str(merged[name].dtype) for name in ("big", "ok", "empty", "at")} == {
        "big": "Int64",
        "ok": "object",
        "empty": "object",
        "at": "datetime64[us, UTC]",
    }
    assert list(merged["Id"]) == ["007", "7", "NA"]


def test_a_key_of_another_type_is_refused(open_on, memory):
    """ "1" and 1 never become two rows; nothing is written."""
    stream = open_on(memory).stream("A")
    stream.update(ROWS, key="Id")

    with pytest.raises(
        SchemaDriftError, match="key column 'Id' is stored as string, but the batch has int64"
    ):
        stream.update(pd.DataFrame({"Id": [1]}))
    assert stream.version == 0


def test_whatever_pandas_misses_is_null(open_on, memory):
    """The text "nan" stays text; a NaN in Arrow stays NaN."""
    missing = [np.nan, None, pd.NaT, pd.NA, "nan"]
    tenant = open_on(memory)
    tenant.stream("A").update(pd.DataFrame({"Id": range(5), "v": missing}), key="Id")
    tenant.stream("B").update(pa.table({"Id": [1, 2], "x": [float("nan"), None]}), key="Id")

    assert tenant.stream("A").read(as_="arrow")["v"].to_pylist() == [None, None, None, None, "nan"]
    assert (
        tenant.stream("B").read(as_="arrow")["x"].null_count,
        str(tenant.stream("B").read(as_="arrow")["x"][0].as_py()),
    ) == (1, "nan")


@pytest.mark.parametrize(
    "batch", [ROWS.head(0), pd.DataFrame(), pd.DataFrame({"Id": []})], ids=["columns", "none", "no types"]
)
def test_an_empty_batch_makes_no_version(open_on, memory, batch):
    """With or without columns: nothing came, nothing changes."""
    stream = open_on(memory).stream("A")
    stream.update(ROWS, key="Id")

    receipt = stream.update(batch)

    assert (receipt.version, receipt.committed, stream.count()) == (0, False, 2)


def test_time_travel_has_three_ways(tmp_path):
    """By the stream's version, by the tenant's, by a moment; from the script as from the stream."""
    tenant = open_tenant(tmp_path)
    tenant.stream("A").update(ROWS, key="Id")
    tenant.stream("B").update(ROWS.head(1), key="Id")
    _, first = tenant.history()

    assert len(get_snapshot(tmp_path, "A", version=0)) == 2
    assert len(get_snapshot(tmp_path, "A", tenant_version=0)) == 2
    assert len(get_snapshot(tmp_path, "A", as_of=first.timestamp)) == 2
    assert get_snapshot(tmp_path, "B", tenant_version=0) is None


def test_a_stream_of_a_flow_is_one_of_its_own(tmp_path):
    """`Account@qbo` beside `Account`: other rows, another folder, listed by its name."""
    tenant = open_tenant(tmp_path)
    tenant.stream("Account").update(ROWS, key="Id")
    tenant.stream("Account@qbo").update(ROWS.head(1), key="Id")

    assert tenant.streams() == ("Account", "Account@qbo")
    assert (len(get_snapshot(tmp_path, "Account")), len(get_snapshot(tmp_path, "Account@qbo"))) == (2, 1)
    assert (tmp_path / "Account@qbo.snapshot" / "_delta_log").is_dir()
