"""How rows are compared when types change: in the wider type or not at all, never in a narrower one."""

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pytest
from tests import given
from tests.given import counts

from freezeframe.engine.frames.frames import to_pandas, to_polars
from freezeframe.engine.frames.rows import Rows
from freezeframe.storage import LocalStorage, MemoryStorage
from freezeframe.store.schema.type_compatibility import exact_cast, with_maps

# Old and new cells of the keys 1 and 2, and what an override says: (inserted, updated, unchanged, deleted).
OVERRIDES = {
    "the old value does not fit": ([2**64 - 1, 5], pa.uint64(), [7, 5], pa.int8(), (0, 1, 1, 0)),
    "a narrower whole number": ([2**40, 1], pa.int64(), [1, 1], pa.int8(), (0, 1, 1, 0)),
    "fewer digits": (
        [Decimal("1.2345"), Decimal("12345678901234567890.5")],
        pa.decimal128(38, 18),
        [Decimal("1.23"), Decimal("1.50")],
        pa.decimal128(9, 2),
        (0, 2, 0, 0),
    ),
    "digits that are zeros": (
        [Decimal("1.50"), Decimal("2.25")],
        pa.decimal128(38, 18),
        [Decimal("1.50"), Decimal("2.20")],
        pa.decimal128(9, 2),
        (0, 1, 1, 0),
    ),
    "a single for a double": ([0.1, 0.5], pa.float64(), [0.1, 0.5], pa.float32(), (0, 1, 1, 0)),
    "doubles in lists": (
        [[0.1], [0.5]],
        pa.list_(pa.float64()),
        [[0.1], [0.5]],
        pa.list_(pa.float32()),
        (0, 1, 1, 0),
    ),
    "a day for a moment": (
        [dt.datetime(2026, 1, 1, 12), dt.datetime(2026, 1, 1)],  # noqa: DTZ001 - a local time
        pa.timestamp("us"),
        [dt.date(2026, 1, 1)] * 2,
        pa.date32(),
        (0, 1, 1, 0),
    ),
    "text for numbers": (["1", None], pa.string(), [1, None], pa.int64(), (0, 0, 2, 0)),
    "other text for numbers": (["01", None], pa.string(), [1, None], pa.int64(), (0, 1, 1, 0)),
    "small decimals for text": (
        [Decimal("0.0000001"), None],
        pa.decimal128(9, 7),
        ["0.0000001", None],
        pa.string(),
        (0, 0, 2, 0),
    ),
    "moments for text": (
        [dt.datetime(2026, 1, 1), None],  # noqa: DTZ001 - a local time
        pa.timestamp("us"),
        ["2026-01-01 00:00:00", None],
        pa.string(),
        (0, 0, 2, 0),
    ),
    "numbers for truths": ([True, None], pa.bool_(), [1, None], pa.int64(), (0, 1, 1, 0)),
    "a double for a long": ([2**53 + 1, None], pa.int64(), [2.0**53, None], pa.float64(), (0, 1, 1, 0)),
    "a zero with a sign": ([0.0, -0.0], pa.float64(), [-0.0, -0.0], pa.float64(), (0, 1, 1, 0)),
    "a day that no moment reaches": (
        [-(2**31), None],
        pa.date32(),
        [dt.datetime(1, 1, 1), None],  # noqa: DTZ001 - a local time
        pa.timestamp("us"),
        (0, 1, 1, 0),
    ),
}


def rows(values, kind, name="z"):
    array = pa.array(values, pa.int32()).cast(kind) if values[0] == -(2**31) else pa.array(values, kind)
    return pa.table({"k": [1, 2], name: array})


def overridden(stream, case, name):
    old, old_kind, new, new_kind, _ = case
    stream.update(rows(old, old_kind, name), key="k", override=True)
    receipt = stream.update(rows(new, new_kind, name), override=True)
    changes = receipt.changed_rows("arrow")["_change_type"].to_pylist()
    assert rows(new, new_kind, name).schema.field(name).type == stream.schema.field(name).type
    assert receipt.updated == changes.count("update") == len(changes)
    return counts(receipt)


