"""Delivery row by row: what is pending, what the target answered, and what becomes of the answers."""

import datetime as dt
import itertools
import math
from contextlib import nullcontext
from decimal import Decimal

import pandas as pd
import pyarrow as pa
import pytest
from tests.examples import sampled

from freezeframe.engine.frames.rows import Rows
from freezeframe.errors import (
    BadInput,
    ConflictError,
    InvalidName,
    InvalidOption,
    JobRevoked,
    MissingColumn,
    StreamNotFound,
)
from freezeframe.script.tenants import open_tenant
from freezeframe.storage import MemoryStorage
from freezeframe.store import delivery as delivery_module
from freezeframe.store.diff.delivery_state import settled_in
from freezeframe.store.maintenance import erasure
from freezeframe.store.model.update_options import RequestContext, Update
from freezeframe.store.tenant import with_request

STATE = "Contact.delivery.shop"


@pytest.fixture
def tenant(open_finding, memory):
    """A tenant with three contacts, none of them delivered."""
    tenant = open_finding(memory)
    update(tenant, ("1", "Ann"), ("2", "Bob"), ("3", "Cy"))
    return tenant


def update(tenant, *rows, **options):
    """Update the contacts by rows of id and name."""
    frame = pa.table({"Id": [row[0] for row in rows], "Name": [row[1] for row in rows]})
    return tenant.stream("Contact").update(frame, "Id", **options)


def pending(tenant, stream="Contact", target="shop"):
    """The pending rows: key and change of each."""
    rows = tenant.delivery(target).pending(stream, "arrow")
    return list(zip(rows.column(0).to_pylist(), rows["_change_type"].to_pylist(), strict=True))


def deliver(tenant, *refused, target="shop", ids=None):
    """Send all pending contacts: those of some keys are refused, all others accepted."""
    delivery = tenant.delivery(target)
    rows = delivery.pending("Contact").assign(_error="too long")
    if ids is not None:
        rows["_target_id"] = rows["Id"].map(ids)
    is_refused = rows["Id"].isin(refused)
    delivery.accept("Contact", rows[~is_refused])
    delivery.reject("Contact", rows[is_refused])


def state(tenant, *columns):
    """The kept answers, by key."""
    rows = tenant.stream(STATE).read(as_="arrow").to_pylist()
    return {row["Id"]: tuple(row[f"_{name}"] for name in columns) for row in rows}


def test_pending_rows_are_those_that_the_target_has_not_accepted(tenant):
    """New, changed and deleted rows come with the vocabulary of Spark, and no others."""
    assert pending(tenant) == [("1", "insert"), ("2", "insert"), ("3", "insert")]
    deliver(tenant, ids={"1": "s1", "2": "s2", "3": "s3"})
    assert pending(tenant) == []

    update(tenant, ("1", "Ann"), ("2", "Bo"), ("4", "Di"), mode="full")

    rows = tenant.delivery("shop").pending("Contact", "arrow").to_pylist()
    version = tenant.version
    assert [
        {name: row[name] for name in ("Id", "Name", "_change_type", "_commit_version", "_target_id")}
        for row in rows
    ] == [
        {
            "Id": "2",
            "Name": "Bo",
            "_change_type": "update_postimage",
            "_commit_version": version,
            "_target_id": "s2",
        },
        {"Id": "3", "Name": None, "_change_type": "delete", "_commit_version": version, "_target_id": "s3"},
        {"Id": "4", "Name": "Di", "_change_type": "insert", "_commit_version": version, "_target_id": None},
    ]


