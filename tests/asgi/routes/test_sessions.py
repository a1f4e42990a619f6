"""Sessions in a browser: the cookie holds a token of its own and ends with what it was begun with."""

import time

import pyarrow as pa
import pytest

from freezeframe.service.access.audit import AuditScope
from freezeframe.service.access.sessions import LINK_SECONDS, Person

WHO = "/api/v1/session"
TENANTS = "/api/v1/environments/dev/tenants"


def signed_in(served, browser, order):
    """The cookie of who signs in so."""
    answer = browser.post(WHO, json=order, headers={"origin": served.url})
    assert answer.status_code == 200, answer.text
    return answer.headers["set-cookie"]


def status(served, token):
    """The answer to who comes with that token alone."""
    with served.client("") as other:
        return other.get(TENANTS, headers={"cookie": f"freezeframe_session={token}"}).status_code


def test_the_cookie_of_a_key_is_not_the_key(served):
    """Neither the secret nor the id is in it; signing out ends it, and the key itself goes on."""
    key = served.key("tenants:read")
    with served.client("") as browser:
        cookie = signed_in(served, browser, {"key": key})
        token = browser.cookies["freezeframe_session"]
        who = browser.get(WHO).json()
        before = status(served, token)
        browser.delete(WHO, headers={"origin": served.url})
    assert not [part for part in key.split(".") if part in cookie]
    assert ("key", key.partition(".")[0]) == (who["kind"], who["id"])
    assert (before, status(served, token), status(served, key)) == (200, 401, 401)
    with served.client(key) as program:
        assert program.get(TENANTS).status_code == 200


@pytest.mark.parametrize("ending", ["revoked", "rotated", "expired"])
def test_a_session_ends_with_its_key(serve, ending):
    """Or with the secret that it was begun with, or its hours."""
    served = serve(service_session_hours=1e-6 if ending == "expired" else 1.0)
    made = served.service.keys.create(scopes=["tenants:read"])
    token = served.service.sessions.begin_with_key(made.key)
    if ending == "expired":
        time.sleep(0.01)  # the session lasts 3.6 milliseconds
    before = status(served, token)
    if ending == "revoked":
        served.service.keys.revoke(made.id)
    elif ending == "rotated":
        served.service.keys.rotate(made.id, overlap_hours=0)
    assert (401 if ending == "expired" else 200, 401) == (before, status(served, token))


def test_signing_in_with_a_key_is_in_the_audit(served):
    """Who signs in with none has no session."""
    key = served.key("tenants:read")
    with served.client("") as browser:
        signed_in(served, browser, {"key": key})
        begun = served.service.audit.entries(AuditScope())[0]
        wrong = browser.post(WHO, json={"key": "id.secret"}, headers={"origin": served.url})
    assert (begun.action, wrong.status_code) == ("session.begin", 401)
    assert begun.principal.startswith(f"key:{key.partition('.')[0]} ")


@pytest.mark.parametrize(
    ("url", "is_secure"), [("https://snapshots.example.org", True), ("http://x.example", False)]
)
@pytest.mark.parametrize("way", ["key", "link"])
def test_cookies_are_secure_where_browsers_use_https(serve, url, is_secure, way):
    """Also behind a proxy that speaks https, where the service hears plain http."""
    served = serve(service_url=url)
    with served.client("") as browser:
        given = {"key": served.key()} if way == "key" else {"link": served.service.tickets.link()}
        cookie = signed_in(served, browser, given)
        left = browser.delete(WHO, headers={"origin": served.url, "cookie": cookie.partition(";")[0]})
    assert [is_secure] * 2 == ["Secure" in item for item in (cookie, left.headers["set-cookie"])]


def test_a_link_signs_in_once(served):
    """As an administrator; used again, changed, or from another site it is refused."""
    link, origin = served.service.tickets.link(), {"origin": served.url}
    with served.client("") as browser:
        foreign = browser.post(WHO, json={"link": link}, headers={"origin": "https://evil.example"})
        changed = browser.post(WHO, json={"link": f"{link[:-4]}AAAA"}, headers=origin)
        first = browser.post(WHO, json={"link": link}, headers=origin)
        who = browser.get(WHO).json()
    with served.client("") as other:
        again = other.post(WHO, json={"link": link}, headers=origin)

    assert [403, 401, 200, 401] == [item.status_code for item in (foreign, changed, first, again)]
    assert ("person", "local", True) == (who["kind"], who["id"], "admin" in who["scopes"])


def test_a_link_ends_after_a_day(served, monkeypatch):
    """A line of an old terminal signs nobody in."""
    link, later = served.service.tickets.link(), time.time() + LINK_SECONDS
    monkeypatch.setattr(time, "time", lambda: later)
    with served.client("") as browser:
        assert browser.post(WHO, json={"link": link}, headers={"origin": served.url}).status_code == 401


def test_a_person_is_not_taken_for_a_key(served, acme):
    """A history marks persons, whatever their name is; the audit has kind and id."""
    token = served.service.sessions.begin(Person("oidc-9", "key root-admin", "editor"))
    cookie = {"cookie": f"freezeframe_session={token}", "origin": served.url}
    with served.client("") as browser, served.client() as program:
        browser.put(f"{acme}/files/a", content=b"x", headers=cookie).raise_for_status()
        program.put(f"{acme}/files/b", content=b"x").raise_for_status()
        authors = [item["who"] for item in program.get(f"{acme}/history").json()["versions"]]

    assert "person key root-admin" == authors[1]
    assert authors[0].startswith("key ")


