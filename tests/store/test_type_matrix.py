"""Every stored type meets every incoming one: kept exactly, or refused before anything is written.

24 x 24 types, as values and as keys, under three policies: 3,456 cells, each for the extreme values
that its types have and for small ones. ``docs/reference/type-matrix.md`` shows the outcome. Cells that
are kept share streams, a column each; the others are refused one by one, and no engine is asked.
"""

import datetime as dt
import math
import struct
from decimal import Decimal
from functools import cache
from itertools import cycle, islice, product

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.examples import by_turns, crossed, sampled
from tests.given import files_of
from tests.given import tenant as open_tenant
from tools.type_matrix import POLICIES, SIZES, TYPES, cells

from freezeframe.errors import BadInput
from freezeframe.script.tenants import shared_engine
from freezeframe.settings import Settings
from freezeframe.storage import LocalStorage
from freezeframe.store.maintenance.garbage import TablesThen, referenced_files
from freezeframe.store.schema.type_compatibility import cast_to
from freezeframe.store.tenant_log.log import TenantLog

pytestmark = pytest.mark.long

OPTIONS = {"strict": {"schema": "frozen"}, "widen": {}, "string": {"on_drift": "string"}}
ROWS = max(len(kind.extreme) for kind in TYPES)


def is_exact(value, found):
    """Whether ``found``, of whatever type the column has now, is the very value that came."""
    if value is None or found is None:
        return value is found
    if isinstance(value, dict):
        return set(value) <= set(found) and all(is_exact(value.get(name), found[name]) for name in found)
    if isinstance(value, list | tuple):
        return len(value) == len(found) and all(map(is_exact, value, found))
    if isinstance(found, str) and not isinstance(value, str):
        return is_exact_text(value, found)
    if isinstance(value, float) and isinstance(found, float):
        both_nan = math.isnan(value) and math.isnan(found)
        return both_nan or struct.pack("d", value) == struct.pack("d", found)
    if isinstance(value, Decimal) and isinstance(found, float):
        return Decimal(repr(found)) == value  # a double that is written with the same digits
    if type(value) is dt.date and isinstance(found, dt.datetime):
        return dt.datetime.combine(value, dt.time()) == found
    return isinstance(value, bool) == isinstance(found, bool) and value == found


def is_exact_text(value, found):
    """Whether the text says the value, and reads back as it."""
    if isinstance(value, bool):
        return found == str(value).lower()
    if isinstance(value, Decimal):
        return Decimal(found) == value and "e" not in found.lower()
    return found == str(value)


def stored_as(kind, values):
    """Values that a column of the kind takes, in that kind."""
    return cast_to(values, kind)


@cache
def all_cells(place, policy, size):
    return tuple(cells(place, policy, size))


def kept_cells(place, policy, size):
    """Kept cells by the name of the column that carries them out."""
    found = [cell for cell in all_cells(place, policy, size) if cell.is_kept]
    return {f"c{number}": cell for number, cell in enumerate(found)}


def padded(values):
    return [*values, *[None] * (ROWS - len(values))]


@pytest.mark.sampled
@pytest.mark.parametrize(("policy", "widens"), sampled(product(POLICIES, (False, True)), every=3))
def test_kept_values_are_exact(policy, widens):
    """Stored and incoming values of all kept cells, in new rows, changed rows and untouched rows."""
    chosen = {
        f"{size} {name}": (
            cell.stored,
            cell.incoming,
            padded(cell.stored.values(size)),
            padded(cell.incoming.values(size)),
        )
        for size in SIZES
        for name, cell in kept_cells("value", policy, size).items()
        if widens == (cell.fate in {"widened", "text"})
    }
    if policy == "strict" and widens:
        assert chosen == {}, "a frozen schema was widened"
        return
    stream = open_tenant().stream("Account")
    columns = {name: pa.array(old * 2, stored.arrow) for name, (stored, _, old, _) in chosen.items()}
    stream.update(pa.table({"Id": range(2 * ROWS), **columns}), key="Id")

    columns = {name: pa.array(new * 2, incoming.arrow) for name, (_, incoming, _, new) in chosen.items()}
    receipt = stream.update(pa.table({"Id": range(ROWS, 3 * ROWS), **columns}), **OPTIONS[policy])

    assert (receipt.inserted, receipt.deleted) == (ROWS, 0)
    table = stream.read(as_="arrow").sort_by("Id")
    wrong = []
    for name, (stored, incoming, old, new) in chosen.items():
        changed = [before if after is None else after for before, after in zip(old, new, strict=True)]
        found = table[name].to_pylist()
        if not all(map(is_exact, [*old, *changed, *new], found)):
            wrong.append((stored.name, incoming.name, old, new, found))
    assert wrong == []


