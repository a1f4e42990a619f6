"""What an update says that it did: counts, versions, and the very rows."""

import json
import pickle
import re

import pandas as pd
import pyarrow as pa
import pytest
from tests.given import counts

from freezeframe.errors import InvalidOption
from freezeframe.script import open_tenant
from freezeframe.store.model.receipt import html_table, rows_html

ROWS = pd.DataFrame({"Id": ["1", "2"], "v": ["a", "b"]})


def test_a_receipt_is_a_plain_value(open_on, memory):
    """It is JSON, it is equal to its copy, and a copy in another process says where to ask."""
    tenant = open_on(memory)
    receipt = tenant.stream("A").update(ROWS, key="Id")
    counts = {"inserted": 2, "updated": 0, "unchanged": 0, "deleted": 0, "null_keys_dropped": 0}
    columns = {"columns_added": ["Id", "v"], "columns_dropped": [], "columns_missing": []}
    versions = {"tenant_version": 0, "stream_version": 0, "committed": True, "stream": "A", "engine": ""}
    cost = {"bytes_written": receipt.bytes_written, "seconds": receipt.seconds}

    assert {**counts, **columns, **versions, **cost} == json.loads(json.dumps(receipt.to_json()))
    assert min(cost.values()) > 0
    copied = pickle.loads(pickle.dumps(receipt))
    assert receipt == copied
    with pytest.raises(InvalidOption, match=r"changes\(until=0\)"):
        copied.changed_rows()
    assert list(receipt.changed_rows()["_change_type"]) == ["insert", "insert"]
    assert isinstance(receipt.changed_rows("arrow"), pa.Table)
    nothing = tenant.stream("B").update(pd.DataFrame(), key="Id")
    assert (nothing.version, nothing.committed, len(nothing.changed_rows())) == (0, False, 0)
    reserved = tenant.stream("B").update(ROWS.assign(_before=1), key="Id")
    with pytest.raises(InvalidOption, match="'_before'"):
        reserved.changed_rows()


def test_changed_rows_are_those_of_the_update_alone(tmp_path):
    """Others' commits before and after are left out, however late they are asked for."""
    stream = open_tenant(tmp_path).stream("A")
    stream.update(ROWS, key="Id")
    mine = stream.update(pd.DataFrame({"Id": ["2", "3"], "v": ["B", "c"]}), key="Id")
    same = stream.update(pd.DataFrame({"Id": ["2"], "v": ["B"]}), key="Id")
    stream.update(pd.DataFrame({"Id": ["1"], "v": ["other"]}), key="Id")

    found = mine.changed_rows("arrow").to_pylist()

    assert found == [
        {"_change_type": "update", "Id": "2", "v": "B", "_before": {"Id": "2", "v": "b"}},
        {"_change_type": "insert", "Id": "3", "v": "c", "_before": None},
    ]
    assert list(same.changed_rows().columns) == ["_change_type", "Id", "v", "_before"]
    assert len(same.changed_rows()) == 0


def test_columns_that_the_rows_lack_are_told(open_finding, memory):
    """By an upsert, also of a row that it leaves; not without rows. A replaced content has dropped them."""
    stream = open_finding(memory).stream("A")
    stream.update(pa.table({"Id": ["1"], "v": ["a"], "w": ["b"]}), "Id")
    same = stream.update(pa.table({"Id": ["1"], "w": ["b"]}))
    more = stream.update(pa.table({"Id": ["2"], "n": [1]}))
    none = stream.update(pa.table({"Id": ["2"], "n": [1]}).slice(1), drop_column="w")
    whole = stream.update(pa.table({"Id": ["2"], "n": [1]}), override=True, key="Id")

    assert [(item.committed, item.columns_missing) for item in (same, more)] == [
        (False, ("v",)),
        (True, ("v", "w")),
    ]
    assert [(item.columns_dropped, item.columns_missing) for item in (none, whole)] == [
        (("w",), ()),
        (("v",), ()),
    ]


def test_a_preview_keeps_nothing(open_on, local):
    """Of a stream that is not there yet: what would be inserted, and no trace of it."""
    stream = open_on(local).stream("A")

    receipt = stream.preview(ROWS, key="Id")

    assert (receipt.inserted, receipt.version, receipt.committed) == (2, -1, False)
    assert list(receipt.changed_rows()["_change_type"]) == ["insert", "insert"]
    assert len(stream.preview(pd.DataFrame(), key="Id").changed_rows()) == 0
    assert [path for path in local.local_path("").rglob("*") if path.is_file()] == []


def test_a_preview_tells_what_an_update_would_do(tmp_path):
    stream = open_tenant(tmp_path).stream("A")
    stream.update(ROWS, key="Id")
    batch = pd.DataFrame({"Id": ["2", "3"], "v": ["B", "c"]})
    before = sorted(path for path in tmp_path.rglob("*") if path.is_file())

    told = stream.preview(batch, mode="full")

    assert before == sorted(path for path in tmp_path.rglob("*") if path.is_file())
    assert (told.version, told.committed) == (0, False)
    done = stream.update(batch, mode="full")
    assert told.counts == done.counts
    assert done.changed_rows("arrow") == told.changed_rows("arrow")


