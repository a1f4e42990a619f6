"""What a tap's run makes of a tenant: one version with all streams and the state, or nothing."""

import json

import pytest
from tests.singer.taps import activate, record, run, schema, state

import freezeframe
from freezeframe.errors import (
    InvalidOption,
    SchemaDriftError,
    TenantNotFound,
    TooManyDeletions,
    UnreadableInput,
)

TEXT = {"type": ["null", "string"]}


def tenant(root):
    return freezeframe.open(root).tenant("acme")


def ids(root, stream="Account"):
    return sorted(tenant(root).stream(stream).read(as_="arrow")["Id"].to_pylist())


def test_all_streams_and_the_state_are_one_version(tmp_path):
    """Two streams and the last STATE of a run appear together, as the tenant's first version."""
    receipt, told = run(
        tmp_path,
        schema(Name=TEXT),
        record(Id="007", Name="Ada"),
        state({"Account": 1}),
        schema("Invoice", Total={"type": "number"}),
        record("Invoice", Id="1", Total=90.5),
        record(Id="8", Name=None),
        state({"Account": 2, "Invoice": 1}),
    )

    found = tenant(tmp_path)
    assert (receipt.tenant_version, found.version, found.streams()) == (0, 0, ("Account", "Invoice"))
    assert {"Account": 2, "Invoice": 1} == found.files.read_json("singer/state.json") == json.loads(told)
    assert found.stream("Account").read(as_="arrow").to_pylist() == [
        {"Id": "007", "Name": "Ada"},
        {"Id": "8", "Name": None},
    ]


def test_a_run_that_changes_nothing_makes_no_version(tmp_path):
    """The same output again leaves the tenant as it is, and the state is told again."""
    messages = [schema(), record(Id="1"), state({"at": 1})]
    run(tmp_path, *messages)
    receipt, told = run(tmp_path, *messages)
    assert (receipt.tenant_version, receipt.committed, told) == (0, False, '{"at": 1}')


def test_rows_beyond_a_batch_are_one_update_in_their_order(tmp_path):
    """Of rows that share a key the last one counts, wherever batches and schemas were cut."""
    rows = [record(Id=str(number % 7), Name=f"{number}") for number in range(20)]
    again = schema(Name=TEXT, City=TEXT)
    receipt, _ = run(
        tmp_path, schema(Name=TEXT), *rows, again, record(Id="3", Name="new", City="Rome"), batch_size_rows=3
    )
    kept = {row["Id"]: row for row in tenant(tmp_path).stream("Account").read(as_="arrow").to_pylist()}
    assert (receipt.tenant_version, receipt.streams["Account"].inserted) == (0, 7)
    assert kept["3"] == {"Id": "3", "Name": "new", "City": "Rome"}
    assert kept["5"] == {"Id": "5", "Name": "19", "City": None}


def test_batches_are_bounded_by_bytes_too(tmp_path):
    """Records larger than `batch_size_bytes` go to the file one by one."""
    text = "x" * 100
    run(
        tmp_path,
        schema(Name=TEXT),
        *(record(Id=str(item), Name=text) for item in range(3)),
        batch_size_bytes=50,
    )
    assert [text] * 3 == tenant(tmp_path).stream("Account").read(as_="arrow")["Name"].to_pylist()


@pytest.mark.parametrize(("nulls", "expected"), [("overwrite", None), ("keep", "Ada")])
def test_a_null_replaces_the_stored_value_unless_nulls_are_kept(tmp_path, nulls, expected):
    """A record is a whole row by default."""
    run(tmp_path, schema(Name=TEXT), record(Id="1", Name="Ada"))
    run(tmp_path, schema(Name=TEXT), record(Id="1", Name=None), nulls=nulls)
    assert tenant(tmp_path).stream("Account").read(as_="arrow")["Name"].to_pylist() == [expected]