@pytest.mark.parametrize("case", OVERRIDES.values(), ids=OVERRIDES)
def test_an_override_counts_what_differs(open_finding, case):
    """Old values need not fit new types, and are not the same as what they would be cast to."""
    assert case[-1] == overridden(open_finding(MemoryStorage()).stream("Account"), case, "z")


def test_an_override_counts_what_differs_under_mapped_names(open_finding):
    case = OVERRIDES["doubles in lists"]
    assert case[-1] == overridden(open_finding(MemoryStorage()).stream("Account"), case, "a b")


@pytest.mark.spark
def test_a_spark_frame_under_mapped_names_overrides_other_types(spark_engine, spark_session, tmp_path):
    """A batch that Spark landed and that is written anew meets stored values that do not fit its types."""
    stream = given.tenant(LocalStorage(tmp_path), spark_engine).stream("Account")
    stream.update(pa.table({"k": [1, 2], "n m": pa.array([2**40, 7])}), key="k")

    receipt = stream.update(
        spark_session.sql("select 1L k, cast(1 as byte) `n m` union all select 2L, cast(7 as byte)"),
        override=True,
    )

    assert counts(receipt) == (0, 1, 1, 0)
    assert sorted(stream.read(as_="arrow")["n m"].to_pylist()) == [1, 7]


def test_a_key_of_another_kind_finds_no_row(open_finding, memory):
    """After an override by keys of another kind each old row is gone and each new one is new."""
    stream = open_finding(memory).stream("Account")
    stream.update(pa.table({"k": pa.array([1, 2], pa.timestamp("us"))}), key="k")

    receipt = stream.update(pa.table({"k": [1, 2, 3]}), override=True)

    assert counts(receipt) == (3, 0, 0, 2)
    assert receipt.changed_rows("arrow").num_rows == 5


def test_rows_without_a_key_are_compared_in_the_wider_type(open_finding, memory):
    """As a multiset, too, 5 is 5 in any whole type, and 0.1 as a single is not 0.1."""
    stream = open_finding(memory).stream("Report")
    stream.update(pa.table({"n": [5, 6], "d": [0.5, 0.1]}), override=True)

    new = pa.table({"n": pa.array([5, 6], pa.int8()), "d": pa.array([0.5, 0.1], pa.float32())})
    receipt = stream.update(new, override=True)

    assert counts(receipt) == (1, 0, 1, 1)
    assert sorted(receipt.changed_rows("arrow")["_change_type"].to_pylist()) == ["delete", "insert"]


@pytest.mark.parametrize(
    ("values", "kind", "other", "is_exact"),
    [
        ([0.1], pa.float64(), pa.float32(), False),
        ([0.5, float("nan"), None], pa.float64(), pa.float32(), True),
        ([-0.0], pa.float64(), pa.float32(), True),
        ([-0.0], pa.float64(), pa.int64(), False),
        ([0.0], pa.float64(), pa.int64(), True),
        ([[float("nan")]], pa.list_(pa.float32()), pa.list_(pa.float64()), True),
        ([dt.datetime(2026, 1, 1, 12)], pa.timestamp("us"), pa.date32(), False),  # noqa: DTZ001
        ([2**31], pa.int64(), pa.int32(), False),
    ],
)
def test_a_cast_is_exact_or_refused(values, kind, other, is_exact):
    """Every value is the same in the other type, the sign of a zero and NaN included."""
    assert is_exact == (exact_cast(pa.chunked_array([pa.array(values, kind)]), other) is not None)


