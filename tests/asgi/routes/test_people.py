"""People over HTTP: invited, changed, signed out; passwords are set by who they are of."""

import uuid

import pytest

PLACE = "/api/v1/people"
FIRST, SECOND = "correct horse battery", "another long password"


@pytest.fixture
def browser(served):
    """A client without a key, on the service's own pages."""
    hooks = {"request": [lambda request: request.headers.update({"origin": served.url})]}
    with served.client("", event_hooks=hooks) as found:
        yield found


@pytest.fixture
def invited(api):
    """A person who was invited: the answer."""
    return api.post(PLACE, json={"name": f"ada-{uuid.uuid4().hex[:6]}", "role": "viewer"}).json()


def _accept(browser, invitation, password=FIRST):
    order = {"invitation": invitation, "password": password}
    return browser.post("/api/v1/session/invitation", json=order).status_code


def _sign_in(browser, person, password=FIRST):
    order = {"name": person["name"], "password": password}
    return browser.post("/api/v1/session", json=order).status_code


def test_an_invitation_sets_a_password_once(api, browser, invited):
    """Before it nobody signs in; used, changed or of somebody else it is worth nothing."""
    person, text = invited["person"], invited["invitation"]
    other = api.post(PLACE, json={"name": f"berta-{uuid.uuid4().hex[:6]}"}).json()
    forged = ".".join([other["person"]["id"], *text.split(".")[1:]])

    assert _sign_in(browser, person) == 401
    assert _accept(browser, text, "short") == 422
    assert _accept(browser, forged) == 401
    assert _accept(browser, text) == 204
    assert _accept(browser, text, SECOND) == 401
    assert _sign_in(browser, person) == 200


def test_a_reset_password_ends_the_old_one_and_all_sessions(api, browser, invited):
    """The old one is good until the new one is set; then who was signed in is not any more."""
    person = invited["person"]
    _accept(browser, invited["invitation"])
    _sign_in(browser, person)
    reset = api.post(f"{PLACE}/{person['id']}/invitation").json()["invitation"]

    assert browser.get("/api/v1/session").status_code == 200
    assert _accept(browser, reset, SECOND) == 204
    assert browser.get("/api/v1/session").status_code == 401
    assert (_sign_in(browser, person), _sign_in(browser, person, SECOND)) == (401, 200)


def test_a_person_changes_their_own_password(api, browser, invited):
    """With the old one only; a key has none."""
    person = invited["person"]
    _accept(browser, invited["invitation"])
    _sign_in(browser, person)
    change = "/api/v1/session/password"

    assert browser.post(change, json={"old": SECOND, "new": FIRST}).status_code == 403
    assert browser.get("/api/v1/session").status_code == 200
    assert browser.post(change, json={"old": FIRST, "new": SECOND}).status_code == 204
    assert browser.get("/api/v1/session").status_code == 401
    assert _sign_in(browser, person, SECOND) == 200
    assert api.post(change, json={"old": FIRST, "new": SECOND}).status_code == 422


def test_a_change_holds_from_the_next_request_on(api, browser, invited):
    """Role, bounds and being disabled; what is left out stays, null bounds are none."""
    person = invited["person"]
    place = f"{PLACE}/{person['id']}"
    _accept(browser, invited["invitation"])
    _sign_in(browser, person)
    raised = api.patch(place, json={"role": "editor", "tenants": ["acme"]}).json()
    told = browser.get("/api/v1/session").json()
    loosed = api.patch(place, json={"tenants": None}).json()
    ended = api.patch(place, json={"is_disabled": True}).json()
    audited = api.get("/api/v1/audit", params={"subject": person["name"]}).json()["entries"]

    assert (raised["role"], raised["tenants"]) == ("editor", ["acme"])
    assert ("snapshots:write" in told["scopes"], ["acme"]) == (True, told["tenants"])
    assert (loosed["role"], loosed["tenants"]) == ("editor", None)
    assert ended["disabled"]
    assert [one["action"] for one in audited] == [
        "person.disable",
        "person.change",
        "person.change",
        "person.create",
    ]
    assert browser.get("/api/v1/session").status_code == 401
    assert _sign_in(browser, person) == 401
    assert api.post(f"{place}/invitation").status_code == 422
    assert api.patch(place, json={"is_disabled": False}).json()["disabled"] is None
    assert _sign_in(browser, person) == 200


def test_sessions_are_listed_and_ended(served, api, browser, invited):
    """One by its id, or all; an id signs nobody in."""
    person = invited["person"]
    place = f"{PLACE}/{person['id']}/sessions"
    _accept(browser, invited["invitation"])
    _sign_in(browser, person)
    (one,) = api.get(place).json()["sessions"]
    cookie = {"freezeframe_session": one["id"]}

    with served.client("", cookies=cookie) as thief:
        assert thief.get("/api/v1/session").status_code == 401
    assert api.delete(f"{place}/{'0' * 16}").status_code == 204
    assert browser.get("/api/v1/session").status_code == 200
    assert api.delete(f"{place}/{one['id']}").status_code == 204
    assert browser.get("/api/v1/session").status_code == 401
    _sign_in(browser, person)
    _sign_in(browser, person)
    assert len(api.get(place).json()["sessions"]) == 2
    assert api.delete(place).status_code == 204
    assert api.get(place).json()["sessions"] == []


def test_nobody_changes_their_own_role(api, browser, invited):
    """An admin who signed in cannot make the service one without an admin; people are in the audit."""
    person = invited["person"]
    _accept(browser, invited["invitation"])
    api.patch(f"{PLACE}/{person['id']}", json={"role": "admin"})
    _sign_in(browser, person)
    listed = browser.get(PLACE).json()["people"]
    told = api.get("/api/v1/audit", params={"subject": person["name"]}).json()["entries"]

    assert browser.patch(f"{PLACE}/{person['id']}", json={"role": "viewer"}).status_code == 422
    assert person["name"] in {one["name"] for one in listed}
    assert {one["action"] for one in told} == {"person.create", "person.change"}
    assert api.get(f"{PLACE}/{'0' * 18}/sessions").status_code == 404


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
        answers = [viewer.get(one) for one in ways]
        plain = viewer.get(f"{place}/files/open.txt")
    with served.client(served.key("snapshots:read", "secrets:read")) as reader:
        allowed = {reader.get(one).status_code for one in ways}

    assert [one.status_code for one in answers] == [403] * 4
    assert {one.json()["scope"] for one in answers} == {"secrets:read"}
    assert (plain.status_code, allowed) == (200, {200})
