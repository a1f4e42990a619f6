"""Columns change only where no value does."""

from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from freezeframe.engine.frames.rows import Rows
from freezeframe.errors import BadInput, SchemaDriftError
from freezeframe.store.schema.schema_evolution import (
    COLUMNS_MAX,
    TYPES_ALONE,
    BatchValues,
    SchemaRules,
    decided_columns,
    evolve,
    is_undecided,
)


def _table(**columns):
    return pa.table(columns)


def _evolve(stored, batch, **options):
    return evolve(pa.schema(stored), batch, **options)


def test_a_new_stream_has_the_batchs_columns():
    found = evolve(None, _table(Id=["1"], n=pa.array([1], pa.int64())))

    assert pa.schema([("Id", pa.string()), ("n", pa.int64())]) == found.target
    assert found.added == ("Id", "n")


def test_columns_of_either_side_stay():
    """A column that the batch lacks is kept, a new one is added at the end."""
    found = _evolve([("Id", pa.string()), ("old", pa.string())], _table(Id=["1"], new=["x"]))

    assert found.target.names == ["Id", "old", "new"]
    assert found.batch.column_names == ["Id", "new"]
    assert found.added == ("new",)


@pytest.mark.parametrize(
    ("stored", "incoming", "target"),
    [
        (pa.int64(), pa.array([1], pa.int32()), pa.int64()),
        (pa.int32(), pa.array([2**40], pa.int64()), pa.int64()),
        (pa.int64(), pa.array([3.0, None]), pa.int64()),
        (pa.int32(), pa.array([1.5]), pa.float64()),
        (pa.float64(), pa.array([7], pa.int64()), pa.float64()),
        (pa.float64(), pa.array([float("nan"), 0.1], pa.float32()), pa.float64()),
        (pa.float32(), pa.array([0.1], pa.float64()), pa.float64()),
        (pa.decimal128(10, 2), pa.array([Decimal("1.5")]), pa.decimal128(10, 2)),
        (pa.decimal128(4, 2), pa.array([Decimal("1.234")]), pa.decimal128(5, 3)),
        (pa.int64(), pa.array([Decimal("1.5")]), pa.decimal128(20, 1)),
        (pa.timestamp("us"), pa.array([0], pa.date32()), pa.timestamp("us")),
        (pa.date32(), pa.array([1], pa.timestamp("us")), pa.timestamp("us")),
        (pa.date32(), pa.array(["2026-10-01", None]), pa.date32()),
        (pa.float64(), pa.array([Decimal("0.10"), None]), pa.float64()),
    ],
)
def test_values_that_fit_are_taken(stored, incoming, target):
    """The stored type stays where it holds the batch, else it widens where it loses nothing."""
    found = _evolve([("v", stored)], _table(v=incoming))

    assert target == found.target.field("v").type
    assert target == found.batch.schema.field("v").type
    assert (("v",) if target != stored else ()) == found.widened


@pytest.mark.parametrize(
    ("stored", "incoming"),
    [
        (pa.int64(), pa.array(["1"])),
        (pa.string(), pa.array([1])),
        (pa.int64(), pa.array([1.5])),
        (pa.float64(), pa.array([2**53 + 1])),
        (pa.bool_(), pa.array([1])),
        (pa.timestamp("us", "UTC"), pa.array([0], pa.timestamp("us"))),
        (pa.decimal128(10, 2), pa.array([0.5])),
        (pa.date32(), pa.array(["2026-1-1"])),
        (pa.date32(), pa.array(["2026-01-01 "])),
        (pa.float64(), pa.array([Decimal("1234567890123456.789")])),
        (pa.int64(), pa.array([[1]])),
    ],
)
def test_values_that_do_not_fit_are_refused(stored, incoming):
    """A value that would change is an error that names column, types and the first rows."""
    with pytest.raises(SchemaDriftError) as caught:
        _evolve([("v", stored)], _table(v=incoming))

    assert "'v'" in str(caught.value)
    assert caught.value.details["rows"][0]["row"] == 0


def test_stored_longs_become_doubles_only_when_their_range_is_exact():
    batch = _table(v=pa.array([1.5]))

    found = _evolve([("v", pa.int64())], batch, ranges={"v": (-5, 2**53)}.get)

    assert pa.float64() == found.target.field("v").type
    with pytest.raises(SchemaDriftError):
        _evolve([("v", pa.int64())], batch, ranges={"v": (0, 2**53 + 1)}.get)


