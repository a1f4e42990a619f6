"""The rows that every peer of the update benchmark gets, and what must come out of them.

A cell is a whole number from which its value follows, -1 is null. So the right result is known
without any peer: the numbers of a batch are put over the stored ones where they are not -1. Rows
are compared by a digest that does not depend on their order.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

Rule = Literal["coalesce", "replace"]
Cells = dict[str, np.ndarray]

KEY = "Id"
NULL_SHARE = 0.3
NULL = -1
ROWS_PER_GROUP = 250_000
_DECADES_TWO = 2 * 10**9


@dataclass(frozen=True, slots=True)
class Rows:
    """How many rows are stored and sent, and what is special about the batches."""

    stored: int
    sent: int
    batch_nulls: bool = True
    missing_column: str | None = None
    changed: int | None = None
    """So many rows of a batch really differ; None: all do, and one key in ten is new."""


def _text(prefix: str, suffix: str = "", width: int = 0) -> Callable[[pa.Array], pa.Array]:
    def made(numbers: pa.Array) -> pa.Array:
        digits = pc.utf8_lpad(pc.cast(numbers, pa.string()), width, "0")
        return pc.binary_join_element_wise(prefix, digits, suffix, "")

    return made


def _choice(*texts: str) -> Callable[[pa.Array], pa.Array]:
    return lambda numbers: pc.take(pa.array(texts), numbers)


def _hundredths(numbers: pa.Array) -> pa.Array:
    return pc.divide(pc.cast(numbers, pa.float64()), 100.0)


# Column by column: how many different values there are, and how a number becomes one of them.
COLUMNS: dict[str, tuple[int, Callable[[pa.Array], pa.Array]]] = {
    "Name": (3, _choice("Brightloom", "Quillstack", "Wrenfield")),
    "Email": (10**6, _text("", "@example.com")),
    "Status": (3, _choice("open", "won", "lost")),
    "City": (2, _choice("Ottersby", "Lindenau")),
    "Notes": (10**6, _text("note ")),
    "Employees": (10**6, lambda numbers: numbers),
    "Visits": (10**12, lambda numbers: numbers),
    "Revenue": (10**8, _hundredths),
    "Score": (10**4, _hundredths),
    "IsActive": (2, lambda numbers: pc.equal(numbers, 1)),
    "ModifiedAt": (
        _DECADES_TWO,
        lambda numbers: pc.cast(pc.multiply(numbers, 10**6), pa.timestamp("us", "UTC")),
    ),
}
_KEY_TEXT = _text("00Q", width=9)
_CANONICAL = {
    "Employees": "{}::bigint",
    "Visits": "{}::bigint",
    "Revenue": "{}::double",
    "Score": "{}::double",
    "IsActive": "{}::boolean",
    "ModifiedAt": "epoch_us({}::timestamptz)",
}
_NULLABLE = {
    pa.string(): pd.StringDtype("python"),
    pa.int64(): pd.Int64Dtype(),
    pa.float64(): pd.Float64Dtype(),
    pa.bool_(): pd.BooleanDtype(),
}


def to_pandas(table: pa.Table) -> pd.DataFrame:
    """The rows in pandas types that have room for a missing value."""
    return table.to_pandas(types_mapper=_NULLABLE.get)


def write_rows(rows: Rows, turns: int, folder: Path) -> None:
    """``stored.parquet`` and ``batch-N.parquet`` for each turn."""
    folder.mkdir(parents=True, exist_ok=True)
    cells = _stored(rows)
    order = np.random.default_rng(2).permutation(rows.stored)
    _write(order, {name: numbers[order] for name, numbers in cells.items()}, folder / "stored.parquet")
    for turn in range(turns):
        keys, batch = _batch(rows, turn, cells)
        _write(keys, batch, folder / f"batch-{turn}.parquet")
        cells = _merged(cells, keys, batch, "coalesce")


@cache
def expected_digest(rows: Rows, turns: int, rule: Rule) -> str:
    """The digest of the rows that must be there after so many turns."""
    # The batches follow from the rows that "coalesce" gives, whatever the rule of the answer.
    cells = result = _stored(rows)
    for turn in range(turns):
        keys, batch = _batch(rows, turn, cells)
        if rule == "replace":
            result = _merged(result, keys, batch, "replace")
        cells = _merged(cells, keys, batch, "coalesce")
    result = cells if rule == "coalesce" else result
    return digest(_table(np.arange(len(result["Name"])), result))


def digest(rows: pa.Table | str) -> str:
    """The same for the same rows in any order; ``rows`` are an Arrow table or a pattern of Parquet files."""
    names = ", ".join(
        _CANONICAL.get(name, "{}::varchar").format(f'"{name}"') for name in sorted([KEY, *COLUMNS])
    )
    with duckdb.connect() as connection:
        source = "rows"
        if isinstance(rows, str):
            source = f"read_parquet('{rows}')"
        else:
            connection.register("rows", rows)
        question = f"SELECT count(*), count(DISTINCT {KEY}), sum(hash({names})::hugeint) FROM {source}"
        answer = connection.execute(question).fetchone()
    return hashlib.sha256(repr(answer).encode()).hexdigest()[:16]


def _stored(rows: Rows) -> Cells:
    return _random_cells(rows.stored, np.random.default_rng(1), with_nulls=True)


def _batch(rows: Rows, turn: int, cells: Cells) -> tuple[np.ndarray, Cells]:
    random = np.random.default_rng(100 + turn)
    stored = len(cells["Name"])
    if rows.changed is not None:
        keys = random.choice(stored, rows.sent, replace=False)
        batch = {name: numbers[keys] for name, numbers in cells.items()}
        size, _ = COLUMNS["Employees"]
        batch["Employees"][: rows.changed] = (batch["Employees"][: rows.changed] + 1) % size
    else:
        new = rows.sent // 10
        keys = np.concatenate(
            [random.choice(stored, rows.sent - new, replace=False), np.arange(stored, stored + new)]
        )
        batch = _random_cells(rows.sent, random, with_nulls=rows.batch_nulls)
    order = random.permutation(len(keys))
    return keys[order], {
        name: numbers[order] for name, numbers in batch.items() if name != rows.missing_column
    }


def _random_cells(count: int, random: np.random.Generator, *, with_nulls: bool) -> Cells:
    cells = {}
    for name, (size, _) in COLUMNS.items():
        numbers = random.integers(0, size, count)
        if with_nulls:
            numbers[random.random(count) < NULL_SHARE] = NULL
        cells[name] = numbers
    return cells


def _merged(cells: Cells, keys: np.ndarray, batch: Cells, rule: Rule) -> Cells:
    merged = {}
    count = max(len(cells["Name"]), int(keys.max()) + 1)
    for name, numbers in cells.items():
        result = np.full(count, NULL, dtype=np.int64)
        result[: len(numbers)] = numbers
        given = batch.get(name, np.full(len(keys), NULL))
        result[keys] = given if rule == "replace" else np.where(given == NULL, result[keys], given)
        merged[name] = result
    return merged


def _write(keys: np.ndarray, cells: Cells, path: Path) -> None:
    pq.write_table(_table(keys, cells), path, row_group_size=ROWS_PER_GROUP)


def _table(keys: np.ndarray, cells: Cells) -> pa.Table:
    columns = {KEY: _KEY_TEXT(pa.array(keys, pa.int64()))}
    for name, numbers in cells.items():
        columns[name] = COLUMNS[name][1](pa.array(numbers, pa.int64(), mask=numbers == NULL))
    return pa.table(columns)