def test_a_row_that_the_target_refused_comes_again_when_it_changed_or_on_request(tenant):
    """Until then it is in the report with the target's reason; others are not affected."""
    deliver(tenant, "2", "3")
    assert pending(tenant) == []
    report = tenant.delivery("shop").report("Contact")
    assert (report.accepted, report.rejected) == (1, 2)
    assert [(row.key, row.change, row.error) for row in report.rows] == [
        ({"Id": "2"}, "insert", "too long"),
        ({"Id": "3"}, "insert", "too long"),
    ]

    update(tenant, ("2", "B"))
    assert pending(tenant) == [("2", "insert")]
    delivery = tenant.delivery("shop")
    delivery.reject("Contact", delivery.pending("Contact").assign(_error="too short"))
    update(tenant, ("4", "Di"))
    report = delivery.report("Contact")
    assert (report.rejected, report.pending.inserted) == (2, 1)
    assert [(row.key["Id"], row.error) for row in report.rows] == [("2", "too short"), ("3", "too long")]
    update(tenant, ("2", "BB"), ("1", "Ann"), ("3", "Cy"), mode="full")
    assert pending(tenant) == [("2", "insert")]
    assert tenant.delivery("shop").retry("Contact", ["3", "1"]) == 1
    assert pending(tenant) == [("2", "insert"), ("3", "insert")]
    deliver(tenant, "3")
    assert tenant.delivery("shop").retry("Contact") == 1
    assert pending(tenant) == [("3", "insert")]


def test_a_row_that_changed_back_is_what_the_target_has(tenant):
    """It is not pending, even if the target refused what it was between; nor a refused row that is gone."""
    deliver(tenant)
    update(tenant, ("1", "Anna"), ("4", "Di"))
    deliver(tenant, "1", "4")
    update(tenant, ("1", "Ann"), ("2", "Bob"), ("3", "Cy"), mode="full")

    assert pending(tenant) == []
    assert tenant.delivery("shop").report("Contact").rows == ()


def test_a_row_that_was_accepted_changed_and_then_changed_back_is_sent_again(tenant):
    """The target has what lay between, though the stream is what it was when all was delivered."""
    deliver(tenant)
    for name in ("Anna", "Ann"):
        update(tenant, ("1", name))
        assert pending(tenant) == [("1", "update_postimage")]
        deliver(tenant)
    with tenant.job() as job:
        update(job, ("1", "Anne"))
        deliver(job)
        update(job, ("1", "Ann"))
        assert pending(job) == [("1", "update_postimage")]
    assert pending(tenant) == [("1", "update_postimage")]


def test_what_was_not_answered_stays_pending(tenant):
    """Whatever is delivered beside it, in however many steps."""
    delivery = tenant.delivery("shop")
    rows = delivery.pending("Contact")
    delivery.accept("Contact", rows[rows["Id"] == "1"])
    update(tenant, ("4", "Di"))
    assert pending(tenant) == [("2", "insert"), ("3", "insert"), ("4", "insert")]

    rows = delivery.pending("Contact")
    delivery.accept("Contact", rows[rows["Id"] == "4"])
    update(tenant, ("1", "Anna"))
    assert pending(tenant) == [("1", "update_postimage"), ("2", "insert"), ("3", "insert")]


def test_a_row_that_changed_after_it_was_sent_is_pending(tenant):
    """An answer is of the content that was sent, whoever changed the row meanwhile and whenever it comes."""
    delivery = tenant.delivery("shop")
    sent = delivery.pending("Contact")
    update(tenant, ("1", "Anna"))
    later = delivery.pending("Contact")
    delivery.accept("Contact", later)
    delivery.accept("Contact", sent)

    assert pending(tenant) == [("1", "update_postimage")]


def test_answers_are_committed_with_their_job(tenant):
    """A job that fails afterwards leaves its rows pending; one that ends commits rows and answers at once."""

    def fail():
        with tenant.job() as job:
            update(job, ("1", "Anna"))
            deliver(job)
            assert pending(job) == []
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert pending(tenant) == [("1", "insert"), ("2", "insert"), ("3", "insert")]

    with tenant.job("monday") as job:
        update(job, ("1", "Anna"))
        deliver(job)
    assert pending(tenant) == []
    assert set(job.receipt.streams) == {"Contact", STATE}
    assert [entry.job_id for entry in tenant.history(1)] == ["monday"]