def test_an_empty_batch_drops_columns():
    """A personal column leaves also where a sync brings no row, or none with a key; rows stay as they are."""
    tenant = given.tenant()
    for name in ("Empty", "Bare", "Dropped"):
        tenant.stream(name).update(pa.table({"k": [1, 2], "mail": ["a", "b"], "z": [-0.0, 1.0]}), key="k")
    nothing = pa.table({"k": pa.array([None], pa.string()), "new": ["x"]})
    batches = {
        "Empty": (pa.table({"k": pa.array([], pa.int64()), "new": pa.array([], pa.string())}), {}),
        "Bare": (pa.table({}), {}),
        "Dropped": (nothing, {"null_keys": "drop"}),
    }

    for name, (batch, options) in batches.items():
        stream = tenant.stream(name)
        receipt = stream.update(batch, drop_column=["mail", "unknown"], **options)
        assert (receipt.columns_dropped, receipt.columns_added, receipt.committed) == (("mail",), (), True)
        assert receipt.changed_rows("arrow").to_pylist() == []
        assert stream.read(as_="arrow").column_names == ["k", "z"]
        assert stream.update(batch, drop_column="mail", **options).committed is False


def test_changed_rows_agree_with_a_receipt_that_dropped_a_column():
    stream = given.tenant().stream("Account")
    stream.update(pa.table({"k": [1, 2, 3], "mail": ["a", "b", "c"], "z": [0.0, 1.0, 2.0]}), key="k")

    receipt = stream.update(pa.table({"k": [1, 2], "z": [-0.0, 1.0]}), drop_column="mail")

    assert (receipt.inserted, receipt.updated, receipt.unchanged) == (0, 1, 1)
    changes = receipt.changed_rows("arrow").to_pylist()
    assert [(row["_change_type"], row["k"], repr(row["z"])) for row in changes] == [("update", 1, "-0.0")]


TEXTS = pa.map_(pa.string(), pa.string())
PAIRS = [
    (TEXTS, [[("a", "b"), ("c", None)], [], None]),
    (TEXTS, [[], None]),
    (pa.map_(pa.string(), pa.int64()), [[("a", None)], []]),
    (pa.map_(pa.int64(), pa.float64()), [[(1, 1.0)]]),
    (pa.map_(pa.date32(), pa.date32()), [[(dt.date(2026, 1, 2), dt.date(2026, 1, 3))], None]),
    (pa.list_(TEXTS), [[[("a", "b")], [], None], [], None]),
    (pa.struct([("m", TEXTS)]), [{"m": [("a", "b")]}, {"m": None}, None]),
    (pa.map_(pa.string(), TEXTS), [[("a", [("b", "c")]), ("d", []), ("e", None)], None]),
]


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize(("kind", "values"), PAIRS)
def test_pairs_are_maps_where_maps_are_stored(library, kind, values):
    """What pandas and Polars make of a map is that map again, of the stored type."""
    table = pa.table({"v": pa.array(values, kind)})
    column = Rows(to_pandas(table) if library == "pandas" else to_polars(table)).to_arrow()["v"]

    found = with_maps(column, kind)

    assert (kind, values) == (found.type, found.to_pylist())


@pytest.mark.parametrize("value", [["ab"], [["a"]], [["a", "b"], None], [[None, "b"]], [{"k": 1}]])
def test_lists_of_anything_else_are_no_maps(value):
    """They stay, and the update tells the types apart."""
    column = pa.chunked_array([[value]])
    assert column == with_maps(column, TEXTS)


@pytest.mark.parametrize("part", [pa.bool_(), pa.list_(pa.decimal128(9, 2)), pa.struct([("a", pa.int64())])])
def test_a_list_without_an_entry_keeps_the_type_of_its_entries(part):
    """Spark and Arrow say what an empty list would hold: an override gives the column that type."""
    stream = given.tenant().stream("Account")
    stream.update(pa.table({"Id": ["1"], "v": pa.array([[("a", "b")]], TEXTS)}), key="Id")
    stream.update(pa.table({"Id": ["1"], "v": pa.array([[]], pa.list_(part))}), override=True)
    assert part == stream.schema.field("v").type.value_type
