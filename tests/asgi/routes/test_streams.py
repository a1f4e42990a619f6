"""Streams over HTTP: rows as JSON and Arrow, changes, exports, restorations, imports as jobs."""

import io
import json
from pathlib import Path

import openpyxl
import pyarrow as pa
import pytest

from freezeframe.service.jobs import TenantJob

CSV = b"Id,City,Born\n007,Bern,2000\n1,Basel,\n"


@pytest.fixture
def stream(api, acme):
    """The path of a stream that has two versions."""
    tenant = acme.rpartition("/")[2]
    for content in (CSV, CSV.replace(b"Basel", b"Chur") + b"2,Thun,\n"):
        api.put(
            f"/tenant/dev/{tenant}/snapshots?file=Account.snapshot.csv", content=content
        ).raise_for_status()
    return f"{acme}/streams/Account"


def test_a_stream_tells_what_it_is(api, stream):
    """Version, rows, columns; its ETag saves the answer."""
    body = api.get(stream)

    assert (body.json()["version"], body.json()["rows"]) == (1, 3)
    assert [(item["name"], item["type"]) for item in body.json()["columns"]] == [
        ("Id", "string"),
        ("City", "string"),
        ("Born", "long"),
    ]
    assert api.get(stream, headers={"if-none-match": body.headers["etag"]}).status_code == 304


def test_rows_by_columns_conditions_and_version(api, stream):
    """What is asked for is given, and how many rows there are in all."""
    named = {"where": ["City != 'Bern'", "Born > 0 or Born is null"], "columns": ["Id"], "limit": 1}
    some = api.get(f"{stream}/rows", params=named).json()
    before = api.get(f"{stream}/rows", params={"version": 0, "where": "Born = 2000"}).json()

    assert (some["total"], some["columns"], len(some["rows"])) == (2, ["Id"], 1)
    assert before["rows"] == [{"Id": "007", "City": "Bern", "Born": 2000}]


def test_rows_as_arrow(api, stream):
    """By Accept the rows come as an Arrow stream, with their types."""
    answer = api.get(f"{stream}/rows", headers={"accept": "application/vnd.apache.arrow.stream"})
    table = pa.ipc.open_stream(answer.content).read_all()

    assert pa.int64() == table.schema.field("Born").type
    assert set(table["Id"].to_pylist()) == {"007", "1", "2"}


def _walked(api, path, **parameters):
    """All pages of a list of rows, each found by the cursor of the one before."""
    pages = [api.get(path, params=parameters).json()]
    while (cursor := pages[-1]["next_cursor"]) is not None:
        pages.append(api.get(path, params={**parameters, "cursor": cursor}).json())
    return pages


def test_pages_of_rows_stay_in_their_version(api, acme, stream):
    """A cursor goes on where the page ended, by key, in the first page's version whatever came since."""
    first = api.get(f"{stream}/rows", params={"limit": 1, "where": "Id != '9'"}).json()
    later = b"Id,City,Born\n000,Aarau,\n1,Wil,\n"
    api.put(
        f"/tenant/dev/{acme.rpartition('/')[2]}/snapshots?file=Account.snapshot.csv", content=later
    ).raise_for_status()
    parameters = {"limit": 1, "where": "Id != '9'", "cursor": first["next_cursor"]}
    second = api.get(f"{stream}/rows", params=parameters).json()
    arrow = api.get(
        f"{stream}/rows", params=parameters, headers={"accept": "application/vnd.apache.arrow.stream"}
    )

    assert (first["version"], first["total"], first["is_total_exact"]) == (1, 3, True)
    assert (second["version"], second["rows"]) == (1, [{"Id": "1", "City": "Chur", "Born": None}])
    assert (arrow.headers["x-total-rows"], arrow.headers["x-total-exact"]) == ("3", "true")
    assert second["next_cursor"] == arrow.headers["x-next-cursor"]
    assert [page["rows"][0]["Id"] for page in _walked(api, f"{stream}/rows", limit=1)] == ["000", "1"]
    for odd in ({"where": "Id != '8'"}, {"version": 0}, {"cursor": "AAAA"}):
        assert api.get(f"{stream}/rows", params={**parameters, **odd}).status_code == 422


def test_rows_that_are_not_counted_are_at_least_so_many(api, stream):
    """Without counting a page says how many rows there are at least, and the last one how many exactly."""
    pages = _walked(api, f"{stream}/rows", limit=2, where="Id != '9'", count=False)

    assert [(page["total"], page["is_total_exact"]) for page in pages] == [(3, False), (3, True)]


def test_pages_of_changes_are_all_changes(api, stream):
    """Insertions, updates and deletions by key, page by page; the total is that of all."""
    whole = api.get(f"{stream}/changes", params={"since": 0}).json()
    pages = _walked(api, f"{stream}/changes", since=0, limit=1)

    assert whole["rows"] == [row for page in pages for row in page["rows"]]
    assert {(whole["total"], 1)} == {(page["total"], page["version"]) for page in pages}


