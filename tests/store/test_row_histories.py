"""Streams that keep their rows' past: what was closed when, and that readers of today do not notice."""

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.examples import examples
from tests.given import counts

from freezeframe.errors import BadInput, InvalidOption, MissingColumn, TooManyDeletions
from freezeframe.script import get_snapshot, open_tenant, update_snapshot
from freezeframe.store.schema.columns import VALID_FROM, VALID_TO

ROWS = pd.DataFrame({"Id": ["1", "2", "3"], "v": ["a", "b", "c"]})


@pytest.fixture
def stream(tmp_path):
    """A stream of three rows, with a history."""
    account = open_tenant(tmp_path).stream("Account")
    account.update(ROWS, key="Id", history="scd2")
    return account


def _history(stream, **options):
    """All rows as (values, from, to), moments as their number in time order; None: it holds now."""
    rows = stream.read(history=True, as_="arrow", **options).to_pylist()
    moments = sorted({row[name] for row in rows for name in (VALID_FROM, VALID_TO)} - {None})
    number = {moment: place for place, moment in enumerate(moments)} | {None: None}
    found = [(number[row.pop(VALID_FROM)], number[row.pop(VALID_TO)], row) for row in rows]
    return sorted(((*row.values(), start, end) for start, end, row in found), key=repr)


def test_changed_rows_are_closed_and_opened(stream):
    """At one moment for the whole commit; unchanged rows are untouched; readers get the rows of now."""
    receipt = stream.update(pd.DataFrame({"Id": ["1", "2", "4"], "v": ["A", "b", "d"]}))

    assert counts(receipt) == (1, 1, 1, 0)
    assert _history(stream) == [
        ("1", "A", 1, None),
        ("1", "a", 0, 1),
        ("2", "b", 0, None),
        ("3", "c", 0, None),
        ("4", "d", 1, None),
    ]
    now = stream.read().sort_values("Id")
    assert (list(now.columns), list(now["v"])) == (["Id", "v"], ["A", "b", "c", "d"])
    assert (stream.count(), stream.schema.names) == (4, ["Id", "v"])
    assert list(receipt.changed_rows()["_change_type"]) == ["update", "insert"]


def test_moments_lie_between_the_commits(stream, tmp_path):
    """In UTC: after the commit before, and not after the one that they are of."""
    stream.update(pd.DataFrame({"Id": ["1"], "v": ["A"]}))

    later, first = open_tenant(tmp_path).history()
    moments = sorted(stream.read(history=True)[VALID_FROM].unique())
    assert moments[0] <= first.timestamp < moments[1] <= later.timestamp
    assert stream.read(history=True, as_="arrow").schema.field(VALID_FROM).type.tz == "UTC"


def test_deleted_rows_are_closed(stream):
    """By a full extract, guarded as any; a key that comes back is a new row after a gap."""
    extract = pd.DataFrame({"Id": ["1", "2"], "v": ["a", "B"]})
    receipt = stream.update(extract, mode="full")
    with pytest.raises(TooManyDeletions, match="delete 2 of 2 rows"):
        stream.update(ROWS.tail(1), mode="full")
    back = stream.update(ROWS.tail(1))

    assert (counts(receipt), counts(back)) == ((0, 1, 1, 1), (1, 0, 0, 0))
    assert _history(stream) == [
        ("1", "a", 0, None),
        ("2", "B", 1, None),
        ("2", "b", 0, 1),
        ("3", "c", 0, 1),
        ("3", "c", 2, None),
    ]
    assert list(receipt.changed_rows()["_change_type"]) == ["update", "delete"]


def test_a_batch_that_changes_nothing_makes_no_version(stream):
    """No row of the past comes of rows that are sent again."""
    stream.update(pd.DataFrame({"Id": ["1"], "v": ["A"]}))

    receipt = stream.update(pd.DataFrame({"Id": ["1", "2"], "v": ["A", "b"]}))

    assert (counts(receipt), receipt.committed) == ((0, 0, 2, 0), False)


def test_a_stream_may_begin_its_history_later(tmp_path):
    """What is there holds since the last commit before; an update without changes is enough to begin."""
    for name, batch in (("A", ROWS.head(0)), ("B", pd.DataFrame({"Id": ["1"], "v": ["x"]}))):
        stream = open_tenant(tmp_path).stream(name)
        stream.update(ROWS, key="Id")
        made = next(iter(open_tenant(tmp_path).history(limit=1))).timestamp

        receipt = stream.update(batch, history="scd2")

        found = stream.read(history=True)
        assert receipt.committed
        assert {made} == set(found.loc[found["v"] != "x", VALID_FROM])
        assert len(batch) == found[VALID_TO].notna().sum() == receipt.updated
        assert 3 == len(stream.read()) == len(stream.read(stream_version=0))