@pytest.mark.parametrize(
    ("policy", "engine"),
    [
        *((policy, "auto") for policy in POLICIES),
        pytest.param(POLICIES[-1], "spark", marks=pytest.mark.spark),
    ],
)
def test_kept_keys_find_their_rows(tmp_path, policy, engine):
    """One key of all kept cells: each row is found again by values of the incoming type."""
    chosen = {
        f"{size} {name}": (cell.stored, cell.incoming, list(islice(cycle(cell.incoming.values(size)), ROWS)))
        for size in SIZES
        for name, cell in kept_cells("key", policy, size).items()
        if cell.kind == cell.stored.arrow
    }
    stream = open_tenant(LocalStorage(tmp_path), shared_engine(), engine=engine).stream("Account")
    columns = {
        name: stored_as(stored.arrow, pa.chunked_array([pa.array(values, incoming.arrow)]))
        for name, (stored, incoming, values) in chosen.items()
    }
    key = ["Id", *chosen]
    stream.update(pa.table({"Id": range(ROWS), **columns, "v": [0] * ROWS}), key=key)

    columns = {name: pa.array(values, incoming.arrow) for name, (_, incoming, values) in chosen.items()}
    receipt = stream.update(pa.table({"Id": range(ROWS), **columns, "v": range(ROWS)}), **OPTIONS[policy])

    assert (receipt.inserted, receipt.updated, receipt.unchanged) == (0, ROWS - 1, 1)
    table = stream.read(as_="arrow").sort_by("Id")
    assert list(range(ROWS)) == table["v"].to_pylist()
    for name, (stored, _, values) in chosen.items():
        assert stored.arrow == table.schema.field(name).type
        assert all(map(is_exact, values, table[name].to_pylist()))


@pytest.mark.sampled
@pytest.mark.parametrize("policy", by_turns(["widen", "string"], 0))
def test_widened_keys_stay_the_same_keys(policy):
    """One key of all cells that widen: stored and new keys are exact, and are found in the new type."""
    chosen = {
        f"{size} {name}": (cell, *(list(islice(cycle(item.values(size)), ROWS)) for item in both))
        for size in SIZES
        for name, cell in kept_cells("key", policy, size).items()
        if cell.kind != cell.stored.arrow
        for both in [(cell.stored, cell.incoming)]
    }
    stream = open_tenant().stream("Account")
    columns = {name: pa.array(old, cell.stored.arrow) for name, (cell, old, _) in chosen.items()}
    stream.update(pa.table({"Id": range(ROWS), **columns, "v": [0] * ROWS}), key=["Id", *chosen])
    columns = {name: pa.array(new, cell.incoming.arrow) for name, (cell, _, new) in chosen.items()}
    receipt = stream.update(
        pa.table({"Id": range(ROWS, 2 * ROWS), **columns, "v": [0] * ROWS}), **OPTIONS[policy]
    )

    assert (receipt.inserted, receipt.updated, receipt.deleted) == (ROWS, 0, 0)
    assert list(receipt.changed_rows()["_change_type"]) == ["insert"] * ROWS
    table = stream.read(as_="arrow").sort_by("Id")
    wrong = [
        (cell.stored.name, cell.incoming.name)
        for name, (cell, old, new) in chosen.items()
        if cell.kind != table[name].type or not all(map(is_exact, [*old, *new], table[name].to_pylist()))
    ]
    assert wrong == []

    again = table.set_column(table.column_names.index("v"), "v", pa.array(range(2 * ROWS)))
    receipt = stream.update(again)
    assert (receipt.inserted, receipt.updated, receipt.unchanged) == (0, 2 * ROWS - 1, 1)


@pytest.mark.sampled
@pytest.mark.parametrize(("stored", "size"), crossed(TYPES, SIZES))
def test_refused_values_leave_nothing(memory, open_on, stored, size):
    """A refused cell is a typed error that names the column, and the storage is what it was."""
    tenant = open_on(memory)
    stream = tenant.stream("Account")
    column = stored.column(size)
    stream.update(pa.table({"Id": range(len(column)), "v": column}), key="Id")
    before = files_of(memory)

    refused = 0
    for policy in POLICIES:
        for cell in all_cells("value", policy, size):
            if cell.stored is stored and not cell.is_kept:
                incoming = cell.incoming.column(size)
                with pytest.raises(BadInput, match="'v'") as caught:
                    stream.update(pa.table({"Id": range(len(incoming)), "v": incoming}), **OPTIONS[policy])
                assert caught.value.remedy
                refused += 1

    assert before == files_of(memory)
    assert 3 <= refused


