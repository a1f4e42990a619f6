"""Sorted rows, statistics, the preview of an import and the return of single rows, over HTTP."""

from pathlib import Path

import pyarrow as pa
import pytest

CSV = {"content-type": "text/csv"}


@pytest.fixture(scope="module")
def tenant(served):
    """The path of a tenant with a stream of two versions, and the tenant itself."""
    path = served.tenant("views")
    tenant = served.service.stores.environment("dev").tenant("views")
    stream = tenant.stream("Account")
    stream.update(pa.table({"Id": ["007", "1", "2"], "City": ["Bern", "Basel", None], "N": [3, 1, 2]}), "Id")
    stream.update(
        pa.table({"Id": ["007", "1", "9"], "City": ["Bern", "Chur", "Zug"], "N": [3, 2**60, 9]}),
        "Id",
        override=True,
    )
    return path, tenant


def test_rows_come_in_the_order_that_is_asked_for(api, tenant):
    """Down or up, a page at a time, with the total; what cannot be sorted by is a problem."""
    url = f"{tenant[0]}/streams/Account/sorted-rows"
    first = api.get(url, params={"by": "N", "descending": "true", "limit": 2}).json()
    assert (first["total"], [row["Id"] for row in first["rows"]]) == (3, ["1", "9"])
    rest = api.get(url, params={"by": "N", "descending": "true", "offset": 2, "columns": ["City"]}).json()
    assert rest["rows"] == [{"City": "Bern"}]
    past = api.get(url, params={"by": "N", "tenant_version": 0, "limit": 1}).json()
    assert past["rows"][0]["City"] == "Basel"
    assert api.get(url, params={"by": "Nobody"}).status_code == 422
    assert api.get(url, params={"by": "N", "offset": 10_000}).status_code == 413


def test_columns_tell_what_they_hold(api, tenant):
    """Statistics of every column, or of those that are named, also of the past."""
    url = f"{tenant[0]}/streams/Account/statistics"
    body = api.get(url).json()
    assert (body["rows"], [item["name"] for item in body["columns"]]) == (3, ["Id", "City", "N"])
    assert (str(2**60), 3) == (body["columns"][2]["high"], body["columns"][2]["distinct"])
    past = api.get(url, params={"tenant_version": 0, "columns": ["City"]}).json()["columns"]
    assert [(item["nulls"], item["distinct"]) for item in past] == [(1, 2)]


def test_an_import_is_told_before_it_is_a_job(api, tenant):
    """Counts and examples; no job and no version come of it."""
    url = f"{tenant[0]}/streams/Account/import-preview"
    before = tenant[1].version
    body = api.post(url, content=b"Id,City\n1,Wil\n5,Thun\n", headers=CSV).json()
    assert (body["counts"]["inserted"], body["counts"]["updated"], body["problem"]) == (1, 1, None)
    assert tuple(body["examples"][0][side]["City"] for side in ("before", "after")) == ("Chur", "Wil")
    refused = api.post(f"{url}?mode=full", content=b"Id\n1\n", headers=CSV).json()
    assert refused["problem"]["code"] == "TOO_MANY_DELETIONS"
    head = api.post(f"{url}?beginning=true", content=b"Id,City\n1,Wil\n5,Th", headers=CSV).json()
    assert (head["rows"], head["counts"]) == (1, None)
    assert api.post(url, content=b"", headers={"content-type": "text/plain"}).status_code == 400
    too_long = b"Id\n" + b"1\n" * (9 * 1024 * 1024)
    assert api.post(url, content=too_long, headers=CSV).status_code == 413
    assert (before, []) == (tenant[1].version, api.get(f"{tenant[0]}/jobs").json()["jobs"])