def test_pages_of_a_feed_are_the_changes_of_each_version(api, stream):
    """In Spark's words, of a stream without a key; those of before do not go with them."""
    feed = {"starting_version": 0}
    whole = api.get(f"{stream}/changes", params=feed).json()
    pages = _walked(api, f"{stream}/changes", **feed, limit=1)
    told = [(row["_commit_version"], row["_change_type"], row["Id"], row["City"]) for row in whole["rows"]]

    assert sorted(told) == [
        (0, "insert", "007", "Bern"),
        (0, "insert", "1", "Basel"),
        (1, "delete", "1", "Basel"),
        (1, "insert", "1", "Chur"),
        (1, "insert", "2", "Thun"),
    ]
    assert whole["rows"] == [row for page in pages for row in page["rows"]]
    assert [(5, True, 1)] == [(page["total"], page["is_total_exact"], page["version"]) for page in pages[-1:]]
    last = {"starting_version": 0, "ending_version": 0}
    assert whole["rows"][:2] == api.get(f"{stream}/changes", params=last).json()["rows"]
    assert [] == api.get(f"{stream}/changes", params={"starting_version": 2}).json()["rows"]
    for odd in ({"starting_version": 0, "since": 0}, {"ending_version": 1}, {**feed, "cursor": "AAAA"}):
        assert api.get(f"{stream}/changes", params=odd).status_code == 422
    assert api.get(f"{stream}/changes", params={"starting_version": 3}).status_code == 404


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_an_export_holds_all_rows(api, stream, kind):
    """All rows of a version come as a file of each kind, whose name has the version's number."""
    content = api.get(f"{stream}/export", params={"format": kind, "version": 0})

    assert f"%20Account%20v0.{kind}" in content.headers["content-disposition"]
    assert (b"007" in content.content, b"Thun" in content.content) == (True, False)


def test_an_export_for_excel_is_a_workbook(api, stream):
    """With the media type of Excel, and a name that ends as Excel expects."""
    content = api.get(f"{stream}/export", params={"format": "xlsx", "version": 0})

    sheet = openpyxl.load_workbook(io.BytesIO(content.content)).active
    assert "%20Account%20v0.xlsx" in content.headers["content-disposition"]
    assert content.headers["content-type"].endswith("spreadsheetml.sheet")
    assert "007" in [cell.value for cell in sheet["A"]]


def test_what_changed_and_back_again(api, acme, stream):
    """Changes between versions; a dry run changes nothing; restoring brings the rows back."""
    changed = api.get(f"{stream}/changes", params={"since": 0}).json()
    first = api.get(f"{stream}/history").json()["versions"][-1]["version"]
    dry = api.post(f"{stream}/restore", json={"version": first, "dry_run": True}).json()
    unchanged = api.get(stream).json()["rows"]
    done = api.post(f"{stream}/restore", json={"version": first, "message": "back"}).json()

    assert changed["total"] >= 2
    assert (dry["committed"], unchanged, done["committed"]) == (False, 3, True)
    assert api.get(stream).json()["rows"] == 2
    (newest,) = api.get(f"{acme}/history?limit=1").json()["versions"]
    assert ("restore", first, f"restore version {first}: back") == tuple(
        newest[name] for name in ("kind", "restored", "message")
    )


def test_an_override_keeps_the_types_of_its_columns(api, acme):
    """A stream's text stays text when a CSV of numbers replaces it."""
    tenant = acme.rpartition("/")[2]
    name = f"/tenant/dev/{tenant}/snapshots?file=S.snapshot.csv"
    api.put(name, content=b"Id\n007\n").raise_for_status()
    api.put(name, content=b"Id\n12\n13\n").raise_for_status()
    body = api.get(f"{acme}/streams/S").json()

    assert ([(item["name"], item["type"]) for item in body["columns"]], body["rows"]) == (
        [("Id", "string")],
        2,
    )


def test_a_dropped_stream_comes_back(api, acme, stream):
    """Dropping asks for the version if it is told; the past restores the stream."""
    version = api.get(acme).json()["version"]

    assert api.delete(stream, headers={"if-match": '"0"'}).status_code == 412
    assert api.delete(stream).status_code == 200
    assert api.get(stream).status_code == 404
    assert api.post(f"{acme}/restorations", json={"version": version}).json()["committed"]
    assert api.get(stream).json()["rows"] == 3


def test_an_import_is_a_job(served, api, acme, stream):
    """It is accepted with where to look, and the queue has what a worker needs."""
    answer = api.post(f"{stream}/import?key=Id&mode=full", content=CSV, headers={"content-type": "text/csv"})
    job = api.get(answer.headers["location"]).json()
    queued = served.service.jobs.get(TenantJob("dev", acme.rpartition("/")[2], job["job_id"]))
    request = json.loads(queued.request)

    assert (answer.status_code, job["status"]) == (202, "queued")
    assert json.loads(request["parameters"]["IMPORT_OPTIONS"]) == {
        "stream": "Account",
        "file": "rows.csv",
        "key": ["Id"],
        "mode": "full",
    }


