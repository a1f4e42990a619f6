"""Rows are found by a key or a text over tenants, told while they are found, to those who may."""

import json
import time

import pyarrow as pa
import pytest

from freezeframe.service.rows.search import FoundRow, RowSearch, SearchBounds

PLACE = "/api/v1/environments/found/found-rows"


@pytest.fixture(scope="module")
def store(served):
    """Two tenants: the same key in both, a name in one, a number as key, and a stream without a key."""
    found = served.service.stores.environment("found")
    for name, city in (("north", "Zürich West"), ("south", "Thun")):
        tenant = found.tenant(name, create=True)
        tenant.stream("Account").update(pa.table({"Id": ["007", "008"], "City": [city, None]}), "Id")
        tenant.stream("Invoice").update(pa.table({"Number": [7, 8], "Year": ["2025", "2026"]}), "Number")
    found.tenant("north").stream("Note").update(pa.table({"Text": ["West is best"] * 20}), override=True)
    return found


def asked(client, **query):
    """The events of an answer, by kind."""
    body = {"row": [], "progress": [], "end": []}
    with client.stream("GET", PLACE, params=query) as answer:
        assert answer.status_code == 200, answer.read()
        kind = ""
        for line in answer.iter_lines():
            name, _, value = line.partition(": ")
            if name == "event":
                kind = value
            elif name == "data":
                body[kind].append(json.loads(value))
    return body


def test_a_key_is_found_in_every_tenant_that_is_the_callers(served, store):
    """A bound key gets its own tenant's rows; with `tenant` only those are looked at."""
    with served.client() as everybody, served.client(served.key(tenants=["south"])) as bound:
        assert [item["tenant"] for item in asked(everybody, text="007")["row"]] == ["north", "south"]
        assert [item["tenant"] for item in asked(bound, text="007")["row"]] == ["south"]
        only = asked(everybody, text="007", tenant="north")["row"]
        foreign = bound.get(PLACE, params={"text": "007", "tenant": "north"})

    assert only == [
        {"tenant": "north", "stream": "Account", "key": {"Id": "007"}, "column": "Id", "value": "007"}
    ]
    assert (foreign.status_code, foreign.json()["type"][-16:]) == (404, "TENANT_NOT_FOUND")


def test_a_number_is_a_key_of_numbers(served, store):
    """The text is taken in the type of the key; a part of a number is none."""
    with served.client() as api:
        body = asked(api, text="7", tenant="north")
    assert [(item["stream"], item["key"]) for item in body["row"]] == [("Invoice", {"Number": 7})]
    assert body["end"][0]["is_whole"]


def test_a_part_of_a_text_is_found_whatever_its_case(served, store):
    """Of a stream no more than five rows are told, and the end says that there may be more."""
    with served.client() as api:
        body = asked(api, text="WEST")
        whole = asked(api, text="ZÜRICH")
        short = asked(api, text="we")

    assert [item["stream"] for item in body["row"]] == ["Account", *["Note"] * 5]
    assert (body["row"][0]["key"], body["row"][1]["key"]) == ({"Id": "007"}, {})
    assert (body["end"][0]["is_whole"], whole["end"][0]["is_whole"]) == (False, True)
    assert (whole["row"][0]["column"], whole["row"][0]["value"]) == ("City", "Zürich West")
    assert short["row"] == []


@pytest.mark.parametrize("query", [{}, {"text": ""}, {"text": "x" * 201}, {"text": "a", "seconds": 0}])
def test_what_is_no_question_is_refused(served, store, query):
    """Before anything is read."""
    with served.client() as api:
        assert api.get(PLACE, params=query).status_code == 422


def test_without_the_right_to_read_nothing_is_told(served, store):
    """`snapshots:read`, and for all tenants `tenants:read`."""
    with (
        served.client(served.key("tenants:read")) as lists,
        served.client(served.key("snapshots:read")) as item,
    ):
        assert lists.get(PLACE, params={"text": "007"}).status_code == 403
        assert item.get(PLACE, params={"text": "007"}).status_code == 403
        assert asked(item, text="007", tenant="south")["row"]


def test_who_goes_away_ends_the_search(served, store):
    """An answer that nobody reads to its end is not counted as open any longer."""
    with served.client() as api, api.stream("GET", PLACE, params={"text": "007"}) as answer:
        next(answer.iter_lines())
    until = time.monotonic() + 60
    while served.service.streams.number and time.monotonic() < until:
        time.sleep(0.05)
    assert served.service.streams.number == 0


@pytest.mark.parametrize(
    "bounds", [SearchBounds(rows=1), SearchBounds(bytes=1), SearchBounds(seconds=0.0)], ids=str
)
def test_a_search_ends_at_each_of_its_bounds(store, bounds):
    """Rows, bytes and time: at most one row more than was allowed is read, and the outcome says so."""
    found = list(RowSearch("007", bounds).run(lambda: ["north", "south"], store.tenant))
    assert sum(isinstance(item, FoundRow) for item in found) <= 1
    assert not found[-1].is_whole


def test_a_search_reads_no_further_than_it_is_asked(store):
    """A tenant is opened when the search comes to it: who stops asking stops the reading."""
    opened = []

    def open_tenant(name):
        opened.append(name)
        return store.tenant(name)

    next(RowSearch("007").run(lambda: ["north", "south"], open_tenant))
    assert opened == ["north"]


def test_a_damaged_tenant_is_counted_and_the_others_are_searched(served, store):
    """What is found elsewhere is told; the end says that something could not be read."""
    damaged = store.tenant("damaged", create=True)
    damaged.stream("Account").update(pa.table({"Id": ["900"], "City": ["Bern"]}), "Id")
    files = list(damaged.context.storage.list_below(""))
    for file in files:
        if file.name.endswith(".parquet"):
            damaged.context.storage.delete(file.name)
    outcome = list(RowSearch("900").run(lambda: ["damaged", "north"], store.tenant))[-1]
    assert (outcome.tenants, outcome.unreadable, outcome.is_whole) == (2, 1, False)
