"""What a notebook shows of a tenant, a stream, a difference and a receipt."""

import re

import pandas as pd

from freezeframe.script.tenants import open_tenant
from freezeframe.store.model.receipt import html_table


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
    """Nothing that a tenant holds becomes markup."""
    html = html_table("<b>", ("&",), [("<script>",), (None,), (True,), (7,)])

    assert (
        caption(html),
        cells(html),
    ) == (["&lt;b&gt;"], [["&amp;"], ["&lt;script&gt;"], [""], ["True"], ["7"]])


def test_a_tenant_shows_its_streams(tmp_path):
    """Rows, key and the version of the last change of each stream, now and at a version."""
    tenant, _, _ = kept(tmp_path)
    then = tenant.at(0)._repr_html_()

    assert [f"{tenant.place.storage.root}, version 1"] == caption(tenant._repr_html_())
    assert cells(tenant._repr_html_()) == [
        ["stream", "rows", "key", "changed in version"],
        ["A&amp;B", "1", "&lt;i&gt;", "1"],
        ["Account", "3", "Id", "1"],
    ]
    assert cells(then)[1] == ["Account", "2", "Id", "0"]


def test_a_tenant_of_many_streams_shows_the_first_ones(tmp_path):
    """Only those that are shown are opened."""
    tenant = open_tenant(tmp_path / "snapshots")
    with tenant.job() as job:
        job.update({f"s{number:02}": pd.DataFrame({"Id": [1]}) for number in range(51)}, "Id")
    html = tenant._repr_html_()

    assert (len(cells(html)), caption(html)[0].endswith("the first 50 of 51 streams")) == (51, True)


def test_a_new_tenant_shows_an_empty_table(tmp_path):
    """Before the first commit there is nothing, and nothing fails."""
    tenant = open_tenant(tmp_path / "none")

    assert len(cells(tenant._repr_html_())) == 1
    assert caption(tenant.stream("Account")._repr_html_()) == ["Account, before its first update"]


def test_a_stream_shows_its_columns(tmp_path):
    """Names and types, and how many rows there are."""
    tenant, _, _ = kept(tmp_path)
    html = tenant.stream("Account")._repr_html_()

    assert caption(html) == ["Account, 3 rows, key Id, version 1"]
    assert cells(html) == [["column", "type"], ["Id", "string"], ["n", "int64"]]


def test_a_difference_shows_counts_and_files(tmp_path):
    """What became of each stream's rows, and of each file; two equal versions differ in nothing."""
    tenant, _, _ = kept(tmp_path)
    html = tenant.diff(0, 1)._repr_html_()

    assert caption(html) == ["Version 0 to 1", "Files"]
    assert cells(html) == [
        ["stream", "inserted", "updated", "unchanged", "deleted", ""],
        ["A&amp;B", "1", "0", "0", "0", "added"],
        ["Account", "1", "1", "0", "0", "changed"],
        ["file", ""],
        ["a&amp;b.txt", "added"],
    ]
    assert caption(tenant.diff(1, 1)._repr_html_()) == ["Version 1 to 1: nothing differs"]


def test_receipts_show_counts(tmp_path):
    """Of one update, and of a job with its files; where nothing was committed that is said."""
    tenant, first, job = kept(tmp_path)
    again = tenant.stream("Account").update(pd.DataFrame({"Id": ["1"], "n": [1]}), "Id")

    assert (
        caption(first._repr_html_()),
        cells(first._repr_html_())[1],
    ) == (["Account, version 0"], ["Account", "2", "0", "0", "0"])
    assert caption(again._repr_html_()) == ["Account, nothing committed"]
    assert caption(job._repr_html_()) == ["Job load-7, version 1", "Files"]
    assert ["a&amp;b.txt", "written"] in cells(job._repr_html_())