def test_two_jobs_at_once_keep_the_answers_of_both(tenant):
    """Each has answers of other rows; the second commit loses nothing of the first."""
    rows = tenant.delivery("shop").pending("Contact")
    with tenant.job() as first, tenant.job() as second:
        for job, key in ((first, "1"), (second, "2")):
            job.delivery("shop").accept("Contact", rows[rows["Id"] == key])
    assert pending(tenant) == [("3", "insert")]


def test_deliveries_to_two_targets_know_nothing_of_each_other(tenant):
    """What one accepted or refused is pending for the other."""
    deliver(tenant, "2")

    assert pending(tenant, target="crm") == [("1", "insert"), ("2", "insert"), ("3", "insert")]
    deliver(tenant, target="crm")
    assert tenant.delivery("shop").report("Contact").rejected == 1
    assert tenant.deliveries() == (("Contact", "crm"), ("Contact", "shop"))


def test_a_deleted_row_that_was_accepted_and_comes_back_is_new(tenant):
    """The target's id from before names nothing any more; a refused deletion is told with its reason."""
    deliver(tenant, ids={"1": "s1", "2": "s2", "3": "s3"})
    update(tenant, ("2", "Bob"), mode="full", max_delete_ratio=1.0)
    deliver(tenant, "3")
    assert pending(tenant) == []
    (row,) = tenant.delivery("shop").report("Contact").rows
    assert (row.key, row.change, row.target_id, row.error) == ({"Id": "3"}, "delete", "s3", "too long")

    update(tenant, ("1", "Ann"), ("3", "Cy"))
    rows = tenant.delivery("shop").pending("Contact", "arrow").to_pylist()
    assert [(row["Id"], row["_change_type"], row["_target_id"]) for row in rows] == [("1", "insert", None)]


def test_flagged_rows_are_deleted_and_rows_of_the_past_are_not_delivered(tenant):
    """A stream that flags what is deleted, or keeps a history, delivers its current rows."""
    update(tenant, ("1", "Ann"), ("2", "Bob"), mode="full", deletes="flag")
    assert pending(tenant) == [("1", "insert"), ("2", "insert")]
    deliver(tenant)
    update(tenant, ("1", "Ann"), mode="full", deletes="flag")
    assert pending(tenant) == [("2", "delete")]

    past = pa.table({"Id": ["1"], "Name": ["Ann"]})
    tenant.stream("Past").update(past, "Id", history="scd2")
    delivery = tenant.delivery("shop")
    delivery.accept("Past", delivery.pending("Past"))
    tenant.stream("Past").update(pa.table({"Id": ["1"], "Name": ["Anna"]}), "Id", history="scd2")
    assert pending(tenant, "Past") == [("1", "update_postimage")]


def test_a_column_that_comes_or_goes_makes_rows_with_a_value_in_it_pending(tenant):
    """And no others, also where all rows are compared, as after an erasure."""
    deliver(tenant)
    tenant.stream("Contact").update(pa.table({"Id": ["1", "2"], "Age": [7, None]}), "Id")
    assert pending(tenant) == [("1", "update_postimage")]
    deliver(tenant)
    tenant.erase("Contact", ["3"])
    assert pending(tenant) == []
    tenant.stream("Contact").update(pa.table({"Id": pa.array([], pa.string())}), "Id", drop_column="Age")
    assert pending(tenant) == [("1", "update_postimage")]


KEYS = {
    "texts": [["a", "", "ä'\"`.", None]],
    "integers": [[1, -(2**62), None]],
    "floats": [pa.array([0.5, -0.0, math.nan, math.inf, None])],
    "booleans": [[True, False, None]],
    "decimals": [[Decimal("1.10"), Decimal("-2.00")]],
    "dates": [[dt.date(2026, 1, 31), None]],
    "far dates": [pa.array([10**7, -(10**6)], pa.int32()).cast(pa.date32())],
    "times": [[dt.datetime(2026, 1, 31, 5, tzinfo=dt.UTC), None]],
    "local times": [[dt.datetime(2026, 1, 31, 5)]],  # noqa: DTZ001 - a time without a zone
    "bytes": [[b"a", b"\0", None]],
    "two columns": [["a", "a", None], [1, None, 1]],
}