def test_the_scale_of_a_decimal_grows_where_the_stored_values_leave_room():
    """A later amount of a CSV file has one more digit behind the point than all before."""
    batch = _table(v=pa.array([Decimal("0.125")], pa.decimal128(38, 3)))
    stored = [("v", pa.decimal128(38, 2))]
    most = 10**35 - 1

    found = _evolve(stored, batch, ranges={"v": (-most, most)}.get)

    assert pa.decimal128(38, 3) == found.target.field("v").type
    for ranges in (None, {"v": (0, most + 1)}.get, {"v": (-most - 1, 0)}.get):
        with pytest.raises(SchemaDriftError):
            _evolve(stored, batch, ranges=ranges)


def test_decimals_that_share_no_type_of_38_digits_meet_by_their_values():
    """The stored type has room for more whole digits, the batch's for more digits behind the point."""
    batch = _table(v=pa.array([Decimal("0.1234567")], pa.decimal128(30, 7)))
    stored = [("v", pa.decimal128(38, 5))]

    found = _evolve(stored, batch, ranges={"v": (0, Decimal("12.5"))}.get)

    assert pa.decimal128(38, 7) == found.target.field("v").type


@pytest.mark.parametrize("incoming", [pa.array(["1"]), pa.array([1.5])])
def test_a_keys_type_is_fixed(incoming):
    with pytest.raises(SchemaDriftError, match="key column"):
        _evolve([("Id", pa.int64())], _table(Id=incoming), key=["Id"])


@pytest.mark.parametrize(
    ("stored", "incoming"),
    [
        (pa.int64(), pa.array([7.0])),
        (pa.float64(), pa.array([7])),
        (pa.date32(), pa.array(["2026-01-01"])),
        (pa.int64(), pa.array([1], pa.int16())),
    ],
)
def test_a_key_that_pandas_wrote_otherwise_is_the_same_key(stored, incoming):
    """7.0 is the key 7, as a merge leaves it; a date that a file has as text is that date."""
    found = _evolve([("Id", stored)], _table(Id=incoming), key=["Id"])

    assert stored == found.batch.schema.field("Id").type
    assert not found.changes_schema


def test_a_column_without_values_waits_for_its_type():
    """An all-null column is undecided text until the first value decides; it is not written."""
    first = evolve(None, _table(Id=["1"], v=pa.nulls(1)))

    assert is_undecided(first.target.field("v"))
    assert first.batch.column_names == ["Id"]
    assert decided_columns(first.target).names == ["Id"]

    again = evolve(first.target, _table(Id=["1"], v=pa.nulls(1)))
    assert not again.changes_schema

    then = evolve(first.target, _table(Id=["1"], v=pa.array([7])))
    assert pa.int64() == then.target.field("v").type
    assert not is_undecided(then.target.field("v"))


def test_nulls_take_the_stored_type():
    found = _evolve([("Id", pa.string()), ("v", pa.int64())], _table(Id=["1"], v=pa.nulls(1)))

    assert pa.int64() == found.batch.schema.field("v").type
    assert not found.changes_schema


def test_dropped_columns_leave_both_sides():
    """A dropped column is neither stored nor taken from the batch; unknown names are ignored."""
    stored = [("Id", pa.string()), ("v", pa.int64())]

    found = _evolve(stored, _table(Id=["1"], v=["other type"]), drop=["v", "nobody"])

    assert found.target.names == ["Id"]
    assert found.batch.column_names == ["Id"]
    assert found.dropped == ("v",)
    assert found.changes_stored_files


def test_case_twins_are_refused():
    """A column that differs from a stored one only by case is named together with it."""
    with pytest.raises(BadInput, match=r"'id'.*'Id'"):
        _evolve([("Id", pa.string())], _table(id=["1"]))


def test_types_alone_decide_where_values_are_not_at_hand():
    """A frame whose values are elsewhere is taken only if its type fits the stored one whatever they are."""
    empty = pa.schema([("v", pa.float64())]).empty_table()

    with pytest.raises(SchemaDriftError):
        _evolve([("v", pa.int64())], empty, values=TYPES_ALONE)


