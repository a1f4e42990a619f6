"""Each type through each door: kept or refused by name, and a frame that is given back changes nothing."""

import datetime as dt
import itertools

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from tests import given
from tests.examples import sampled, share
from tests.text_types import text_type
from tests.typed_columns import CELLS, NOT_KEPT, every_type

from freezeframe.engine.frames.rows import Rows
from freezeframe.errors import BadInput, FreezeframeError
from freezeframe.storage import LocalStorage, MemoryStorage

DOORS = {
    "arrow": {"as_": "arrow"},
    "polars": {"as_": "polars"},
    "pandas": {},
    "nullable pandas": {"dtype_backend": "numpy_nullable"},
    "Arrow's pandas": {"dtype_backend": "pyarrow"},
    "pandas with str": {},
}
VERBS = {
    "upsert": {},
    "frozen": {"schema": "frozen"},
    "nulls": {"nulls": "overwrite"},
    "override": {"override": True},
}
BY_SPARK = {
    "full": {"mode": "full"},
    "flags": {"mode": "full", "deletes": "flag"},
    "window": {"replace_where": "Id >= 0"},
    "history": {"history": "scd2"},
}


def stored(tenant, columns):
    """A stream with these columns, and what it has."""
    stream = tenant.stream("Account")
    rows = len(next(iter(columns.values())))
    stream.update(pa.table({"Id": range(rows), **columns}), key="Id")
    return stream, stream.read(as_="arrow")


def give_back(tenant, columns, door, options):
    """What a frame that was read and given back changes: columns of another type or value; None: nothing."""
    stream, before = stored(tenant, columns)
    with text_type("str" if door == "pandas with str" else "object"):
        receipt = stream.update(stream.read(**DOORS.get(door, {"as_": door})), **options)
    after = stream.read(as_="arrow").select(before.column_names).sort_by("Id")
    changed = [
        name
        for name in before.column_names
        if before[name].to_pylist() != after[name].to_pylist()
        or (before[name].type != after[name].type and "override" not in options)
        or pa.types.is_map(before[name].type) != pa.types.is_map(after[name].type)
    ]
    return changed, receipt.inserted, receipt.updated, receipt.deleted


@pytest.mark.sampled
@pytest.mark.parametrize(("door", "verb"), sampled(itertools.product(DOORS, VERBS), every=5))
def test_a_frame_of_every_type_given_back_changes_nothing(open_finding, door, verb):
    """All types at once, in one stream."""
    assert ([], 0, 0, 0) == give_back(open_finding(MemoryStorage()), every_type(), door, VERBS[verb])


@pytest.mark.parametrize("door", DOORS)
def test_nan_inside_a_cell_is_missing_to_pandas_only(open_finding, door):
    """Its own frames have one value for both; the others keep it."""
    nan = float("nan")
    columns = {"list": pa.array([[1.5, nan]]), "struct": pa.array([{"v": nan, "n": 1}])}
    tenant = open_finding(MemoryStorage())
    give_back(tenant, columns, door, {})
    kept = tenant.stream("Account").read(as_="arrow")
    found = [kept["list"].to_pylist()[0][1], kept["struct"].to_pylist()[0]["v"]]

    assert [door in {"arrow", "polars", "Arrow's pandas"}] * 2 == [value is not None for value in found]


@pytest.mark.nightly
@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("door", DOORS)
def test_each_type_given_back_changes_nothing(open_finding, door, verb):
    """Each type alone, so that a column that is refused or changed is named."""
    changed = {
        name: found
        for name, column in every_type().items()
        if column.null_count < len(column)
        for found in [give_back(open_finding(MemoryStorage()), {name: column}, door, VERBS[verb])]
        if found != ([], 0, 0, 0)
    }
    assert changed == {}


@pytest.mark.spark
@pytest.mark.nightly
@pytest.mark.parametrize("verb", [*VERBS, *BY_SPARK])
@pytest.mark.parametrize("door", ["arrow", "pandas", "polars", "spark"])
def test_every_type_given_back_by_spark_changes_nothing(spark_engine, tmp_path, door, verb):
    """Spark reads, compares and writes the same values."""
    tenant = given.tenant(LocalStorage(tmp_path), spark_engine, engine="spark")
    columns = {name: column for name, column in every_type().items() if not pa.types.is_null(column.type)}
    assert ([], 0, 0, 0) == give_back(tenant, columns, door, (VERBS | BY_SPARK)[verb])