def test_a_stream_without_records_is_made_empty(tmp_path):
    """A SCHEMA alone makes a stream with its columns."""
    run(tmp_path, schema(Born={"type": ["null", "string"], "format": "date"}))
    assert tenant(tmp_path).stream("Account").schema.names == ["Id", "Born"]


def test_a_failed_run_commits_nothing(tmp_path):
    """One stream that does not fit keeps all others, the state and the tenant's version as they were."""
    run(tmp_path, schema("Invoice", Total={"type": "integer"}), record("Invoice", Id="1", Total=1), state(1))
    with pytest.raises(SchemaDriftError):
        run(
            tmp_path,
            schema(),
            record(Id="1"),
            schema("Invoice", Total=TEXT),
            record("Invoice", Id="1", Total="many"),
            state(2),
        )

    found = tenant(tmp_path)
    assert (
        found.version,
        found.streams(),
        found.files.read_json("singer/state.json"),
    ) == (0, ("Invoice",), 1)


def test_a_bad_line_leaves_no_tenant(tmp_path):
    """Nothing is made, not even the tenant, before the whole output has been read."""
    with pytest.raises(InvalidOption, match="no key"):
        run(tmp_path, schema(key=()), record(Id="1"), create_tenant=True)
    with pytest.raises(TenantNotFound):
        run(tmp_path / "other", schema(), record(Id="1"), create_tenant=False)


def test_a_new_version_of_the_source_removes_rows_that_are_gone(tmp_path):
    """ACTIVATE_VERSION of a version that is not loaded: the records of it are all rows."""
    run(tmp_path, schema(), *(record(Id=item, version=1) for item in "1234"), activate(1))
    receipt, _ = run(
        tmp_path,
        schema(),
        record(Id="9", version=1),
        *(record(Id=item, version=2) for item in "235"),
        activate(2),
    )
    assert ids(tmp_path) == ["2", "3", "5"]
    assert (receipt.streams["Account"].inserted, receipt.streams["Account"].deleted) == (1, 2)


def test_the_version_that_is_loaded_already_removes_nothing(tmp_path):
    """Taps activate the version of their state before an incremental run: what was loaded stays."""
    run(tmp_path, schema(), activate(7), *(record(Id=item, version=7) for item in "123"))
    run(tmp_path, schema(), activate(7), record(Id="4", version=7))
    assert ids(tmp_path) == ["1", "2", "3", "4"]


def test_an_unfinished_load_removes_nothing(tmp_path):
    """Records of a version whose activation comes in a later run are kept by it."""
    run(tmp_path, schema(), record(Id="1", version=3))
    run(tmp_path, schema(), record(Id="2", version=3), activate(3))
    assert ids(tmp_path) == ["1", "2"]


def test_too_many_deletions_are_refused(tmp_path):
    """An activation that would empty the stream commits nothing, unless that is allowed."""
    run(tmp_path, schema(), *(record(Id=item, version=1) for item in "123"), activate(1))
    with pytest.raises(TooManyDeletions):
        run(tmp_path, schema(), activate(2))
    refused = ids(tmp_path)
    run(tmp_path, schema(), activate(2), max_delete_ratio=1.0)
    assert (refused, ids(tmp_path)) == (["1", "2", "3"], [])


def test_a_stream_without_a_key_is_replaced_where_that_is_asked_for(tmp_path):
    """`overwrite` makes the rows of the run the content, and refuses none at all."""
    ledger = schema("Ledger", key=(), Line=TEXT)
    run(tmp_path, ledger, *(record("Ledger", Id=item, Line="a") for item in "11"), load_method="overwrite")
    run(tmp_path, ledger, record("Ledger", Id="2", Line="b"), load_method="overwrite")
    with pytest.raises(TooManyDeletions, match="would become empty"):
        run(tmp_path, ledger, load_method="overwrite")
    assert ids(tmp_path, "Ledger") == ["2"]


