"""Rows of a stream that differ between two versions of a tenant, over HTTP."""

from collections import Counter

import pyarrow as pa
import pytest

import freezeframe as ff

FIRST = b"Id,City,Born\n007,Bern,2000\n1,Basel,\n2,Thun,1990\n"
SECOND = b"Id,City,Born\n007,Bern,2000\n1,Chur,\n3,Zug,\n"


@pytest.fixture
def stream(api, acme):
    """The path of a stream of two versions, with its key."""
    hotglue = f"/tenant/dev/{acme.rpartition('/')[2]}/snapshots?file=Account.snapshot.csv"
    for content in (FIRST, SECOND):
        api.put(hotglue, content=content).raise_for_status()
    return f"{acme}/streams/Account"


def test_rows_that_differ_are_counted_and_shown(api, stream):
    """Rows with what became of them, columns in which something changed, counts of all."""
    body = api.get(f"{stream}/diff", params={"before": 0, "after": 1}).json()
    fates = Counter(row["fate"] for row in body["rows"])
    counts = body["counts"]

    assert body["total"] == len(body["rows"]) == sum(fates.values())
    assert (fates["insert"], fates["update"], fates["delete"]) == (
        counts["inserted"],
        counts["updated"],
        counts["deleted"],
    )
    assert set(body["columns"]) == {"Id", "City", "Born"}
    assert "007" not in str(body["rows"])
    gone = [row["before"]["City"] for row in body["rows"] if row["before"]]
    new = [row["after"]["City"] for row in body["rows"] if row["after"]]
    assert (sorted(gone), sorted(new)) == (["Basel", "Thun"], ["Chur", "Zug"])


def test_pages_by_cursor_stay_between_their_versions(api, acme, stream):
    """Each cursor leads on between the versions of the first page; the rows together are all of them."""
    whole = api.get(f"{stream}/diff", params={"before": 0}).json()
    second = api.get(f"{stream}/diff", params={"before": 0, "limit": 1, "offset": 1}).json()
    parameters = {"before": 0, "limit": 1}
    pages = [api.get(f"{stream}/diff", params=parameters).json()]
    api.put(
        f"/tenant/dev/{acme.rpartition('/')[2]}/snapshots?file=Account.snapshot.csv", content=FIRST
    ).raise_for_status()
    while (cursor := pages[-1]["next_cursor"]) is not None:
        pages.append(api.get(f"{stream}/diff", params={**parameters, "cursor": cursor}).json())

    assert whole["rows"] == [row for page in pages for row in page["rows"]]
    assert (whole["rows"][1:2], whole["total"]) == (second["rows"], second["total"])
    assert {(0, 1, whole["total"], True)} == {
        (page["before"], page["after"], page["total"], page["is_total_exact"]) for page in pages
    }
    assert api.get(f"{stream}/diff", params={"before": 1, "cursor": "AAAA"}).status_code == 422


def test_changes_that_are_not_counted_are_told_by_the_log(api, stream):
    """Where counting is not wanted the counts are those of the update that made all of them."""
    body = api.get(f"{stream}/diff", params={"before": 0, "limit": 1, "count": False}).json()
    counted = api.get(f"{stream}/diff", params={"before": 0, "limit": 1}).json()

    assert (counted["counts"], counted["total"], True) == (
        body["counts"],
        body["total"],
        body["is_total_exact"],
    )


def test_the_same_version_twice_differs_in_nothing(api, stream):
    """No rows, and no error; a version or a stream that is not there is one."""
    assert api.get(f"{stream}/diff", params={"before": 1, "after": 1}).json()["total"] == 0
    assert api.get(f"{stream}/diff", params={"before": 7}).status_code == 404
    assert api.get(stream.replace("Account", "Nobody") + "/diff", params={"before": 0}).status_code == 404


def test_all_rows_of_a_difference_are_brought_back(api, served):
    """Without keys these are all rows that differ; those that changed again later are counted before."""
    tenant = ff.open(served.root, environment="dev").tenant("all-rows", create=True)
    stream, new = tenant.stream("Account"), [f"n{number}" for number in range(6000)]
    for ids, city in ((["1"], "Bern"), (new, "Bern"), (["n1", "n2"], "Wil")):
        stream.update(pa.table({"Id": ids, "City": [city] * len(ids)}), "Id")
    place = "/api/v1/environments/dev/tenants/all-rows"
    url, seen = f"{place}/streams/Account/row-restorations", api.get(place).headers["etag"]
    order = {"version": 0, "after": 1}

    told = api.post(url, json={**order, "dry_run": True}).json()
    some = api.post(url, json={**order, "keys": [{"Id": "n1"}, {"Id": "n3"}], "dry_run": True}).json()
    done = api.post(url, json=order, headers={"if-match": seen}).json()

    assert (6000, 2, 6000) == (told["selected"], told["changed_later"], told["counts"]["deleted"])
    assert 5000 == len(told["rows"])
    assert (2, 1) == (some["selected"], some["changed_later"])
    assert (True, None) == (done["committed"], done["changed_later"])
    assert ["1"] == stream.read(as_="arrow")["Id"].to_pylist()


def test_a_version_is_taken_back_with_what_it_changed(api, served):
    """A dry run says the same and changes nothing; what came later stays, and conditions hold."""
    tenant = ff.open(served.root, environment="dev").tenant("taken-back", create=True)
    stream, place = tenant.stream("Account"), "/api/v1/environments/dev/tenants/taken-back"
    for ids, city in ((["1", "2"], "Bern"), (["1", "2"], "Chur"), (["2"], "Wil")):
        stream.update(pa.table({"Id": ids, "City": [city] * len(ids)}), "Id")
    order, seen = {"version": 1, "only": ["Account"]}, api.get(place).headers["etag"]

    one = {**order, "keys": [{"Id": "2"}], "dry_run": True}
    ticked = api.post(f"{place}/reversions", json=one).json()["streams"]["Account"]
    assert (0, 1) == (ticked["counts"]["updated"], ticked["kept_rows"])
    for wrong in ({"only": None}, {"where": "Id = '2'"}, {"keys": [{"City": "Bern"}]}):
        assert 422 == api.post(f"{place}/reversions", json={**one, **wrong}).status_code
    told = api.post(f"{place}/reversions", json={**order, "dry_run": True}).json()
    done = api.post(f"{place}/reversions", json=order, headers={"if-match": seen}).json()

    account = done["streams"]["Account"]
    assert (told["streams"], False, True) == (done["streams"], told["committed"], done["committed"])
    assert [({"Id": "1", "City": "Bern"}, ["City"])] == [
        (row["after"], row["changed"]) for row in account["rows"]
    ]
    assert [
        {
            "key": {"Id": "2"},
            "change": "update",
            "reason": "changed again since",
            "cells": {"City": {"before": "Bern", "after": "Chur", "now": "Wil"}},
        }
    ] == account["kept"]
    assert 412 == api.post(f"{place}/reversions", json=order, headers={"if-match": seen}).status_code
    assert 404 == api.post(f"{place}/reversions", json={"job_id": "none"}).status_code