def test_columns_may_come_widen_and_go(stream):
    """Of the past as well: a new column is null there, a dropped one is gone, values stay exact."""
    stream.update(pd.DataFrame({"Id": ["1"], "v": ["A"], "n": [1]}))
    stream.update(pd.DataFrame({"Id": ["1"], "n": [1.5]}))
    stream.update(pd.DataFrame({"Id": ["1"], "n": [1.5]}), drop_column="v")

    assert [row for row in _history(stream) if row[0] == "1"] == [
        ("1", 1.0, 1, 2),
        ("1", 1.5, 2, None),
        ("1", None, 0, 1),
    ]
    assert list(stream.read().columns) == ["Id", "n"]


@pytest.mark.spark
def test_a_window_closes_rows(tmp_path):
    """`replace_where` replaces the rows of now inside it; what it takes away is kept as past."""
    stream = open_tenant(tmp_path).stream("Ledger")
    days = pd.DataFrame({"Id": [1, 2, 3], "day": [1, 2, 2], "v": ["a", "b", "c"]})
    stream.update(days, key="Id", history="scd2")

    receipt = stream.update(
        pd.DataFrame({"Id": [2, 4], "day": [2, 2], "v": ["B", "d"]}), replace_where="day = 2"
    )

    assert counts(receipt) == (1, 1, 0, 1)
    assert _history(stream) == [
        (1, 1, "a", 0, None),
        (2, 2, "B", 1, None),
        (2, 2, "b", 0, 1),
        (3, 2, "c", 0, 1),
        (4, 2, "d", 1, None),
    ]


def test_an_override_must_say_what_becomes_of_the_history(stream, tmp_path):
    """It would throw the past away: refused, unless a new history or none is asked for."""
    stream.update(pd.DataFrame({"Id": ["1"], "v": ["A"]}))
    with pytest.raises(InvalidOption, match="delete the stream"):
        stream.update(ROWS, override=True)

    anew = stream.update(ROWS.head(2), override=True, history="scd2")
    assert _history(stream) == [("1", "a", 0, None), ("2", "b", 0, None)]
    ended = stream.update(ROWS.head(2), override=True, history="none")

    assert (counts(anew), counts(ended)) == ((0, 1, 1, 1), (0, 0, 2, 0))
    with pytest.raises(InvalidOption, match="keeps no history"):
        stream.read(history=True)
    assert list(get_snapshot(tmp_path, "Account").columns) == ["Id", "v"]
    assert len(get_snapshot(tmp_path, "Account", version=1, history=True)) == 4


@pytest.mark.parametrize(
    ("frame", "options", "error"),
    [
        (ROWS.assign(_valid_from=1), {}, BadInput),
        (ROWS.assign(_VALID_TO=1), {}, BadInput),
        (ROWS, {"drop_column": "_valid_to"}, InvalidOption),
        (ROWS, {"mode": "full", "deletes": "flag"}, InvalidOption),
        (ROWS, {"history": "none"}, InvalidOption),
    ],
)
def test_what_a_history_cannot_be_is_refused(stream, frame, options, error):
    """The two columns are the stream's own; a flag for deleted rows says the same less well."""
    with pytest.raises(error):
        stream.update(frame, **options)
    assert stream.version == 0


def test_what_cannot_have_a_history_is_refused(tmp_path):
    """A stream without a key, with such a column already, or with flags."""
    tenant = open_tenant(tmp_path)
    tenant.stream("Keyless").update(ROWS, override=True)
    tenant.stream("Taken").update(ROWS.assign(_valid_to=1), key="Id")
    tenant.stream("Flags").update(ROWS, key="Id", mode="full", deletes="flag")

    with pytest.raises(InvalidOption, match="needs a key"):
        tenant.stream("Keyless").update(ROWS.head(0), replace_where="Id = '1'", history="scd2")
    with pytest.raises(InvalidOption, match="'_valid_to' already"):
        tenant.stream("Taken").update(ROWS, history="scd2")
    with pytest.raises(InvalidOption, match="either a history or a flag"):
        tenant.stream("Flags").update(ROWS, history="scd2")
    assert {tenant.stream(name).stream_version for name in tenant.streams()} == {0}