def test_a_foreign_file_of_versions_is_refused(tmp_path):
    """What somebody else wrote under the target's name is not taken for its own."""
    run(tmp_path, schema(), record(Id="1"))
    tenant(tmp_path).files.write_text("singer/table-versions.json", "[]")
    with pytest.raises(UnreadableInput, match=r"table-versions\.json"):
        run(tmp_path, schema(), record(Id="2"))
    assert ids(tmp_path) == ["1"]


def test_a_key_does_not_change_in_the_middle_of_a_run(tmp_path):
    """Rows that are two under the first key are not made one; before the first record the key may change."""
    tables = {"A": TEXT, "B": TEXT}
    rows = [record(Id="1", A="a", B="x"), record(Id="2", A="b", B="x")]
    with pytest.raises(InvalidOption, match="cannot change its key during a run"):
        run(tmp_path, schema(**tables), *rows, schema(key=("B",), **tables))
    run(tmp_path, schema(key=("B",), **tables), schema(**tables), *rows, schema(**tables))
    assert ids(tmp_path) == ["1", "2"]


def test_texts_and_numbers_are_not_one_key(tmp_path):
    """Where a key may be of both types, a run that has both is refused."""
    both = {"type": ["string", "integer"]}
    with pytest.raises(UnreadableInput, match="Line 3"):
        run(tmp_path, schema(Id=both), record(Id="1"), record(Id=1))
    run(tmp_path, schema(Id=both), record(Id=1), record(Id=2))
    assert ids(tmp_path) == ["1", "2"]


def test_a_name_that_a_stream_cannot_have_is_changed(tmp_path):
    """Its marks become `_`; two streams that would become one are refused."""
    run(tmp_path, schema("public:a/b"), record("public:a/b", Id="1"))
    with pytest.raises(InvalidOption, match="both be stored as 'a_b'"):
        run(tmp_path, schema("a:b"), schema("a_b"))
    assert tenant(tmp_path).streams() == ("public_a_b",)


def test_a_column_may_become_text(tmp_path):
    """`on_drift` is a setting; without it the run is refused."""
    run(tmp_path, schema(Value={"type": "integer"}), record(Id="1", Value=1))
    text = [schema(Value=TEXT), record(Id="2", Value="two")]
    with pytest.raises(SchemaDriftError, match="Value"):
        run(tmp_path, *text)
    run(tmp_path, *text, on_drift="string")
    assert sorted(tenant(tmp_path).stream("Account").read(as_="arrow")["Value"].to_pylist()) == ["1", "two"]


@pytest.mark.parametrize(
    ("hard_delete", "expected"),
    [pytest.param(True, ["2"], marks=pytest.mark.spark), (None, ["1", "2"]), (False, ["1", "2"])],
)
def test_rows_that_were_deleted_at_the_source_are_removed_if_asked_for(tmp_path, hard_delete, expected):
    """`hard_delete` removes rows with `_sdc_deleted_at`; else they keep the mark."""
    columns = {"_sdc_deleted_at": {"type": ["null", "string"], "format": "date-time"}}
    run(tmp_path, schema(**columns), record(Id="1"), record(Id="2"))
    run(
        tmp_path,
        schema(**columns),
        record(Id="1", _sdc_deleted_at="2026-10-01T00:00:00Z"),
        hard_delete=hard_delete,
    )
    assert ids(tmp_path) == expected


def test_rows_without_a_key_are_appended_once(tmp_path):
    """`keyless` set to `append` keeps the rows of every run; a run with an id that was there adds nothing."""
    first = [schema("Log", key=(), Line=TEXT), *(record("Log", Id="1", Line="a") for _ in range(2))]
    second = [schema("Log", key=(), Line=TEXT), record("Log", Id="1", Line="a")]
    for run_id, messages in (("r1", first), ("r1", first), (None, second), (None, second)):
        run(tmp_path, *messages, keyless="append", run_id=run_id)
    rows = tenant(tmp_path).stream("Log").read(as_="arrow")
    assert (len(rows), len(set(rows["_sdc_run_id"].to_pylist()))) == (4, 3)
    assert rows["_sdc_row"].to_pylist().count(1) == 3