@pytest.mark.parametrize("whose", ["key", "person", "all"])
def test_sessions_can_be_ended_at_once(serve, whose):
    """Those of one key or person, or all of them."""
    served = serve()
    made = served.service.keys.create(scopes=["tenants:read"])
    sessions = served.service.sessions
    tokens = [sessions.begin_with_key(made.key), sessions.begin(Person("oidc-1", "ada", "viewer"))]
    ended = sessions.end_all({"key": made.id, "person": "oidc-1", "all": None}[whose])

    assert (2 if whose == "all" else 1) == ended
    expected = {"key": [401, 200], "person": [200, 401], "all": [401, 401]}[whose]
    assert expected == [status(served, token) for token in tokens]


def test_a_viewer_reads_no_sealed_file(serve, tmp_path):
    """Sealed files need a scope of their own, by every way to their content; others do not."""
    key = tmp_path / "master.key"
    key.write_bytes(b"k" * 32)
    key.chmod(0o600)
    served = serve(master_key_file=key)
    place = served.tenant("sealed")
    with served.client() as admin:
        admin.put(f"{place}/files/secret.json?sealed=true", content=b'{"password": "x"}')
        admin.put(f"{place}/files/tenant-config.json?sealed=true", content=b"{}").raise_for_status()
        admin.put(f"{place}/files/open.txt", content=b"x")
    ways = (
        f"{place}/files/secret.json",
        f"{place}/bundle?file=secret.json",
        "/tenant/dev/sealed/snapshots?file=secret.json",
        "/tenant/dev/sealed/config",
    )
    with served.client(served.key("tenants:read", "snapshots:read", "jobs:read")) as viewer:
        answers = [viewer.get(way) for way in ways]
        plain = viewer.get(f"{place}/files/open.txt")
    with served.client(served.key("snapshots:read", "secrets:read")) as reader:
        allowed = {reader.get(way).status_code for way in ways}

    assert [answer.status_code for answer in answers] == [403] * 4
    assert {answer.json()["scope"] for answer in answers} == {"secrets:read"}
    assert (plain.status_code, allowed) == (200, {200})


def test_a_change_by_a_session_needs_a_reason_where_the_service_requires_it(serve):
    """Of each kind, before anything is written; a key's programs go on without, a dry run needs none."""
    served = serve(service_requires_reasons=True)
    place = served.tenant("reasons")
    stream = served.service.stores.environment("dev").tenant("reasons").stream("Account")
    for city in ("Bern", "Wil"):
        stream.update(pa.table({"Id": ["1"], "City": [city]}), key="Id")
    rows = (f"{place}/streams/Account/row-restorations", {"version": 0, "keys": [{"Id": "1"}]})
    at = f"{place}/files/a.txt"
    with served.client(served.key("snapshots:read", "snapshots:write", "snapshots:delete")) as program:
        assert [201, 200, 201] == [
            answer.status_code
            for answer in (
                program.put(at, content=b"1"),
                program.put(at, content=b"2"),
                program.put(f"{at}2", content=b"1"),
            )
        ]
    changes = [
        ("PUT", at, None),
        ("POST", f"{place}/file-moves", {"path": "a.txt", "target": "b.txt"}),
        ("POST", f"{place}/restorations", {"version": 0}),
        ("POST", f"{place}/reversions", {"version": 1}),
        ("POST", f"{place}/jobs", {"script": "etl.py"}),
        ("POST", "/api/v1/environments/dev/job-groups", {"script": "etl.py", "tenants": ["reasons"]}),
        ("POST", f"{place}/schedules", {"script": "etl.py", "name": "nightly", "cron": "@daily"}),
        ("POST", f"{place}/file-deletions", {"paths": ["a.txt2"]}),
        ("POST", *rows),
        ("POST", f"{place}/streams/Account/erasures", {"keys": [{"Id": "1"}]}),
        ("DELETE", at, None),
    ]
    with served.client("") as browser, served.client() as admin:
        browser.headers["origin"] = served.url
        scopes = ("snapshots:read", "snapshots:write", "snapshots:delete", "jobs:run")
        signed_in(served, browser, {"key": served.key(*scopes)})
        requires = browser.get(WHO).json()["requires_reasons"]
        noted = [one["action"] for one in admin.get(f"{place}/audit").json()["entries"]]
        refused = [browser.request(method, url, json=body) for method, url, body in changes]
        checks = [
            browser.post(url, json={**body, "dry_run": True}).status_code
            for _, url, body in (*changes[2:4], ("POST", *rows))
        ]
        noted_then = [one["action"] for one in admin.get(f"{place}/audit").json()["entries"]]
        # These are checked as far as their script, which is not there.
        runs = [
            browser.post(url, json={**body, "dry_run": True}).status_code for _, url, body in changes[4:6]
        ]
        told = browser.post(f"{place}/file-deletions", json={"paths": ["a.txt2"], "message": "not needed"})
        message = browser.get(f"{place}/history", params={"limit": 1}).json()["versions"][0]["message"]

    statuses = [one.status_code for one in refused]
    assert (True, [422] * len(changes), [200] * 3, [404] * 2) == (requires, statuses, checks, runs)
    assert ["file.write"] * 3 == noted == noted_then
    assert ["The change has no reason."] * len(changes) == [one.json()["title"] for one in refused]
    assert told.status_code == 200
    assert message.endswith("not needed")