@pytest.mark.parametrize(
    ("stored", "incoming", "target"),
    [
        (pa.struct([("a", pa.int64())]), [{"b": "x"}], pa.struct([("a", pa.int64()), ("b", pa.string())])),
        (
            pa.list_(pa.struct([("a", pa.int32())])),
            [[{"a": 2**40}]],
            pa.list_(pa.struct([("a", pa.int64())])),
        ),
        (pa.list_(pa.string()), [[], None], pa.list_(pa.string())),
        (pa.struct([("a", pa.string())]), [{"a": None}], pa.struct([("a", pa.string())])),
    ],
)
def test_nested_columns_take_the_parts_of_both(stored, incoming, target):
    found = _evolve([("v", stored)], _table(v=incoming))

    assert target == found.target.field("v").type
    assert target == found.batch.schema.field("v").type


@pytest.mark.parametrize(
    ("stored", "incoming"),
    [
        (pa.struct([("a", pa.int64())]), [{"a": "x"}]),
        (pa.struct([("a", pa.int64())]), [{"A": 1}]),
        (pa.list_(pa.int64()), [["x"]]),
        (pa.list_(pa.int64()), [[1.5]]),
    ],
)
def test_nested_values_that_do_not_fit_are_refused(stored, incoming):
    with pytest.raises(SchemaDriftError, match="'v'"):
        _evolve([("v", stored)], _table(v=incoming))


_NESTINGS = {
    "struct": (lambda kind: pa.struct([("v", kind)]), lambda value: {"v": value}),
    "list": (pa.list_, lambda value: [value]),
    "map": (lambda kind: pa.map_(pa.string(), kind), lambda value: [("k", value)]),
    "list of struct": (lambda kind: pa.list_(pa.struct([("v", kind)])), lambda value: [{"v": value}, None]),
}


@pytest.mark.parametrize("rules", [SchemaRules(), SchemaRules(frozen=True)])
@pytest.mark.parametrize("nesting", _NESTINGS)
@pytest.mark.parametrize(
    ("stored", "incoming", "value"),
    [
        (pa.int32(), pa.int64(), 7),
        (pa.int16(), pa.int64(), -7),
        (pa.float32(), pa.float64(), 0.10000000149011612),
        (pa.float64(), pa.int64(), 10),
        (pa.int64(), pa.float64(), 10.0),
        (pa.decimal128(9, 2), pa.decimal128(38, 2), Decimal("1.10")),
        (pa.float64(), pa.decimal128(38, 2), Decimal("1.50")),
        (pa.date32(), pa.string(), "2026-10-01"),
    ],
)
def test_parts_that_are_exact_take_the_stored_type(nesting, stored, incoming, value, rules):
    """Parts of nested columns follow the rules of columns, one by one, under a frozen schema too."""
    nest, wrap = _NESTINGS[nesting]
    batch = _table(v=pa.array([wrap(value), wrap(None), None], nest(incoming)))

    found = _evolve([("v", nest(stored))], batch, rules=rules)

    assert ((), nest(stored)) == (found.widened, found.batch.schema.field("v").type)
    assert found.batch["v"].null_count == 1


@pytest.mark.parametrize("nesting", _NESTINGS)
def test_a_nested_long_becomes_a_double_where_its_stored_values_allow(nesting):
    """The range of the part is asked for by its path."""
    nest, wrap = _NESTINGS[nesting]
    paths = {"struct": ("v",), "list": ("element",), "map": ("value",), "list of struct": ("element", "v")}
    batch = _table(v=pa.array([wrap(9.5)], nest(pa.float64())))
    stored, path = [("v", nest(pa.int64()))], ("v", *paths[nesting])

    found = _evolve(stored, batch, ranges={path: (0, 2**53)}.get)

    assert nest(pa.float64()) == found.target.field("v").type
    with pytest.raises(SchemaDriftError):
        _evolve(stored, batch, ranges={path: (0, 2**53 + 1)}.get)


def test_each_part_widens_on_its_own():
    """One member takes the stored type, another one widens, a third is new."""
    stored = pa.struct([("a", pa.int32()), ("b", pa.int32())])
    batch = _table(v=pa.array([{"a": 1, "b": 2**40, "c": "x"}]))
    target = pa.struct([("a", pa.int32()), ("b", pa.int64()), ("c", pa.string())])
    assert target == _evolve([("v", stored)], batch).target.field("v").type


