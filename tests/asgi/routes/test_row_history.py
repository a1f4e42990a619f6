"""A row's history over HTTP: by its key's text, whatever the text."""

import dataclasses
from datetime import UTC, datetime
from urllib.parse import quote

import pyarrow as pa
import pytest

from freezeframe.store.blobs.kept_inputs import open_inputs
from freezeframe.store.model.update_options import RequestContext
from freezeframe.store.tenant import with_request

ODD_KEYS = ["a/b", "Zürich 東京", "%2F", "[x", ".."]


@pytest.fixture(scope="module")
def rows(served):
    """The path of the rows of a stream: 007 changes at version 1 and goes at version 2."""
    path = served.tenant("row-history")
    stream = served.service.stores.environment("dev").tenant("row-history").stream("Lead")
    for ids, stage in ((["007", *ODD_KEYS], "new"), (["007", *ODD_KEYS], "won"), (ODD_KEYS, "won")):
        stream.update(pa.table({"Id": ids, "Stage": [stage] * len(ids)}), "Id", override=True)
    return f"{path}/streams/Lead/rows"


def test_a_row_and_what_each_version_did_to_it(api, rows):
    """Old and new values by cell, the newest first; a page goes on where the one before ended."""
    body = api.get(f"{rows}/007/history").json()
    assert (body["key"], body["row"], body["is_whole"]) == ({"Id": "007"}, None, True)
    assert [(item["version"], item["row"]["fate"]) for item in body["versions"]] == [
        (2, "delete"),
        (1, "update"),
        (0, "insert"),
    ]
    update = body["versions"][1]["row"]
    assert (update["before"]["Stage"], update["after"]["Stage"]) == ("new", "won")
    assert update["changed"] == ["Stage"]
    first = api.get(f"{rows}/007/history", params={"limit": 1}).json()
    rest = api.get(f"{rows}/007/history", params={"until": first["following"]}).json()
    assert body["versions"] == first["versions"] + rest["versions"]


def test_each_cell_of_a_row_and_where_it_comes_from(api, rows):
    """By the version that gave it its value; without the row there are none."""
    body = api.get(f"{rows}/a%2Fb/origin").json()

    assert ({"Id": "a/b"}, [("Id", 0), ("Stage", 1)]) == (
        body["key"],
        [(cell["column"], cell["version"]) for cell in body["cells"]],
    )
    assert [] == api.get(f"{rows}/007/origin").json()["cells"]


def test_the_line_of_the_input_is_for_those_who_may_read_jobs(served, rows, tmp_path):
    """The job, and the hash of its script, for all who may read the row."""
    tenant = served.service.stores.environment("dev").tenant("row-history")
    context = tenant.context
    kept = open_inputs(context.storage, context.settings, context.log.current_state().erased, create=True)
    folder, file = kept.folder(30), tmp_path / "lead.csv"
    file.write_text("Id,Stage\nkept,new\n")
    (held,) = kept.keep(folder, {"sync-output/Lead.csv": file}).values()
    files = {"sync-output/Lead.csv": dataclasses.asdict(held)}
    kept.record(folder, "nightly", {"script": "etl.py", "files": files})
    ran = with_request(tenant, RequestContext(script_sha256="ab" * 32))
    with ran.job("nightly") as job:
        job.stream("Lead").update(pa.table({"Id": ["kept"], "Stage": ["NEW"]}))
    shown = {}
    for scopes in (("snapshots:read",), ("snapshots:read", "jobs:read")):
        with served.client(served.key(*scopes)) as client:
            shown[scopes] = client.get(f"{rows}/kept/origin").json()["cells"]
    told = [
        [
            (cell["job_id"], cell["script_sha256"], cell["source"], cell["file"], cell["line"])
            for cell in cells
        ]
        for cells in shown.values()
    ]
    assert told == [
        [("nightly", "ab" * 32, "hidden", None, None)] * 2,
        [("nightly", "ab" * 32, source, "Lead.csv", 2) for source in ("file", "script")],
    ]


@pytest.mark.parametrize("key", ODD_KEYS)
def test_any_text_can_be_a_key(api, rows, key):
    """As itself, or, where that reads as something else, in a JSON array."""
    text = f'["{key}"]' if key.startswith(("[", ".")) else key
    body = api.get(f"{rows}/{quote(text, safe='')}/history").json()
    assert {"Id": key, "Stage": "won"} == body["row"]


def test_what_is_no_key_is_refused(api, rows):
    """A text that no key of the stream can have, and a stream that is not there."""
    for text, status in (("[1", 422), ('["a","b"]', 422), ("008", 200)):
        assert status == api.get(f"{rows}/{quote(text, safe='')}/history").status_code
    assert api.get(f"{rows.replace('Lead', 'Deal')}/1/history").status_code == 404