KEYS_BY_LIBRARY = sampled(itertools.product(KEYS, ["arrow", "pandas", "polars"]), every=2)
OFTEN = [("texts", "pandas"), ("two columns", "pandas")]


@pytest.mark.sampled
@pytest.mark.parametrize(("name", "library"), dict.fromkeys([*KEYS_BY_LIBRARY, *OFTEN]))
def test_rows_are_found_by_keys_of_every_type(open_finding, name, library):
    """Answers of each library settle all rows, NaN, both zeros and null among them; changes are found."""
    if (name, library) in {("floats", "pandas"), ("far dates", "pandas"), ("far dates", "polars")}:
        return  # see below; and no dates of theirs
    tenant, columns = open_finding(MemoryStorage()), KEYS[name]
    keys = {f"k.{number} `x`": pa.array(cells) for number, cells in enumerate(columns)}
    rows = pa.table({**keys, "v": pa.array(range(len(columns[0])), pa.int64())})
    stream = tenant.stream("A")
    stream.update(rows, list(keys), null_keys="match")
    delivery = tenant.delivery("shop")

    delivery.accept("A", delivery.pending("A", library))

    assert len(delivery.pending("A", "arrow")) == 0
    changed = rows.set_column(len(keys), "v", pa.array([-1] * len(rows)))
    for part in (changed.slice(0, 1), changed.slice(1)):
        stream.update(part, list(keys), null_keys="match")
        found = delivery.pending("A", library)
        assert [("update_postimage", -1)] * len(part) == [
            (str(kind), int(str(value)))
            for kind, value in zip(found["_change_type"], found["v"], strict=True)
        ]
        delivery.accept("A", found)
    assert len(delivery.pending("A", "arrow")) == 0
    assert len(tenant.stream("A.delivery.shop").read(as_="arrow")) == len(rows)


def test_a_missing_floating_key_of_pandas_is_refused(open_finding, memory):
    """It may be NaN or null; as an Arrow table both are answered."""
    tenant = open_finding(memory)
    rows = pa.table({"k": [math.nan, 1.0], "v": [1, 2]})
    tenant.stream("A").update(rows, "k")
    delivery = tenant.delivery("shop")

    with pytest.raises(BadInput, match="pandas makes of NaN"):
        delivery.accept("A", delivery.pending("A"))

    delivery.accept("A", delivery.pending("A", "arrow"))
    assert len(delivery.pending("A")) == 0


def test_a_change_between_nan_zeros_and_null_is_pending(open_finding, memory):
    """Each differs from the others to the stream, so it does to a delivery."""
    tenant = open_finding(memory)
    values = [0.0, -0.0, math.nan, None, 0.0]
    for number, value in enumerate(values):
        cells = {"v": pa.array([value], pa.float64()), "l": pa.array([[value]], pa.list_(pa.float64()))}
        rows = pa.table({"Id": ["1"], **cells})
        tenant.stream("A").update(rows, "Id", nulls="overwrite")
        delivery = tenant.delivery("shop")
        found = delivery.pending("A", "arrow")
        assert (number, len(found)) == (number, 1)
        delivery.accept("A", found)


