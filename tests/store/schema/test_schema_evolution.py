"""Columns change only where no value does."""

from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from tests.given import fails

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

_NOON = datetime.fromisoformat("2026-10-01T12:00:00")


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


_KEY, _AS_TEXT = {"key": ["v"]}, {"rules": SchemaRules(drift_to_text=True)}
_MOST = 10**35 - 1


def _range(low, high):
    """What the stored values of ``v`` reach."""
    return {"ranges": {"v": (low, high)}.get}


@pytest.mark.parametrize(
    ("stored", "incoming", "target", "options"),
    [
        # The stored type stays where it holds the batch, else it widens where it loses nothing.
        (pa.int64(), pa.array([1], pa.int32()), pa.int64(), {}),
        (pa.int32(), pa.array([2**40], pa.int64()), pa.int64(), {}),
        (pa.int64(), pa.array([3.0, None]), pa.int64(), {}),
        (pa.int32(), pa.array([1.5]), pa.float64(), {}),
        (pa.float64(), pa.array([7], pa.int64()), pa.float64(), {}),
        (pa.float64(), pa.array([float("nan"), 0.1], pa.float32()), pa.float64(), {}),
        (pa.float32(), pa.array([0.1], pa.float64()), pa.float64(), {}),
        (pa.decimal128(10, 2), pa.array([Decimal("1.5")]), pa.decimal128(10, 2), {}),
        (pa.decimal128(4, 2), pa.array([Decimal("1.234")]), pa.decimal128(5, 3), {}),
        (pa.int64(), pa.array([Decimal("1.5")]), pa.decimal128(20, 1), {}),
        (pa.timestamp("us"), pa.array([0], pa.date32()), pa.timestamp("us"), {}),
        (pa.date32(), pa.array([1], pa.timestamp("us")), pa.timestamp("us"), {}),
        (pa.date32(), pa.array(["2026-10-01", None]), pa.date32(), {}),
        (pa.float64(), pa.array([Decimal("0.10"), None]), pa.float64(), {}),
        (pa.int64(), pa.nulls(1), pa.int64(), {}),
        # Stored longs become doubles, and a decimal's scale grows, where the stored values leave room.
        (pa.int64(), pa.array([1.5]), pa.float64(), _range(-5, 2**53)),
        (
            pa.decimal128(38, 2),
            pa.array([Decimal("0.125")], pa.decimal128(38, 3)),
            pa.decimal128(38, 3),
            _range(-_MOST, _MOST),
        ),
        # The stored type has room for more whole digits, the batch's for more digits behind the point.
        (
            pa.decimal128(38, 5),
            pa.array([Decimal("0.1234567")], pa.decimal128(30, 7)),
            pa.decimal128(38, 7),
            _range(0, Decimal("12.5")),
        ),
        # 7.0 is the key 7, as a merge leaves it; a date that a file has as text is that date.
        (pa.int64(), pa.array([7.0]), pa.int64(), _KEY),
        (pa.float64(), pa.array([7]), pa.float64(), _KEY),
        (pa.date32(), pa.array(["2026-01-01"]), pa.date32(), _KEY),
        (pa.int64(), pa.array([1], pa.int16()), pa.int64(), _KEY),
        # Keys widen as values do: whole numbers to wider ones, dates to timestamps.
        (pa.int32(), pa.array([2**40]), pa.int64(), _KEY),
        (pa.int64(), pa.array([1], pa.int8()), pa.int64(), _KEY),
        (pa.date32(), pa.array([_NOON], pa.timestamp("us")), pa.timestamp("us"), _KEY),
        (pa.timestamp("us"), pa.array([date(2026, 10, 1)]), pa.timestamp("us"), _KEY),
        # Nested columns take the parts of both.
        (
            pa.struct([("a", pa.int64())]),
            [{"b": "x"}],
            pa.struct([("a", pa.int64()), ("b", pa.string())]),
            {},
        ),
        (
            pa.list_(pa.struct([("a", pa.int32())])),
            [[{"a": 2**40}]],
            pa.list_(pa.struct([("a", pa.int64())])),
            {},
        ),
        (pa.list_(pa.string()), [[], None], pa.list_(pa.string()), {}),
        (pa.struct([("a", pa.string())]), [{"a": None}], pa.struct([("a", pa.string())]), {}),
        # Where every value has one exact text, both sides become text instead of an error.
        (pa.int64(), ["N/A"], pa.string(), _AS_TEXT),
        (pa.decimal128(10, 2), ["N/A"], pa.string(), _AS_TEXT),
        (pa.bool_(), ["N/A"], pa.string(), _AS_TEXT),
        (pa.date32(), ["N/A"], pa.string(), _AS_TEXT),
        (pa.timestamp("us"), ["N/A"], pa.string(), _AS_TEXT),
        (pa.timestamp("us", "UTC"), ["N/A"], pa.string(), _AS_TEXT),
    ],
)
def test_values_that_fit_are_taken(stored, incoming, target, options):
    """The column has one type, the stored one if it can; files are written anew where it is another one."""
    found = _evolve([("v", stored)], _table(v=incoming), **options)

    assert (target, target) == (found.target.field("v").type, found.batch.schema.field("v").type)
    assert (("v",) if target != stored else ()) == found.widened
    assert (target != stored) == found.changes_schema == found.changes_stored_files