def test_single_cells_are_restored(api, rows):
    """Other cells of the row stay; the key's own are refused."""
    url = rows.replace("rows", "row-restorations")
    order = {"version": 0, "keys": [{"Id": "a/b"}], "columns": ["Stage"]}
    assert api.post(url, json=order | {"dry_run": True}).json()["counts"]["updated"] == 1
    assert api.post(url, json=order | {"columns": ["Id"]}).status_code == 422


def test_a_cell_is_changed_as_one_version_under_a_condition(served, api):
    """In the column's own type, the rest of the row stays; what cannot be is refused, nothing is written."""
    path = served.tenant("row-cells")
    tenant = served.service.stores.environment("dev").tenant("row-cells")
    day = datetime(2026, 11, 20, tzinfo=UTC)
    tenant.stream("Lead").update(
        pa.table({"Id": ["007", "8"], "Total": [1.5, 2.5], "Due": [day, day], "Stage": ["new", "new"]}), "Id"
    )
    url, shown = f"{path}/streams/Lead/row-changes", {"if-match": api.get(path).headers["etag"]}

    def change(values, key="007", **more):
        return api.post(url, json={"key": {"Id": key}, "values": values, "message": "typed wrong"}, **more)

    changed = change({"Total": "7.25", "Due": None}, headers=shown)
    same, late = change({"Total": 7.25}), change({"Stage": "won"}, headers=shown)
    refused = [
        change({"Total": "many"}),
        change({"Id": "9"}),
        change({"Nothing": 1}),
        change({"Total": 1}, "no"),
    ]

    assert {"tenant_version": 1, "committed": True} == changed.raise_for_status().json()
    assert {"tenant_version": 1, "committed": False} == same.raise_for_status().json()
    assert (412, [422, 422, 422, 404]) == (late.status_code, [one.status_code for one in refused])
    assert [
        {"Id": "007", "Total": 7.25, "Due": None, "Stage": "new"},
        {"Id": "8", "Total": 2.5, "Due": day, "Stage": "new"},
    ] == tenant.stream("Lead").read(as_="arrow").sort_by("Id").to_pylist()
    assert [("typed wrong", 1)] == [(one.message, one.version) for one in tenant.history(1)]


def test_a_person_is_erased_by_key_or_condition(served, api):
    """A dry run shows the rows, and changes nothing; audit and history never have a key or a value."""
    path = served.tenant("row-erasure")
    tenant = served.service.stores.environment("dev").tenant("row-erasure")
    rows = pa.table({"Id": ["a-secret", "8"], "Email": ["ann@example.org", "bo@example.org"]})
    tenant.stream("Contact").update(rows, "Id")
    tenant.stream("Lead").update(pa.table({"No": [1], "Id": ["a-secret"]}), "No")
    tenant.stream("Loose").update(pa.table({"Id": ["a-secret"]}), override=True)
    url, where = f"{path}/streams/Contact/erasures", {"where": "Email = 'ann@example.org'"}

    told = api.post(url, json={**where, "dry_run": True}).json()
    assert (1, 1, False, ["Id"]) == tuple(told[name] for name in ("keys", "rows_erased", "committed", "key"))
    assert [{"Id": "a-secret", "Email": "ann@example.org"}] == told["rows"]
    assert ["Lead", "Loose"] == told["left"]["elsewhere"]
    nobody = api.post(url, json={"where": "Email = 'x'", "dry_run": True}).json()
    assert (0, [], 422) == (
        nobody["rows_erased"],
        nobody["rows"],
        api.post(url, json={"where": "Email = 'x'"}).status_code,
    )
    for wrong in (
        {},
        {**where, "keys": []},
        {"where": "No = 1"},
        {"where": "no SQL ("},
        {"keys": [{"No": "1"}]},
    ):
        assert 422 == api.post(url, json={**wrong, "dry_run": True}).status_code
    assert 422 == api.post(url.replace("Contact", "Loose"), json={"keys": [{}]}).status_code
    tenant.stream("Contact").update(pa.table({"Id": ["9"], "Email": ["cy@example.org"]}))
    headers = {"If-Match": told["etag"], "Idempotency-Key": "erase-1"}
    order = {**where, "message": "asked for it"}
    assert 412 == api.post(url, json=order, headers=headers).status_code
    headers["If-Match"] = api.post(url, json={**where, "dry_run": True}).json()["etag"]

    done = api.post(url, json=order, headers=headers).raise_for_status().json()
    again = api.post(url, json=order, headers=headers).raise_for_status().json()

    assert (1, 0, True, []) == (
        done["rows_erased"],
        done["left"]["remaining"],
        done["committed"],
        done["rows"],
    )
    assert (1, done["tenant_version"]) == (again["rows_erased"], again["tenant_version"])
    assert ["8", "9"] == sorted(tenant.stream("Contact").read(as_="arrow")["Id"].to_pylist())
    history, audit = api.get(f"{path}/history").text, api.get(f"{path}/audit").text
    assert ("asked for it" in history, "a-secret" in history, "ann@" in history) == (True, False, False)
    assert ("rows.erase" in audit, "a-secret" in audit, "ann@" in audit) == (True, False, False)