def test_an_import_takes_the_options_of_an_update(served, api, acme, stream):
    """They reach the job; what cannot be together is refused at once, in the words of a request."""
    headers = {"content-type": "text/csv"}
    wanted = "override=true&null_keys=drop&order_by=a&order_by=b&on_drift=string"
    answer = api.post(f"{stream}/import?{wanted}", content=CSV, headers=headers)
    job = TenantJob("dev", acme.rpartition("/")[2], answer.json()["job_id"])
    options = json.loads(json.loads(served.service.jobs.get(job).request)["parameters"]["IMPORT_OPTIONS"])
    assert {"override": True, "null_keys": "drop", "order_by": ["a", "b"], "on_drift": "string"} == {
        name: value for name, value in options.items() if name not in {"stream", "file", "key"}
    }
    for place in ("import", "import-preview"):
        refused = api.post(f"{stream}/{place}?override=true&mode=full", content=CSV, headers=headers)
        assert refused.status_code == 422
        assert refused.json()["title"] == "override=true and mode=full cannot be used together."


def test_an_import_takes_the_options_of_csv(served, api, acme, stream):
    """Types, dates and the escape character reach the job and the preview; what is none is refused."""
    headers, rows = {"content-type": "text/csv"}, b'Id,City,At\n5,1,2026-10-01\n6,"a \\"b\\"",2026-10-02\n'
    wanted = "types=City=string&parse_dates=At&escape=%5C"
    answer = api.post(f"{stream}/import?{wanted}", content=rows, headers=headers)
    job = TenantJob("dev", acme.rpartition("/")[2], answer.json()["job_id"])
    options = json.loads(json.loads(served.service.jobs.get(job).request)["parameters"]["IMPORT_OPTIONS"])
    assert {"types": {"City": "string"}, "parse_dates": ["At"], "escape": "\\"} == {
        name: options[name] for name in ("types", "parse_dates", "escape")
    }
    seen = api.post(f"{stream}/import-preview?{wanted}", content=rows, headers=headers).json()
    assert {item["name"]: item["file_type"] for item in seen["columns"]}["At"] == "date"
    for place in ("import", "import-preview"):
        for wrong in ("types=City", "types=City=number", "escape=a"):
            refused = api.post(f"{stream}/{place}?{wrong}", content=rows, headers=headers)
            assert refused.status_code == 422, wrong
    json_lines = {"content-type": "application/x-ndjson"}
    assert api.post(f"{stream}/import?{wanted}", content=b"{}", headers=json_lines).status_code == 422


def test_an_import_of_no_known_kind_is_refused(api, stream):
    """A content type that is none of the kinds says which there are."""
    answer = api.post(f"{stream}/import", content=CSV, headers={"content-type": "text/html"})

    assert answer.status_code == 400
    assert "text/csv" in answer.json()["remedy"]


def _arrow(table, kind=pa.ipc.new_stream):
    sink = pa.BufferOutputStream()
    with kind(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


ARROW = _arrow(pa.table({"Id": ["1"], "City": pa.array(["Bern"]).dictionary_encode()}))
DURATION = _arrow(pa.table({"Id": ["1"], "lasted": pa.array([7], pa.duration("s"))}))


@pytest.mark.parametrize(
    ("content", "status"),
    [
        (ARROW, 202),
        (_arrow(pa.table({"Id": ["1"]}), pa.ipc.new_file), 202),
        (ARROW[: len(ARROW) // 2], 422),
        (ARROW[:-8], 422),
        (ARROW.replace(b"Bern", b"B\xffrn"), 422),
        (DURATION, 422),
        (b"", 422),
    ],
    ids=["stream", "file", "cut off", "without its end", "no UTF-8", "a duration", "nothing"],
)
def test_arrow_is_proved_before_it_is_queued(api, stream, content, status):
    """A stream or file of Arrow is imported; a damaged one, or one of odd types, is refused at once."""
    kind = {"content-type": "application/vnd.apache.arrow.stream"}
    answer = api.post(f"{stream}/import?key=Id", content=content, headers=kind)

    assert status == answer.status_code, answer.text
    if status != 202:
        assert answer.headers["content-type"] == "application/problem+json"


def test_a_staged_blob_is_imported(served, api, acme, stream):
    """Rows of any size are staged first, and brought into a stream by an import that names them, once."""
    blob = api.post(f"{acme}/blobs", content=CSV).json()["id"]
    source = {"blob": blob, "kind": "csv"}
    odd = api.post(f"{stream}/import?key=Id", json={"blob": 7, "kind": "doc"})
    done = api.post(f"{stream}/import?key=Id", json=source)
    again = api.post(f"{stream}/import?key=Id", json=source)

    assert [422, 202, 404] == [item.status_code for item in (odd, done, again)]
    job = served.service.jobs.get(TenantJob("dev", acme.rpartition("/")[2], done.json()["job_id"]))
    assert (Path(json.loads(job.request)["input_dir"]) / "rows.csv").read_bytes() == CSV