_COLUMN, _IN_KEY = "'v'", "key column"


@pytest.mark.parametrize(
    ("stored", "incoming", "options", "problem"),
    [
        # A value that would change.
        (pa.int64(), pa.array(["1"]), {}, _COLUMN),
        (pa.string(), pa.array([1]), {}, _COLUMN),
        (pa.int64(), pa.array([1.5]), {}, _COLUMN),
        (pa.float64(), pa.array([2**53 + 1]), {}, _COLUMN),
        (pa.bool_(), pa.array([1]), {}, _COLUMN),
        (pa.timestamp("us", "UTC"), pa.array([0], pa.timestamp("us")), {}, _COLUMN),
        (pa.decimal128(10, 2), pa.array([0.5]), {}, _COLUMN),
        (pa.date32(), pa.array(["2026-1-1"]), {}, _COLUMN),
        (pa.date32(), pa.array(["2026-01-01 "]), {}, _COLUMN),
        (pa.float64(), pa.array([Decimal("1234567890123456.789")]), {}, _COLUMN),
        (pa.int64(), pa.array([[1]]), {}, _COLUMN),
        # A stored value that would change.
        (pa.int64(), pa.array([1.5]), _range(0, 2**53 + 1), _COLUMN),
        *(
            (pa.decimal128(38, 2), pa.array([Decimal("0.125")], pa.decimal128(38, 3)), options, _COLUMN)
            for options in ({}, _range(0, _MOST + 1), _range(-_MOST - 1, 0))
        ),
        # Another type of the key.
        (pa.int64(), pa.array(["1"]), _KEY, _IN_KEY),
        (pa.int64(), pa.array([1.5]), _KEY, _IN_KEY),
        # A part of a nested column.
        (pa.struct([("a", pa.int64())]), [{"a": "x"}], {}, _COLUMN),
        (pa.struct([("a", pa.int64())]), [{"A": 1}], {}, _COLUMN),
        (pa.list_(pa.int64()), [["x"]], {}, _COLUMN),
        (pa.list_(pa.int64()), [[1.5]], {}, _COLUMN),
    ],
)
def test_values_that_do_not_fit_are_refused(stored, incoming, options, problem):
    """The error names the column, or says that it is a key, and has the first rows that do not fit."""
    with fails(SchemaDriftError, problem) as caught:
        _evolve([("v", stored)], _table(v=incoming), **options)

    is_flat = problem == _COLUMN and not options and not pa.types.is_nested(stored)
    assert not is_flat or caught.value.details["rows"][0]["row"] == 0


def test_types_alone_decide_where_values_are_not_at_hand():
    """A frame whose values are elsewhere is taken only if its type fits the stored one whatever they are."""
    with fails(SchemaDriftError):
        _evolve([("v", pa.int64())], _table(v=pa.array([], pa.float64())), values=TYPES_ALONE)


@pytest.mark.parametrize(
    ("stored", "incoming", "options", "remedy"),
    [
        # A double has many texts, and 1 and 1.00 are one key that would be two: only a column is retyped.
        (pa.float64(), ["N/A"], _AS_TEXT, "freezeframe stream retype STREAM v string"),
        (pa.float64(), ["N/A"], _AS_TEXT | _KEY, None),
        (pa.decimal128(10, 2), [1], _AS_TEXT | _KEY, None),
        (pa.int64(), [Decimal("1.00")], _AS_TEXT | _KEY, None),
        # Numbers as text are to be read as numbers, where the values allow it.
        (pa.int64(), ["20.5", "0.10"], {}, 'types={"v": "double"}'),
        (pa.int64(), ["20.5", "none"], {}, "Cast the column to int64"),
    ],
)
def test_the_remedy_is_one_that_the_values_allow(stored, incoming, options, remedy):
    """A retyping is offered for a column alone, and a type to read by for numbers alone."""
    with fails(SchemaDriftError, remedy=remedy or "") as caught:
        _evolve([("v", stored)], _table(v=incoming), **options)
    assert remedy or "stream retype STREAM v string" not in caught.value.remedy


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


def test_a_stream_has_at_most_so_many_columns():
    batch = pa.table({f"c{number}": pa.nulls(0, pa.string()) for number in range(COLUMNS_MAX + 1)})
    assert len(evolve(None, batch.drop_columns(["c0"])).target) == COLUMNS_MAX
    with pytest.raises(BadInput, match="10,001 columns"):
        evolve(None, batch)


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
