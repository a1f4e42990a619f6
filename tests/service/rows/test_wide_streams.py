"""The work for a stream grows with its columns, and not with their square."""

import io
import time

import pyarrow as pa
import pytest

from freezeframe.script.tenant import stores
from freezeframe.service.rows.import_preview import ImportFile, import_preview
from freezeframe.service.rows.row_previews import ChangesWanted, Moment, RowsWanted, change_preview, preview

pytestmark = pytest.mark.long
FEW, MANY = 500, 2_000
RATIO_MAX = 9  # 4 is linear, 16 is quadratic


def _rows(ids, value, count):
    return pa.table({"id": ids, **{f"c{number}": [value, "b"] for number in range(count)}})


def _csv(count):
    names = ",".join(f"c{number}" for number in range(count))
    return io.BytesIO(f"id,{names}\n2{',x' * count}\n".encode())


def _seconds(folder, count):
    """The processor's time of each verb, in this thread."""
    tenant = stores.open(folder).tenant("acme", create=True)
    stream = tenant.stream("Wide")
    stream.update(_rows(["1", "2"], "a", count), key=["id"])
    verbs = {
        "update": lambda: stream.update(_rows(["2", "3"], "x", count), key=["id"]),
        "read": lambda: stream.read(as_="arrow"),
        "changes": lambda: stream.changes(0),
        "preview": lambda: list(preview(stream, Moment(), RowsWanted()).json_rows()),
        "difference": lambda: list(change_preview(stream, 0, None, ChangesWanted()).json_rows()),
        "import preview": lambda: import_preview(tenant, "New", ImportFile("csv", _csv(count)), ("id",), {}),
        "import preview of stored": lambda: import_preview(
            tenant, "Wide", ImportFile("csv", _csv(count)), ("id",), {}
        ),
    }
    found = {}
    for name, verb in verbs.items():
        began = time.thread_time()
        verb()
        found[name] = time.thread_time() - began
    return found


def test_four_times_the_columns_are_about_four_times_the_work(tmp_path):
    """At every verb; what is loaded at first use is loaded by a smaller stream before."""
    _seconds(tmp_path / "first", 10)
    few, many = _seconds(tmp_path / "few", FEW), _seconds(tmp_path / "many", MANY)
    ratios = {name: round(many[name] / few[name], 1) for name in many}

    assert {name: ratio for name, ratio in ratios.items() if ratio > RATIO_MAX} == {}, (few, many)