def test_empty_lists_can_be_written():
    """A list column whose elements never had a value is a list of nothing yet, in files one of text."""
    found = evolve(None, _table(Id=["1", "2"], v=[[], None]))

    assert found.batch["v"].to_pylist() == [[], None]
    assert pa.list_(pa.string()) == found.batch.schema.field("v").type
    assert pa.list_(pa.null()) == found.target.field("v").type


@pytest.mark.parametrize(
    ("value", "widened", "decided"), [("x", (), ("v",)), (1, ("v",), ()), ({"a": None}, ("v",), ())]
)
def test_a_first_value_in_a_list_decides(value, widened, decided):
    """Files are written anew unless they hold lists of that type already; a frozen schema refuses it."""
    stored = evolve(None, _table(Id=["1"], v=[[]])).target
    batch = _table(Id=["2"], v=[[value]])

    found = evolve(stored, batch)
    assert (found.widened, found.decided, found.target.field("v").type) == (
        widened,
        decided,
        batch.schema.field("v").type,
    )
    with pytest.raises(SchemaDriftError, match="'v' needs another type"):
        evolve(stored, batch, rules=SchemaRules(frozen=True))


def test_a_frozen_schema_takes_no_new_columns_and_no_wider_types():
    """Everything that would change the columns is named; values that fit are taken."""
    frozen = SchemaRules(frozen=True)
    stored = [("Id", pa.string()), ("v", pa.int32())]

    with pytest.raises(SchemaDriftError, match="'w' is new; 'v' needs another type"):
        _evolve(stored, _table(Id=["1"], v=[2**40], w=[1]), rules=frozen)
    assert not _evolve(stored, _table(Id=["1"], v=[1]), rules=frozen).changes_schema
    assert evolve(None, _table(Id=["1"]), rules=frozen).changes_schema


@pytest.mark.parametrize(
    "stored",
    [
        pa.int64(),
        pa.decimal128(10, 2),
        pa.bool_(),
        pa.date32(),
        pa.timestamp("us"),
        pa.timestamp("us", "UTC"),
    ],
)
def test_drift_may_be_kept_as_text(stored):
    """Where every value has one exact text, both sides become text instead of an error."""
    found = _evolve([("v", stored)], _table(v=["N/A"]), rules=SchemaRules(drift_to_text=True))

    assert pa.string() == found.target.field("v").type
    assert found.changes_stored_files


@pytest.mark.parametrize(
    ("stored", "incoming", "key"),
    [
        (pa.float64(), ["N/A"], []),
        (pa.float64(), ["N/A"], ["v"]),
        (pa.decimal128(10, 2), [1], ["v"]),
        (pa.int64(), [Decimal("1.00")], ["v"]),
    ],
)
def test_text_is_no_way_out_for_floats_and_keys_that_are_numbers(stored, incoming, key):
    """A double has many texts, and 1 and 1.00 are one key that would be two: only a column is retyped."""
    with pytest.raises(SchemaDriftError) as caught:
        _evolve([("v", stored)], _table(v=incoming), key=key, rules=SchemaRules(drift_to_text=True))
    is_offered = "freezeframe stream retype STREAM v string" in caught.value.remedy
    assert is_offered == (pa.types.is_floating(stored) and not key)


@pytest.mark.parametrize(
    ("texts", "becomes_text"),
    [
        (["X9"], True),
        (["1", "X9"], True),
        (["", "1e5", "A-7", "1.5"], True),
        (["12345678901234567890"], True),
        (["9223372036854775808"], True),
        (["-9223372036854775809"], True),
        (["9223372036854775807"], False),
        (["1", "-2", "0"], False),
        (["007", "X9"], False),
        (["X9", "7.0"], False),
        (["X9", " 7"], False),
        (["X9", "+7"], False),
        (["X9", "-0"], False),
    ],
)
def test_a_key_of_numbers_becomes_text_where_a_key_is_none(texts, becomes_text):
    """Unless a value may be meant as a stored number, or all of them are such numbers as they print."""
    stored, batch = [("Id", pa.int64())], _table(Id=texts)

    if not becomes_text:
        with pytest.raises(SchemaDriftError) as caught:
            _evolve(stored, batch, key=["Id"])
        assert "override" not in caught.value.remedy
        named = [detail["value"].strip("'") for detail in caught.value.details["rows"]]
        doubtful = [text for text in texts if text in {"007", "7.0", " 7", "+7", "-0"}]
        assert (doubtful or texts) == named
        return
    found = _evolve(stored, batch, key=["Id"])
    assert (("Id",), pa.string(), texts) == (
        found.widened,
        found.target.field("Id").type,
        found.batch["Id"].to_pylist(),
    )
    landed = evolve(
        pa.schema(stored),
        batch.slice(0, 0),
        key=["Id"],
        values=BatchValues(
            known=False, pieces=lambda name: iter([batch[name].slice(0, 1), batch[name].slice(1)])
        ),
    )
    assert found.target.equals(landed.target)
    with pytest.raises(SchemaDriftError, match="'Id' needs another type"):
        _evolve(stored, batch, key=["Id"], rules=SchemaRules(frozen=True))