def test_readers_of_now_see_no_period(stream, tmp_path):
    """With projection, predicate and time travel; the merge that comes back as well."""
    after = update_snapshot(tmp_path, "Account", "Id", pd.DataFrame({"Id": ["1"], "v": ["A"]}))

    assert after.to_numpy().tolist() == [["1", "A"], ["2", "b"], ["3", "c"]]
    assert get_snapshot(tmp_path, "Account", columns=["v"], where=[("Id", "=", "1")])["v"].tolist() == ["A"]
    assert get_snapshot(tmp_path, "Account", version=0, where=[("Id", "=", "1")])["v"].tolist() == ["a"]
    past = get_snapshot(tmp_path, "Account", history=True, where=[("v", "=", "a")])
    assert list(past.columns) == ["Id", "v", VALID_FROM, VALID_TO]
    with pytest.raises(MissingColumn, match="history=True"):
        get_snapshot(tmp_path, "Account", columns=[VALID_FROM])
    preview = update_snapshot(
        tmp_path, "Account", "Id", pd.DataFrame({"Id": ["1"], "v": ["?"]}), persist=False
    )
    assert (list(preview.columns), preview.loc[preview["Id"] == "1", "v"].tolist()) == (["Id", "v"], ["?"])


@pytest.mark.spark
def test_frames_of_spark_have_no_period_either(stream, tmp_path, spark_session):
    """Read, given back by an update, or sent to a stream that begins a history."""
    stream.update(pd.DataFrame({"Id": ["1"], "v": ["A"]}))
    spark = get_snapshot(tmp_path, "Account", as_="spark")
    frame = spark_session.createDataFrame(pa.table({"Id": ["9"], "v": ["z"]}))

    assert (spark.columns, spark.count()) == (["Id", "v"], 3)
    assert get_snapshot(tmp_path, "Account", as_="spark", history=True).count() == 4
    assert update_snapshot(tmp_path, "Account", "Id", frame).count() == 4
    assert open_tenant(tmp_path).stream("New").update(frame, key="Id", history="scd2").inserted == 1
    assert _history(open_tenant(tmp_path).stream("New")) == [("9", "z", 0, None)]


BATCH = st.tuples(
    st.sampled_from(["upsert", "full"]),
    st.dictionaries(
        st.tuples(st.sampled_from(["x", "y"]), st.integers(0, 1)), st.none() | st.integers(0, 1), min_size=1
    ),
)


@settings(max_examples=examples(8), suppress_health_check=list(HealthCheck))
@given(batches=st.lists(BATCH, min_size=2, max_size=4))
def test_histories_follow_the_rule(tmp_path_factory, batches):
    """Any sequence of upserts and extracts, under a key of two columns, leaves the periods it should."""
    stream = open_tenant(tmp_path_factory.mktemp("snapshots")).stream("A")
    now, past, versions = {}, [], 0
    for mode, rows in batches:
        table = pa.table(
            {
                "Id": pa.array([key[0] for key in rows], pa.string()),
                "Line": pa.array([key[1] for key in rows], pa.int64()),
                "v": pa.array(list(rows.values()), pa.int64()),
            }
        )
        stream.update(
            table,
            key=["Id", "Line"],
            mode=mode,
            history="scd2",
            **({"max_delete_ratio": 1.0} if mode == "full" else {}),
        )
        gone = [key for key in now if mode == "full" and key not in rows]
        changed = {
            key: value
            for key, value in rows.items()
            if key not in now or (value is not None and value != now[key][0])
        }
        if gone or changed:
            past += [(*key, *now[key], versions) for key in [*gone, *changed] if key in now]
            now = {key: value for key, value in now.items() if key not in gone}
            now |= {key: (value, versions) for key, value in changed.items()}
            versions += 1

    expected = [*past, *((*key, *value, None) for key, value in now.items())]
    assert sorted(expected, key=repr) == _history(stream)
    assert {key: value for key, (value, _) in now.items()} == {
        (row["Id"], row["Line"]): row["v"] for row in stream.read(as_="arrow").to_pylist()
    }


def test_a_table_with_a_past_can_be_released_and_adopted(stream, tmp_path):
    """Its past holds keys many times, its present once: it is a stream again, with its history."""
    stream.update(pd.DataFrame({"Id": ["1"], "v": ["A"]}))

    stream.release()
    open_tenant(tmp_path).adopt("Account")

    assert stream.update(pd.DataFrame({"Id": ["2"], "v": ["B"]})).updated == 1
    assert stream.read(history=True)["_valid_to"].notna().sum() == 2