def test_rows_are_brought_back_by_key(api, served, tenant):
    """Told first, then done as one version with an entry in the audit; a failed condition changes nothing."""
    url = f"{tenant[0]}/streams/Account/row-restorations"
    order = {"version": 0, "keys": [{"Id": "1"}, {"Id": "2"}, {"Id": "9"}]}
    body = api.post(url, json={**order, "dry_run": True}).json()
    assert (body["committed"], body["tenant_version"]) == (False, 1)
    assert body["counts"] == {"inserted": 1, "updated": 1, "unchanged": 0, "deleted": 1}
    assert api.post(url, json=order, headers={"if-match": '"0"'}).status_code == 412
    seen = {"if-match": api.get(tenant[0]).headers["etag"]}
    done = api.post(url, json={**order, "message": "as ordered"}, headers=seen).json()
    assert (True, 2, body["rows"]) == (done["committed"], done["tenant_version"], done["rows"])
    rows = api.get(f"{tenant[0]}/streams/Account/rows").json()["rows"]
    assert {row["Id"]: row["City"] for row in rows} == {"007": "Bern", "1": "Basel", "2": None}
    newest = api.get(f"{tenant[0]}/history").json()["versions"][0]
    assert newest["message"].endswith(": as ordered")
    assert ("restore", order["version"]) == (newest["kind"], newest["restored"])
    entry = api.get(f"{tenant[0]}/audit", params={"action": "rows.restore"}).json()["entries"][0]
    assert (entry["subject"], entry["details"]["rows"]) == ("Account", 3)


def test_rows_that_cannot_be_named_so_are_refused(api, served, tenant):
    """Another column, a value of another type, none or too many keys, no right to write."""
    url = f"{tenant[0]}/streams/Account/row-restorations"
    for keys in ([{"City": "Bern"}], [{"Id": "1", "City": "x"}], [], [{"Id": "1"}] * 5001):
        assert api.post(url, json={"version": 0, "keys": keys}).status_code == 422, keys[:1]
    assert api.post(url, json={"version": 99, "keys": [{"Id": "1"}]}).status_code == 404
    order = {"version": 0, "keys": [{"Id": "1"}]}
    with served.client(served.key("snapshots:read")) as reader:
        assert reader.post(url, json=order).status_code == 403
        assert reader.post(url, json={**order, "dry_run": True}).status_code == 200


def test_a_column_of_another_type_is_told_among_the_differences(api, served):
    """Columns that came, went, or have another type since."""
    path = served.tenant("retyped")
    stream = served.service.stores.environment("dev").tenant("retyped").stream("Account")
    stream.update(pa.table({"Id": [1], "N": [1], "Old": ["x"]}), "Id")
    stream.update(pa.table({"Id": [1], "N": ["one"], "New": [True]}), "Id", override=True)
    body = api.get(f"{path}/streams/Account/diff", params={"before": 0}).json()
    assert (body["columns_added"], body["columns_dropped"]) == ({"New": "boolean"}, {"Old": "string"})
    assert body["columns_retyped"] == {"N": ["long", "string"]}


def test_what_the_log_knows_of_a_column_is_told_without_its_files(api, tenant):
    """Nulls and exact ends of all rows, although the files are gone; nothing that would take reading."""
    tenant[1].stream("Logged").update(
        pa.table({"Id": ["1", "2", "3"], "City": ["a", None, None], "N": [3, 1, 2]}), "Id"
    )
    url = f"{tenant[0]}/streams/Logged/statistics"
    read = api.get(url, params={"columns": ["City", "N"]}).json()
    files = list(Path(tenant[1].context.storage.root).rglob("Logged.snapshot/**/*.parquet"))
    assert len(files) == 1
    files[0].unlink()
    body = api.get(url, params={"columns": ["City", "N"], "read": "false"}).json()
    city, number = body["columns"]
    assert (body["rows"], number["rows_read"], number["distinct"]) == (3, 0, None)
    assert (number["low"], number["high"], number["ends_of_all"]) == tuple(
        read["columns"][1][name] for name in ("low", "high", "ends_of_all")
    )
    assert (city["nulls"], city["nulls_of_all"]) == (read["columns"][0]["nulls"], True)
    assert api.get(url, params={"columns": ["Nobody"], "read": "false"}).status_code == 422
