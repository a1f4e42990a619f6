"""The first rows of a stream by any column: in order, missing values last, pages that fit together."""

import itertools

import pyarrow as pa
import pytest
from tests import given

from freezeframe.errors import InvalidOption, MissingColumn, TooLarge
from freezeframe.service.rows import search as subject
from freezeframe.service.rows.search import SortOrder, Window, sorted_rows
from freezeframe.service.rows.streams import Moment
from freezeframe.storage import LocalStorage

ROWS = 3000
NAN = float("nan")


@pytest.fixture(scope="module")
def tenant(tmp_path_factory):
    """A stream of two files and deleted rows among them."""
    tenant = given.tenant(LocalStorage(tmp_path_factory.mktemp("tenant")), vectors_from_bytes=0)
    numbers = range(ROWS)
    tenant.stream("Invoice").update(
        pa.table(
            {
                "Id": list(numbers),
                "Amount": [
                    None if n % 7 == 0 else NAN if n % 11 == 0 else float(n * 37 % 1000) for n in numbers
                ],
                "City": ["Bern"] * ROWS,
                "Tags": [[n] for n in numbers],
            }
        ),
        "Id",
    )
    tenant.stream("Invoice").update(pa.table({"Id": [5, ROWS], "Amount": [5000.0, -1.0]}), "Id")
    return tenant


def ids(tenant, order, **options):
    return sorted_rows(tenant, "Invoice", Moment(), order, **options).rows["Id"].to_pylist()


@pytest.mark.parametrize("is_down", [False, True])
def test_pages_make_up_the_whole_order(tenant, is_down):
    """Every page of a sort is the same piece of one order: by the column, then by the key, nulls last."""
    rows = tenant.stream("Invoice").read(as_="arrow").to_pylist()
    sign = -1 if is_down else 1
    expected = sorted(
        rows,
        key=lambda row: (
            row["Amount"] is None,
            row["Amount"] is not None and row["Amount"] != row["Amount"],
            0 if row["Amount"] is None or row["Amount"] != row["Amount"] else sign * row["Amount"],
            row["Id"],
        ),
    )
    order = SortOrder("Amount", is_down=is_down)
    pages = [ids(tenant, order, window=Window(start, 700)) for start in range(0, len(rows), 700)]
    assert [row["Id"] for row in expected] == list(itertools.chain.from_iterable(pages))


def test_only_rows_that_meet_the_conditions_are_sorted_and_counted(tenant):
    """The total is theirs; columns are those that are asked for, the sort's own need not be among them."""
    seen = sorted_rows(
        tenant,
        "Invoice",
        Moment(),
        SortOrder("Amount", is_down=True),
        columns=["City", "Id"],
        where=["Id < 100"],
        window=Window(limit=2),
    )
    assert (seen.total, seen.rows.column_names, seen.rows["Id"][0].as_py()) == (100, ["City", "Id"], 5)
    nothing = sorted_rows(tenant, "Invoice", Moment(), SortOrder("Amount"), where=["Id < 0"])
    assert (nothing.total, len(nothing.rows)) == (0, 0)


def test_the_past_is_sorted_as_it_was(tenant):
    """The greatest amount of version 0 is not the one that came with version 1."""
    seen = sorted_rows(
        tenant, "Invoice", Moment(version=0), SortOrder("Amount", is_down=True), window=Window(limit=1)
    )
    assert seen.rows["Amount"][0].as_py() == 999.0


def test_what_cannot_be_sorted_is_refused_in_words(tenant):
    """A list has no order, a name may not be a column, a page may lie too deep."""
    with pytest.raises(InvalidOption):
        ids(tenant, SortOrder("Tags"))
    with pytest.raises(MissingColumn):
        ids(tenant, SortOrder("Nobody"))
    with pytest.raises(TooLarge, match="10,000"):
        ids(tenant, SortOrder("Id"), window=Window(9_999))


def test_a_stream_of_too_many_cells_is_refused_until_less_is_asked_for(tenant, monkeypatch):
    """Fewer columns may be few enough, and so may the files that conditions leave."""
    stream = tenant.stream("Log")
    for first in (0, ROWS):
        numbers = list(range(first, first + ROWS))
        stream.update(pa.table({"Id": numbers, "A": numbers, "B": numbers}), "Id")
    monkeypatch.setattr(subject, "CELLS_MAX", 4 * ROWS)

    def found(**options):
        return sorted_rows(
            tenant, "Log", Moment(), SortOrder("A", is_down=True), window=Window(limit=1), **options
        )

    with pytest.raises(TooLarge, match="6,000 rows of 3 columns are too many"):
        found()
    assert found(columns=["A"]).rows["A"][0].as_py() == 2 * ROWS - 1
    assert found(where=[f"Id < {ROWS}"]).rows["A"][0].as_py() == ROWS - 1
