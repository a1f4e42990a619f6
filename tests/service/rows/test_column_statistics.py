"""What columns hold: exact where all rows are read, honest where they are not, kept by version."""

import decimal
import shutil
from datetime import UTC, date, datetime

import pyarrow as pa
import pytest
from tests import given

from freezeframe.errors import MissingColumn
from freezeframe.service.rows.column_statistics import StatisticsCache, stream_statistics
from freezeframe.service.rows.streams import Moment
from freezeframe.storage import LocalStorage

ROWS = 100
MOMENT = datetime(2026, 11, 20, 14, 5, 0, 123456, tzinfo=UTC)


@pytest.fixture(scope="module")
def tenant(tmp_path_factory):
    """A column of each kind, some with nulls."""
    tenant = given.tenant(LocalStorage(tmp_path_factory.mktemp("tenant")), vectors_from_bytes=0)
    numbers = range(ROWS)
    table = pa.table(
        {
            "Id": [2**53 + n for n in numbers],
            "City": [None if n % 4 == 0 else ("Bern" if n % 2 else "Basel") for n in numbers],
            "Amount": [float("nan") if n == 0 else n / 2 for n in numbers],
            "Price": [decimal.Decimal(n) / 100 for n in numbers],
            "Born": [date(2000, 1, 1 + n % 28) for n in numbers],
            "At": pa.array([MOMENT] * ROWS, pa.timestamp("us", tz="UTC")),
            "Is": [n % 2 == 0 for n in numbers],
            "Tags": [[n] for n in numbers],
            "Raw": pa.array([b"\x00"] * ROWS, pa.binary()),
            "Long": ["x" * 1000] * ROWS,
            "Empty": pa.nulls(ROWS, pa.string()),
        }
    )
    tenant.stream("Invoice").update(table, "Id")
    return tenant


def statistics(tenant, **options):
    cache = options.pop("cache", None) or StatisticsCache()
    moment = options.pop("moment", Moment())
    found = stream_statistics(tenant, "Invoice", moment, cache, **options)
    return found, {column.name: column for column in found.columns}


def test_columns_of_every_kind_are_told(tenant):
    """Nulls, distinct values and ends are those of all rows; large integers and dates are text."""
    found, by_name = statistics(tenant)
    assert (found.version, found.rows, len(found.columns)) == (0, ROWS, 11)
    assert all(
        (column.rows_read, column.nulls_of_all, column.ends_of_all) == (ROWS, True, True)
        for column in found.columns
    )
    told = {name: (one.nulls, one.distinct, one.low, one.high) for name, one in by_name.items()}
    assert (0, ROWS, str(2**53), str(2**53 + ROWS - 1)) == told["Id"]
    assert told["City"] == (25, 2, "Basel", "Bern")
    assert told["Amount"] == (0, ROWS, 0.5, 49.5)
    assert (*told["Price"][:2], *(str(item) for item in told["Price"][2:])) == (0, ROWS, "0.00", "0.99")
    assert told["Born"] == (0, 28, "2000-01-01", "2000-01-28")
    assert (0, 1, MOMENT.isoformat(), MOMENT.isoformat()) == told["At"]
    assert told["Is"] == (0, 2, False, True)
    assert told["Tags"] == (0, None, None, None)
    assert told["Raw"] == (0, 1, None, None)
    assert told["Empty"] == (ROWS, 0, None, None)
    assert len(told["Long"][2]) < 250


def test_of_a_large_stream_the_first_rows_are_read_and_the_log_tells_the_rest(tenant):
    """Nulls come from the log for all rows, and ends where the log has them exactly: of numbers and dates."""
    _, by_name = statistics(tenant, rows_max=10)
    assert {item.rows_read for item in by_name.values()} == {10}
    city, number = by_name["City"], by_name["Id"]
    assert (city.nulls, city.nulls_of_all, city.ends_of_all) == (25, True, False)
    assert (str(2**53 + ROWS - 1), True, 10) == (number.high, number.ends_of_all, number.distinct)


def test_rows_deleted_in_files_spoil_what_the_log_says(tenant, tmp_path):
    """Then the figures are those of the rows that were read, and say so."""
    other = given.tenant(LocalStorage(tmp_path), vectors_from_bytes=0)
    stream = other.stream("Invoice")
    stream.update(pa.table({"Id": list(range(50)), "V": [None, 1] * 25}), "Id")
    stream.update(pa.table({"Id": [1], "V": [7]}), "Id")
    _, by_name = statistics(other, rows_max=10)
    assert (by_name["V"].nulls_of_all, by_name["V"].ends_of_all) == (False, False)


def test_what_is_not_read_in_time_is_said_and_can_be_asked_for(tenant):
    """One column is always read; those that are left out have no figures until they are named."""
    cache = StatisticsCache()
    _, by_name = statistics(tenant, seconds_max=0, cache=cache)
    assert [by_name[name].rows_read for name in ("Id", "City")] == [ROWS, 0]
    _, by_name = statistics(tenant, seconds_max=0, cache=cache, columns=["City"])
    assert (list(by_name), by_name["City"].rows_read) == (["City"], ROWS)
    _, by_name = statistics(tenant, seconds_max=0, cache=cache)
    assert [by_name[name].rows_read for name in ("Id", "City")] == [ROWS, ROWS]
    with pytest.raises(MissingColumn):
        statistics(tenant, columns=["Nobody"])


def test_the_oldest_of_what_is_kept_goes_first(tenant):
    """A cache of one table forgets the first when a second comes."""
    cache = StatisticsCache(kept_max=1)
    statistics(tenant, cache=cache)
    tenant.stream("Other").update(pa.table({"Id": [1]}), "Id")
    stream_statistics(tenant, "Other", Moment(), cache)
    _, by_name = statistics(tenant, seconds_max=0, cache=cache)
    assert by_name["City"].rows_read == 0


def test_statistics_are_those_of_the_table_as_it_is_now(tmp_path):
    """Where a backup was put back and went on, or the folder was made anew, with the same versions."""
    folder, backup, cache, found = tmp_path / "t", tmp_path / "backup", StatisticsCache(), []

    def write(value):
        tenant = given.tenant(LocalStorage(folder), streams={"A": {"Id": [1], "v": [value]}})
        found.append(stream_statistics(tenant, "A", Moment(), cache, columns=["v"]).columns[0].low)

    write(1)
    shutil.copytree(folder, backup)
    write(2)
    shutil.rmtree(folder)
    shutil.copytree(backup, folder)
    write(3)
    shutil.rmtree(folder)
    write(4)
    write(5)

    assert found == [1, 2, 3, 4, 5]