def test_a_restored_tenant_says_what_the_target_still_has(tenant):
    """The targets are not restored: what they have and the stream no longer has is pending as deleted."""
    version = tenant.version
    deliver(tenant)
    delivered = tenant.version
    update(tenant, ("1", "Anna"), ("4", "Di"))
    deliver(tenant, ids={"1": "s1", "4": "s4"})

    restored = tenant.restore(version)

    assert restored.deliveries == (STATE,)
    assert pending(tenant) == [("1", "update_postimage"), ("4", "delete")]
    (row,) = tenant.delivery("shop").report("Contact").rows
    assert (row.key, row.target_id, row.is_rejected) == ({"Id": "4"}, "s4", False)
    tenant.restore(delivered, streams=[STATE])  # asked for by its name
    assert pending(tenant) == []


def test_a_reverted_job_leaves_what_its_target_accepted(tenant):
    """What goes back is pending: the target still has what the job sent; by its name the state goes back."""
    deliver(tenant)
    with tenant.job("bad") as job:
        update(job, ("1", "Anna"), ("4", "Di"))
        deliver(job)

    done = tenant.revert(job_id="bad")

    assert ("kept", "changed") == (done.streams[STATE].fate, done.streams["Contact"].fate)
    assert pending(tenant) == [("1", "update_postimage"), ("4", "delete")]
    tenant.revert(job_id="bad", only=[STATE])
    assert pending(tenant) == []


def test_a_restoration_that_is_repeated_says_the_same(tenant):
    """A request that is sent again, for its answer was lost, is told of the deliveries as well."""
    version = tenant.version
    deliver(tenant)
    update(tenant, ("4", "Di"))
    asked = with_request(tenant, RequestContext("one", "request-one"))

    first, second = (asked.restore(version) for _ in range(2))

    assert (first.deliveries, second.deliveries) == ((STATE,), (STATE,))
    assert first == second
    assert asked.restore(version, streams=["Contact"], files=[]).tenant_version == first.tenant_version


def test_an_erased_person_leaves_the_state_of_each_delivery(tenant):
    """In the same commit, from all versions; the result says which deliveries had the rows."""
    deliver(tenant)
    deliver(tenant, target="crm")

    erased = tenant.erase("Contact", ["2"])

    assert dict(erased.deliveries) == {"Contact.delivery.crm": 1, STATE: 1}
    assert erased.left.elsewhere == ()
    assert set(state(tenant, "status")) == {"1", "3"}
    assert pending(tenant) == []


@pytest.mark.parametrize("is_sent_before", [False, True])
def test_an_answer_does_not_keep_an_erased_row_again(tenant, is_sent_before):
    """It is refused, and the rows that are still pending can be answered; so can a deletion."""
    delivery = tenant.delivery("shop")
    if is_sent_before:
        deliver(tenant)
        update(tenant, ("1", "A"), ("2", "B"), mode="full")
    sent = delivery.pending("Contact")
    tenant.erase("Contact", ["2"])

    for answer in (delivery.accept, delivery.reject):
        with pytest.raises(ConflictError, match="1 answered rows of 'Contact' are gone"):
            answer("Contact", sent.assign(_error="no"))
    assert ("2" in state(tenant, "status")) is False if is_sent_before else STATE not in tenant.streams()

    delivery.accept("Contact", sent[sent["Id"] != "2"])
    assert set(state(tenant, "status")) == {"1", "3"}
    assert pending(tenant) == []


@pytest.mark.parametrize("is_cut", [False, True])
def test_a_retry_beside_an_erasure_does_not_keep_the_row_again(
    tenant, open_finding, memory, monkeypatch, is_cut
):
    """The erasure ends it, though it began before anything was staged, and also if it was cut off."""
    deliver(tenant, "2", "3")
    read = delivery_module._rejected_keys

    def read_then_erase(snapshot):
        found = read(snapshot)
        with monkeypatch.context() as cut, pytest.raises(KeyError) if is_cut else nullcontext():
            if is_cut:
                cut.setattr(erasure, "purge", lambda _: {}["cut off"])
            open_finding(memory).erase("Contact", ["2"])
        return found

    monkeypatch.setattr(delivery_module, "_rejected_keys", read_then_erase)
    with pytest.raises(JobRevoked if is_cut else ConflictError):
        tenant.delivery("shop").retry("Contact")
    assert set(state(tenant, "status")) == {"1", "3"}