@pytest.mark.sampled
@pytest.mark.parametrize(("stored", "size"), crossed(TYPES, SIZES))
def test_refused_keys_leave_nothing(memory, open_on, stored, size):
    """A key of another type, or of one that cannot be a key, is refused before anything is written."""
    stream = open_on(memory).stream("Account")
    column = stored.column(size)
    made = pa.table({"v": column, "n": range(len(column))})
    may_be_key = any(cell.is_kept for cell in all_cells("key", "widen", size) if cell.stored is stored)
    if may_be_key:
        stream.update(made, key="v")
    else:
        with pytest.raises(BadInput):
            stream.update(made, key="v")
        assert files_of(memory) == {}
        return
    before = files_of(memory)

    for policy in POLICIES:
        for cell in all_cells("key", policy, size):
            if cell.stored is stored and not cell.is_kept:
                incoming = cell.incoming.column(size)
                with pytest.raises(BadInput):
                    stream.update(
                        pa.table({"v": incoming, "n": range(len(incoming))}), key="v", **OPTIONS[policy]
                    )

    assert before == files_of(memory)
    assert stream.version == 0


def test_a_frozen_schema_widens_no_key():
    """Every key that is kept keeps its type."""
    assert {cell.fate for size in SIZES for cell in all_cells("key", "strict", size)} == {
        "same",
        "taken",
        "refused",
    }


@pytest.mark.spark
@pytest.mark.parametrize("size", SIZES)
def test_values_decide_about_spark_frames_too(spark_engine, spark_session, tmp_path, size):
    """What is kept from memory is kept from a Spark frame, and exact."""
    from pyspark.sql.pandas.types import from_arrow_schema

    # A frame for Spark is made from Arrow here, and Arrow's void column is not kept.
    chosen = {
        name: cell
        for name, cell in kept_cells("value", "widen", size).items()
        if not pa.types.is_null(cell.stored.arrow) and not pa.types.is_null(cell.incoming.arrow)
    }
    stream = open_tenant(LocalStorage(tmp_path), spark_engine).stream("Account")
    columns = {
        name: pa.array(padded(cell.stored.values(size)), cell.stored.arrow) for name, cell in chosen.items()
    }
    stream.update(pa.table({"Id": range(ROWS), **columns}), key="Id")
    columns = {
        name: pa.array(padded(cell.incoming.values(size)), cell.incoming.arrow)
        for name, cell in chosen.items()
    }
    table = pa.table({"Id": range(ROWS, 2 * ROWS), **columns})
    stream.update(
        spark_session.createDataFrame(table, from_arrow_schema(table.schema, prefer_timestamp_ntz=True))
    )

    found = stream.read(as_="arrow").sort_by("Id")
    wrong = {
        (cell.stored.name, cell.incoming.name)
        for name, cell in chosen.items()
        if not all(
            map(
                is_exact,
                [*padded(cell.stored.values(size)), *padded(cell.incoming.values(size))],
                found[name].to_pylist(),
            )
        )
    }
    assert wrong == set()


# Headers: any name that is no case twin of another comes back as it was.

NAMES = st.text(st.characters(codec="utf-8"), max_size=12) | st.text(
    st.sampled_from(" .,;{}()=\t\n`'\"%\\/*?[]<>é😀"), max_size=6
)


def names_of(count):
    return st.lists(NAMES, min_size=count, max_size=count, unique_by=lambda name: name.casefold())


@pytest.mark.parametrize("name", ["\x85", "\u2028", "a\u2029b", "\v", "\f", "\x1c", "\r\n", " ", "", "."])
def test_headers_that_break_lines(local, open_on, name):
    """A name may hold what other tools take for the end of a line: log, gc and reader do not."""
    tenant = open_on(local, streams={"Before": {"Id": ["1"]}})
    tenant.stream("Account").update(pa.table({"Id": ["1"], name: ["x"]}), key="Id")

    assert [{"Id": "1", name: "x"}] == open_on(local).stream("Account").read(as_="arrow").to_pylist()
    files = [status.name for status in local.list_below("") if status.name.endswith(".parquet")]
    log = TenantLog(local, Settings())
    assert len(files) == 2
    assert set(files) <= referenced_files(TablesThen(log), log.current_state(), floor=0)


@settings(max_examples=3, suppress_health_check=list(HealthCheck))
@given(names=names_of(100))
def test_any_header_comes_back(names):
    """300 random names, 100 in a stream: values are found under them again after an update."""
    stream = open_tenant().stream("Account")
    rows = {
        "Id": ["1", "2"],
        **{name: [f"{n}", None] for n, name in enumerate(names) if name.casefold() != "id"},
    }
    stream.update(pa.table(rows), key="Id")
    later = {name: [values[0] if name == "Id" else f"{values[0]}!"] for name, values in rows.items()}
    stream.update(pa.table(later))

    expected = [
        {name: values[0] for name, values in later.items()},
        dict.fromkeys(rows) | {"Id": "2"},
    ]
    assert stream.read(as_="arrow").sort_by("Id").to_pylist() == expected
    assert list(rows) == list(stream.read().columns)
