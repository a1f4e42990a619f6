"""The audit over HTTP: its filters, its export, its verification, and what concerns the service."""

import csv
import io
import json

import pytest
from sqlalchemy import update

from freezeframe.control.tables import audit as table

ORIGIN = "/api/v1/audit"


def _from(served):
    """Hooks of a client that looks at the service's own pages."""
    return {"request": [lambda request: request.headers.update({"origin": served.url})]}


def test_a_change_to_any_entry_is_found(serve):
    """Of a tenant or the service: the first entry that is not as it was written is named."""
    served = serve()
    acme = served.tenant("acme")
    with served.client() as api:
        for name in ("a", "b"):
            api.put(f"{acme}/files/{name}", content=b"x")
        whole = api.get(f"{ORIGIN}/proof").json()
        with served.service.database.begin() as connection:
            connection.execute(update(table).where(table.c.number == 1).values(subject="c"))
        changed = api.get(f"{ORIGIN}/proof").json()

    assert (whole["is_whole"], whole["entries"], whole["head_number"]) == (True, 2, 1)
    assert (changed["is_whole"], changed["broken_at"]) == (False, 1)


def test_entries_are_filtered_by_time_person_and_action(served, api, acme):
    """All that is given must fit; a page goes on with the same filter only."""
    for number in range(3):
        api.put(f"{acme}/files/{number}", content=b"x")
    with served.client(served.key("admin", name="other")) as other:
        other.delete(f"{acme}/files/0")
    body = api.get(f"{acme}/audit").json()["entries"]

    def subjects(**wanted):
        return [item["subject"] for item in api.get(f"{acme}/audit", params=wanted).json()["entries"]]

    assert subjects(principal="key other") == ["0"]
    assert subjects(action="file.write") == ["2", "1", "0"]
    assert subjects(until=body[-1]["moment"]) == []
    assert len(subjects(since=body[-1]["moment"])) == 4
    page = api.get(f"{acme}/audit", params={"action": "file.write", "limit": 1}).json()
    cursor = {"cursor": page["next_cursor"], "limit": 1}
    assert api.get(f"{acme}/audit", params={"action": "file.write", **cursor}).status_code == 200
    assert api.get(f"{acme}/audit", params={"action": "file.delete", **cursor}).status_code == 422


@pytest.mark.parametrize("where", ["tenant", "service"])
def test_entries_are_exported(api, acme, where):
    """JSON lines have all that a page has, the oldest first; CSV has the same in columns."""
    api.put(f"{acme}/files/a", content=b"x")
    place = f"{acme}/audit" if where == "tenant" else ORIGIN
    api.post("/api/v1/keys", json={"name": "exported"})
    lines = api.get(f"{place}/export").text.splitlines()
    table_text = api.get(f"{place}/export", params={"format": "csv"})
    body = api.get(place).json()["entries"]

    exported = [json.loads(line) for line in lines]
    assert [item["hash"] for item in body] == [item["hash"] for item in exported[::-1]]
    assert body[0].keys() == exported[0].keys()
    rows = list(csv.DictReader(io.StringIO(table_text.text)))
    assert [item["hash"] for item in exported] == [row["hash"] for row in rows]
    assert table_text.headers["content-type"].startswith("text/csv")


def test_the_services_audit_tells_of_keys_and_sign_ins(served, api, caplog):
    """A key that was made and a sign-in are in it; a refused sign-in is in the log."""
    made = api.post("/api/v1/keys", json={"name": "told"}).json()
    with caplog.at_level("WARNING"), served.client("", event_hooks=_from(served)) as browser:
        wrong = browser.post("/api/v1/session", json={"key": "0a1b.wrong"})
        right = browser.post("/api/v1/session", json={"key": made["key"]})
    entries = api.get(ORIGIN, params={"limit": 2}).json()["entries"]
    refused = [record for record in caplog.records if record.message == "sign-in refused"]

    assert (wrong.status_code, right.status_code) == (401, 200)
    assert [entry["action"] for entry in entries] == ["session.begin", "key.create"]
    assert [("key", "127.0.0.1")] == [(item.way, item.client) for item in refused]
    assert made["id"] == entries[1]["subject"]


def test_the_services_audit_is_for_who_may_do_all(served):
    """A key of one tenant, and one without admin, do not see it."""
    bound = served.key("admin", environments=["dev"], tenants=["acme"])
    for key in (bound, served.key("snapshots:read")):
        with served.client(key) as client:
            answers = {client.get(f"{ORIGIN}{rest}").status_code for rest in ("", "/proof", "/export")}

        assert answers == {403}


def test_a_deleted_tenant_is_told_of_by_the_service(served, api):
    """A tenant that is not there has no audit to ask for; the service's has the deletion."""
    place = served.tenant("ends")
    api.delete(place, params={"confirm": "ends"})
    entry = api.get(ORIGIN, params={"action": "tenant.delete", "limit": 1}).json()["entries"][0]

    assert (entry["subject"], entry["details"]) == ("dev/ends", {"schedules": []})
    assert api.get(f"{place}/audit").status_code == 404