@pytest.mark.spark
def test_whole_numbers_of_spark_are_taken_where_stored_floats_hold_them(spark_engine, tmp_path):
    """A count is a bigint, a literal an int: each changes nothing where it is the stored number."""
    tenant = given.tenant(LocalStorage(tmp_path), spark_engine, engine="auto")
    floats = {"d": pa.array([10.0]), "f": pa.array([10.0], pa.float32()), "n": pa.array([{"v": 10.0}])}
    stream, before = stored(tenant, floats)
    frame = spark_engine.session.sql(
        "select 0L Id, count(1) d, max(10) f, max(struct(10L v)) n from range(10)"
    )
    receipt = stream.update(frame)

    assert (0, 1, before) == (receipt.updated, receipt.unchanged, stream.read(as_="arrow"))


def outcome(frame):
    """Whether a frame is kept or refused by name; an error of another library is no outcome."""
    try:
        return Rows(frame).to_arrow()["v"].to_pylist()
    except BadInput as refused:
        assert "'v" in str(refused)  # noqa: PT017 - the column is named, whatever is refused
        return None


@pytest.mark.parametrize("name", NOT_KEPT)
def test_what_no_stream_keeps_is_refused_by_name(name):
    """As Arrow, as Arrow's pandas, and as Polars where it has the type."""
    table = pa.table({"v": NOT_KEPT[name]})
    frames = [table, table.to_pandas(types_mapper=pd.ArrowDtype)]
    if name not in {"months", "union", "50 digits"}:
        frames.append(pl.DataFrame(table))
    assert [None] * len(frames) == [outcome(frame) for frame in frames]


def frames_not_kept():
    """Frames of every library with a column that no stream may keep, and each odd Python object, by name."""
    for name, column in NOT_KEPT.items():
        table = pa.table({"Id": range(len(column)), "v": column})
        yield f"{name}, Arrow", table
        yield f"{name}, Arrow's pandas", table.to_pandas(types_mapper=pd.ArrowDtype)
        if name not in {"months", "union", "50 digits"}:
            yield f"{name}, Polars", pl.DataFrame(table)
    for (number, cell), (wrap, wrapped) in itertools.product(enumerate(CELLS), WRAPS.items()):
        yield f"{type(cell).__name__} {number} in {wrap}", objects([wrapped(cell)]).assign(Id=0)


@pytest.mark.long
@pytest.mark.sampled
@pytest.mark.parametrize(
    ("number", "case"),
    list(enumerate(sampled(itertools.product(VERBS, [None, 1, "x", [1.5], {"k": 1}]), every=7))),
)
def test_no_error_of_a_library_below_leaves_an_update(open_finding, number, case):
    """Whatever a column holds and meets is kept, or refused by an error of ours, and nothing else."""
    (verb, stored), tenant, raw = case, open_finding(MemoryStorage()), []
    for place, (name, frame) in enumerate(share(frames_not_kept(), number)):
        stream = tenant.stream(f"S{place}")
        if stored is not None:
            stream.update(pa.table({"Id": [0], "v": [stored]}), key="Id")
        try:
            stream.update(frame, "Id", **VERBS[verb])
        except FreezeframeError:
            continue
        except Exception as error:  # noqa: BLE001 - the test counts what is no typed error
            raw.append((name, type(error).__name__, str(error)[:80]))
    assert raw == []


def objects(values):
    column = np.empty(len(values), dtype=object)
    for row, value in enumerate(values):
        column[row] = value
    return pd.DataFrame({"v": pd.Series(column, dtype=object)})


WRAPS = {"cells": lambda value: value, "lists": lambda value: [value], "objects": lambda value: {"k": value}}
KINDS_APART = (bool, str, bytes, list, dict, dt.datetime)


def is_same(one, other):
    """Whether two values are the same, of one kind; a member that only one of them has is null."""
    if isinstance(one, dict) and isinstance(other, dict):
        return all(is_same(one.get(name), other.get(name)) for name in one | other)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(is_same, one, other))
    return one == other and all(isinstance(one, kind) == isinstance(other, kind) for kind in KINDS_APART)


@pytest.mark.long
@pytest.mark.sampled
@pytest.mark.parametrize("wrap", sampled(WRAPS, every=2))
def test_two_objects_are_kept_as_each_alone_or_refused(wrap):
    """Every pair of kinds, in cells, lists and objects: no value changes beside another one."""
    alone = {number: outcome(objects([WRAPS[wrap](value)])) for number, value in enumerate(CELLS)}
    changed = []
    for (first, one), (second, other) in itertools.product(enumerate(CELLS), repeat=2):
        together = outcome(objects([WRAPS[wrap](one), WRAPS[wrap](other)]))
        if together is None:
            continue
        kept = alone[first] is not None and alone[second] is not None
        if not kept or not is_same([*alone[first], *alone[second]], together):
            changed.append((one, other, together))
    assert changed == []