@pytest.mark.parametrize("key", [["Id"], []])
def test_text_that_was_numbers_goes_on_taking_them(key):
    rules = SchemaRules(drift_to_text=True)
    widened = _evolve([("Id", pa.int64())], _table(Id=["X9"]), key=key, rules=rules).target

    assert evolve(widened, _table(Id=[3, None]), key=key).batch["Id"].to_pylist() == ["3", None]
    with pytest.raises(SchemaDriftError, match="Id"):
        _evolve([("Id", pa.string())], _table(Id=[3]), key=key)
    assert _evolve([("Id", pa.string())], _table(Id=[3]), key=key, rules=rules).batch["Id"].to_pylist() == [
        "3"
    ]


@pytest.mark.parametrize(
    ("stored", "incoming", "expected"),
    [
        (pa.int32(), pa.array([2**40]), pa.int64()),
        (pa.int64(), pa.array([1], pa.int8()), pa.int64()),
        (
            pa.date32(),
            pa.array([datetime.fromisoformat("2026-10-01T12:00:00")], pa.timestamp("us")),
            pa.timestamp("us"),
        ),
        (pa.timestamp("us"), pa.array([date(2026, 10, 1)]), pa.timestamp("us")),
    ],
)
def test_keys_widen_as_values_do(stored, incoming, expected):
    """Whole numbers to wider ones, dates to timestamps; a narrower batch takes the stored type."""
    found = _evolve([("Id", stored)], pa.table({"Id": incoming}), key=["Id"])

    assert (found.target.field("Id").type, found.batch.schema.field("Id").type) == (expected, expected)


def test_a_stream_has_at_most_so_many_columns():
    batch = pa.table({f"c{number}": pa.nulls(0, pa.string()) for number in range(COLUMNS_MAX + 1)})
    assert len(evolve(None, batch.drop_columns(["c0"])).target) == COLUMNS_MAX
    with pytest.raises(BadInput, match="10,001 columns"):
        evolve(None, batch)


@pytest.mark.parametrize(
    ("texts", "remedy"),
    [
        (["20.5", "0.10"], 'types={"v": "double"}'),
        (["20.5", "none"], "Cast the column to int64"),
    ],
)
def test_numbers_as_text_are_to_be_read_as_numbers(texts, remedy):
    """The remedy for a column that is stored as whole numbers is one that its values allow."""
    with pytest.raises(SchemaDriftError) as refused:
        evolve(pa.schema([("v", pa.int64())]), pa.table({"v": texts}))
    assert remedy in refused.value.remedy


@pytest.mark.parametrize(
    ("stored", "given", "line"),
    [
        ("UTC", None, 'frame["v"] = frame["v"].dt.tz_localize("UTC")'),
        (None, "UTC", 'frame["v"] = frame["v"].dt.tz_convert("UTC").dt.tz_localize(None)'),
    ],
)
def test_times_with_a_zone_on_one_side_name_the_line_to_write(stored, given, line):
    """Spark's toPandas() takes the zone away: the line gives it back, and then the column is as stored."""
    types = [pa.timestamp("us", zone) for zone in (stored, given)]
    batch = pa.table({"v": pa.array([datetime(2026, 10, 1, 12, tzinfo=given and UTC)], types[1])})
    with pytest.raises(SchemaDriftError) as refused:
        evolve(pa.schema([("v", types[0])]), batch)
    names = {"frame": batch.to_pandas()}
    exec(line, names)

    assert line in refused.value.remedy
    assert "zone" in refused.value.cause
    assert types[0] == evolve(pa.schema([("v", types[0])]), Rows(names["frame"]).to_arrow()).batch["v"].type