def test_in_a_job_changed_rows_are_known_before_the_commit(tmp_path):
    tenant = open_tenant(tmp_path)
    tenant.stream("A").update(ROWS, key="Id")
    with tenant.job("job 1") as job:
        receipt = job.stream("A").update(pd.DataFrame({"Id": ["2", "3"], "v": ["B", "c"]}))
        kinds = list(receipt.changed_rows()["_change_type"])
        seen_by_others = len(tenant.stream("A").read())

    assert (kinds, seen_by_others) == (["update", "insert"], 2)
    assert kinds == list(job.receipt.streams["A"].changed_rows()["_change_type"])


def test_under_another_key_rows_are_compared_whole(tmp_path):
    """What was many rows of the new key before is not joined with one: rows went, and others came."""
    stream = open_tenant(tmp_path).stream("A")
    stream.update(pd.DataFrame({"Id": ["1", "2", "3"], "v": ["a", "a", "b"]}), key="Id")

    receipt = stream.update(pd.DataFrame({"Id": ["1", "4"], "v": ["a", "b"]}), key="v", override=True)

    changed = receipt.changed_rows("arrow").select(["_change_type", "Id"]).to_pylist()
    assert sorted(tuple(row.values()) for row in changed) == [
        ("delete", "2"),
        ("delete", "3"),
        ("insert", "4"),
    ]
    assert counts(receipt) == (1, 0, 1, 2)


def cells(html):
    """The texts of a table by row, headings among them."""
    rows = re.findall(r"<tr>(.*?)</tr>", html)
    return [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in rows]


def caption(html):
    return re.findall(r"<caption[^>]*>(.*?)</caption>", html)


def kept(tmp_path):
    """A tenant of two versions: one stream and one file more in the second."""
    tenant = open_tenant(tmp_path / "snapshots")
    first = tenant.stream("Account").update(pd.DataFrame({"Id": ["1", "2"], "n": [1, 2]}), "Id")
    with tenant.job("load-7") as job:
        job.stream("Account").update(pd.DataFrame({"Id": ["2", "3"], "n": [9, 3]}), "Id")
        job.stream("A&B").update(pd.DataFrame({"<i>": ["x"]}), "<i>")
        job.files.write_text("a&b.txt", "1")
    return tenant, first, job.receipt


def test_text_is_escaped_and_none_is_empty():
    html = html_table("<b>", ("&",), [("<script>",), (None,), (True,), (7,)])

    assert caption(html) == ["&lt;b&gt;"]
    assert cells(html) == [["&amp;"], ["&lt;script&gt;"], [""], ["True"], ["7"]]


def test_each_value_shows_a_table(tmp_path):
    """A tenant now, at a version and before its first one, a stream, a difference, receipts."""
    tenant, first, job = kept(tmp_path)
    again = tenant.stream("Account").update(pd.DataFrame({"Id": ["1"], "n": [1]}), "Id")
    empty = open_tenant(tmp_path / "none")
    stream, different = tenant.stream("Account")._repr_html_(), tenant.diff(0, 1)._repr_html_()

    assert [f"{tenant.context.storage.root}, version 1"] == caption(tenant._repr_html_())
    assert cells(tenant._repr_html_()) == [
        ["stream", "rows", "key", "changed in version"],
        ["A&amp;B", "1", "&lt;i&gt;", "1"],
        ["Account", "3", "Id", "1"],
    ]
    assert cells(tenant.at(0)._repr_html_())[1] == ["Account", "2", "Id", "0"]
    assert len(cells(empty._repr_html_())) == 1
    assert caption(empty.stream("Account")._repr_html_()) == ["Account, before its first update"]
    assert caption(stream) == ["Account, 3 rows, key Id, version 1"]
    assert cells(stream)[:2] == [["Id", "n"], ["1", "1"]]
    assert caption(different) == ["Version 0 to 1", "Files"]
    assert cells(different) == [
        ["stream", "inserted", "updated", "unchanged", "deleted", ""],
        ["A&amp;B", "1", "0", "0", "0", "added"],
        ["Account", "1", "1", "0", "0", "changed"],
        ["file", ""],
        ["a&amp;b.txt", "added"],
    ]
    assert caption(tenant.diff(1, 1)._repr_html_()) == ["Version 1 to 1: nothing differs"]
    assert caption(first._repr_html_()) == ["Account, version 0"]
    assert cells(first._repr_html_())[1] == ["Account", "2", "0", "0", "0"]
    assert caption(again._repr_html_()) == ["Account, nothing committed"]
    assert caption(job._repr_html_()) == ["Job load-7, version 1", "Files"]
    assert ["a&amp;b.txt", "written"] in cells(job._repr_html_())


def test_a_tenant_of_many_streams_shows_the_first_ones(tmp_path):
    tenant = open_tenant(tmp_path / "snapshots")
    with tenant.job() as job:
        job.update({f"s{number:02}": pd.DataFrame({"Id": [1]}) for number in range(51)}, "Id")
    html = tenant._repr_html_()

    assert (len(cells(html)), caption(html)[0].endswith("the first 50 of 51 streams")) == (51, True)


def test_notebooks_show_dates_that_python_does_not_have():
    """As text in ISO 8601."""
    far = pa.array([4_000_000], pa.int32()).cast(pa.date32())
    assert "+12921-08-18" in rows_html("Account", pa.table({"Day": far}))