def test_the_state_has_no_value_of_a_row_but_its_key(tenant):
    """It has the target's ids and hashes, the key and the reasons."""
    deliver(tenant, "2", ids={"1": 17, "2": None, "3": 5})

    assert state(tenant, "status", "target_id", "error") == {
        "1": ("accepted", "17", ""),
        "2": ("rejected", None, "too long"),
        "3": ("accepted", "5", ""),
    }
    assert tenant.stream(STATE).columns == [
        *("Id", "_status", "_target_id", "_error", "_row_hash", "_accepted_hash"),
        *("_commit_version", "_answered_at"),
    ]


def test_a_dropped_stream_is_reported_and_not_taken_for_deleted_rows(tenant):
    """Nobody deletes all rows of a target by accident; the report lists what it still has."""
    deliver(tenant)
    tenant.drop_stream("Contact")

    with pytest.raises(StreamNotFound):
        tenant.delivery("shop").pending("Contact")
    report = tenant.delivery("shop").report("Contact")
    assert (report.accepted, report.pending.deleted, len(report.rows)) == (3, 3, 3)

    update(tenant, ("1", "Ann"), ("2", "B"))
    assert pending(tenant) == [("2", "update_postimage"), ("3", "delete")]


def test_a_deleted_old_version_makes_no_row_pending(tenant):
    """Where retention deleted what was settled, all rows are compared."""
    deliver(tenant)
    update(tenant, ("1", "Anna"))
    deliver(tenant)
    tenant.set_retention(keep_versions=1)
    update(tenant, ("2", "B"))
    tenant.gc()
    tenant.gc()
    assert pending(tenant) == [("2", "update_postimage")]


def test_another_table_that_is_adopted_under_the_name_is_sent_whole(tenant, open_finding, memory):
    """What was settled of the table before says nothing about its rows."""
    deliver(tenant)
    other = open_finding(elsewhere := MemoryStorage())
    for name in "ABCD":
        update(other, ("1", "Ann"), ("9", name))
    other.stream("Contact").release()
    update(tenant, ("1", "Ann"), ("4", "Di"))
    deliver(tenant)
    pending(tenant)
    tenant.stream("Contact").release()
    for file in [f"Contact.snapshot/{item.name}" for item in memory.list_below("Contact.snapshot")]:
        memory.delete(file)
    for item in elsewhere.list_below("Contact.snapshot"):
        file = f"Contact.snapshot/{item.name}"
        memory.put_if_absent(file, elsewhere.read(file))
    tenant.adopt("Contact")

    sent = [("2", "delete"), ("3", "delete"), ("4", "delete"), ("9", "insert")]
    assert sent == pending(open_finding(memory)) == pending(tenant)

    deliver(open_finding(memory))
    assert [] == pending(tenant) == pending(open_finding(memory))


def test_a_note_of_an_earlier_release_is_none(tenant):
    """It names versions without the ids of their tables, so all rows are compared."""
    deliver(tenant)
    stream = tenant.stream(STATE)
    note = Update(key=("Id",), notes=(("delivery", "[0, 0]"),))
    stream.apply(Rows(stream.read(as_="arrow").slice(0, 0)), note)
    assert settled_in(stream._snapshot()) is None
    update(tenant, ("2", "Bo"))
    assert pending(tenant) == [("2", "update_postimage")]


