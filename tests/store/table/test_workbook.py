"""An Excel workbook has each value as Excel's own, or as text where Excel would change it."""

import io
from datetime import UTC, date, datetime, time
from decimal import Decimal

import openpyxl
import pyarrow as pa
import pytest
from openpyxl.utils.escape import unescape

from freezeframe.errors import BadInput, TooLarge
from freezeframe.script.inputs.transfer import stream_pieces
from freezeframe.store.table import workbook
from freezeframe.store.table.written_rows import file_pieces

NEW = datetime(2026, 2, 28)  # noqa: DTZ001 - Excel knows no zones


def cells(table):
    """The rows of the workbook of a table, its header first, as another library reads them."""
    content = io.BytesIO(b"".join(file_pieces("xlsx", table.to_reader(2), table.schema)))
    sheet = openpyxl.load_workbook(content).active
    return [[read(cell.value) for cell in row] for row in sheet.iter_rows()], sheet


def read(value):
    """A cell's value as Excel shows it: openpyxl leaves the escapes of control characters in place."""
    return unescape(value) if isinstance(value, str) else value


@pytest.mark.parametrize(
    ("values", "kind", "expected"),
    [
        (["007", "=1+1", "", None, "+49", "a\nb", "<&>", "\x01 _x0041_"], pa.string(), None),
        (["https://example.org", "1e5", "2026-01-02"], pa.string(), None),
        (
            ["<r>a & b</r>", "<r><t>Ann</t></r>", '<r></r></is></c><c r="B2"><f>1+1</f></c><r></r>'],
            pa.string(),
            None,
        ),
        ([1, None, -(10**15 - 1), 10**15], pa.int64(), [1, None, -(10**15 - 1), "1000000000000000"]),
        ([0.5, None, float("nan"), float("-inf")], pa.float64(), [0.5, None, "NaN", "-inf"]),
        ([True, None, False], pa.bool_(), None),
        ([Decimal("10.50"), None, Decimal("-0.01")], pa.decimal128(38, 2), [10.5, None, -0.01]),
        (
            [Decimal("1234567890123456.00"), Decimal("12345678901234.5"), Decimal(1000000000000000)],
            pa.decimal128(38, 2),
            ["1234567890123456.00", 12345678901234.5, "1000000000000000.00"],
        ),
        (
            [date(2026, 2, 28), date(1900, 2, 28), None, date(9999, 12, 31)],
            pa.date32(),
            [NEW, "1900-02-28", None, NEW.replace(year=9999, month=12, day=31)],
        ),
        (
            [datetime(2026, 1, 2, 3, 4, 5, 678000, UTC), datetime(1800, 1, 2, tzinfo=UTC)],
            pa.timestamp("us", "UTC"),
            [
                NEW.replace(month=1, day=2, hour=3, minute=4, second=5, microsecond=678000),
                "1800-01-02 00:00:00+00:00",
            ],
        ),
        ([time(1, 2, 3)], pa.time64("us"), ["01:02:03.000000"]),
        ([b"\xff"], pa.binary(), ["/w=="]),
        ([[{"a": 1}], []], pa.list_(pa.struct([("a", pa.int64())])), ['[{"a": 1}]', "[]"]),
    ],
)
def test_values_stay_what_they_are(values, kind, expected):
    """Text is text and never a formula; numbers, dates and times are Excel's where these are exact."""
    rows, sheet = cells(pa.table({"=A1": pa.array(values, kind)}))

    assert [["=A1"], *([value] for value in (values if expected is None else expected))] == rows
    assert "f" not in {cell.data_type for row in sheet.iter_rows() for cell in row}


def test_a_workbook_of_no_rows_has_its_header():
    assert [["a", "b"]] == cells(pa.table({"a": pa.array([], pa.int64()), "b": pa.array([], pa.string())}))[0]


def test_a_text_that_no_cell_holds_is_refused():
    """Excel would cut it off."""
    fits, longer = ("x" * length for length in (workbook.LETTERS_MAX, workbook.LETTERS_MAX + 1))
    assert [["t"], [fits]] == cells(pa.table({"t": [fits]}))[0]
    with pytest.raises(BadInput, match="U\\+FFFE"):
        cells(pa.table({"t": ["a\ufffe"]}))
    with pytest.raises(BadInput, match="32,768 letters"):
        cells(pa.table({"t": [longer]}))


def test_what_does_not_fit_is_refused_before_anything_is_read(open_finding, memory, monkeypatch):
    """Rows and columns are counted by the log."""
    stream = open_finding(memory).stream("A")
    stream.update(pa.table({"Id": [1, 2], "v": [1, 2]}), key="Id")
    for name in [item.name for item in memory.list_below("") if item.name.endswith(".parquet")]:
        memory.delete(name)
    for limit in ("ROWS_MAX", "COLUMNS_MAX"):
        with monkeypatch.context() as patch:
            patch.setattr(workbook, limit, 1)
            with pytest.raises(TooLarge, match="2 rows of 2 columns"):
                next(stream_pieces(stream.snapshot(), "xlsx"))