@pytest.mark.parametrize(
    ("change", "error", "said"),
    [
        (lambda rows: rows.drop(columns="_row_hash"), MissingColumn, "'_row_hash'"),
        (lambda rows: rows.drop(columns="Id"), MissingColumn, "'Id'"),
        (lambda rows: rows.assign(_change_type="upsert"), BadInput, "_change_type"),
        (lambda rows: rows.assign(_row_hash=None), BadInput, "_row_hash"),
        (lambda rows: rows.assign(Id=[[1], [2], [3]]), BadInput, "'Id'"),
        (lambda rows: rows.assign(_commit_version="x"), BadInput, "'_commit_version'"),
        (lambda rows: pd.concat([rows, rows]), BadInput, "1"),
        (lambda rows: rows.assign(_error=None), BadInput, "no reason"),
    ],
)
def test_answers_that_cannot_be_kept_are_refused(tenant, change, error, said):
    """Nothing is written: a column that is missing, a value that pending did not give, a row twice."""
    rows = change(tenant.delivery("shop").pending("Contact").assign(_error="no"))

    with pytest.raises(error, match=said):
        tenant.delivery("shop").reject("Contact", rows)

    assert STATE not in tenant


def test_streams_whose_rows_have_no_name_are_refused(tenant):
    """Without a key, with a column of the answers, and under a state that is another stream."""
    rows = pa.table({"Id": ["1"], "_error": ["x"]})
    tenant.stream("A").update(rows, override=True)
    tenant.stream("B").update(rows, "Id")
    tenant.stream("C").update(rows.select(["Id"]), "Id")
    tenant.stream("C.delivery.shop").update(rows.select(["Id"]), "Id")

    delivery = tenant.delivery("shop")
    for stream, said in (("A", "no key"), ("B", "'_error' of its own"), ("C", "no state of a delivery")):
        with pytest.raises(InvalidOption, match=said):
            delivery.pending(stream)
    for name in ("a.b", "", "a/b"):
        with pytest.raises(InvalidName):
            tenant.delivery(name)
    deliver(tenant)
    with pytest.raises(InvalidName, match="only by case"):
        tenant.delivery("Shop").pending("Contact")
    tenant.drop_stream(STATE)
    assert tenant.deliveries() == ()


def test_a_stream_whose_key_changed_is_refused_before_anything_is_sent(tenant):
    """Its rows cannot be matched with those that were delivered; without the state all are pending."""
    deliver(tenant)
    tenant.stream("Contact").update(pa.table({"Name": ["Ann"]}), "Name", override=True)

    with pytest.raises(InvalidOption, match="by the key that the stream has now"):
        tenant.delivery("shop").pending("Contact")

    assert dict(tenant.erase("Contact", ["Bob"]).deliveries) == {STATE: 0}
    tenant.drop_stream(STATE)
    assert pending(tenant) == [("Ann", "insert")]


def test_a_key_that_became_text_is_still_known(open_finding, memory):
    """The numbers of before are the texts of now; answers make text of them in the state as well."""
    tenant = open_finding(memory)
    tenant.stream("Contact").update(pa.table({"Id": [7, 8], "Name": ["a", "b"]}), "Id")
    deliver(tenant)
    tenant.stream("Contact").retype("Id", "string")
    assert pending(tenant) == []

    update(tenant, ("7", "A"), ("x", "X"))
    assert pending(tenant) == [("7", "update_postimage"), ("x", "insert")]
    deliver(tenant)
    assert pending(tenant) == []
    assert set(state(tenant, "status")) == {"7", "8", "x"}


@pytest.mark.spark
def test_spark_frames_are_given_and_taken(tmp_path):
    """Pending rows come as a Spark frame, and an answer may be one, with the target's ids as numbers."""
    from pyspark.sql import functions as sf

    tenant = open_tenant(tmp_path / "snapshots")
    update(tenant, ("1", "Ann"), ("2", "Bob"))
    delivery = tenant.delivery("shop")

    rows = delivery.pending("Contact", as_="spark")
    delivery.accept("Contact", rows.withColumn("_target_id", sf.col("Id").cast("long") + 10))

    assert [("1", "insert"), ("2", "insert")] == [(row.Id, row["_change_type"]) for row in rows.collect()]
    assert state(tenant, "target_id") == {"1": ("11",), "2": ("12",)}
    assert delivery.pending("Contact", as_="spark").count() == 0
