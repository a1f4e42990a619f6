"""Sessions in a browser: the cookie holds a token of its own and ends with what it was begun with."""

import pytest

from freezeframe.service.access.audit_entry import AuditPlace

WHO = "/api/v1/session"
TENANTS = "/api/v1/environments/dev/tenants"
PASSWORD = "correct horse battery"


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
    token = served.service.key_sessions.begin(made.text)
    before = status(served, token)
    if ending == "revoked":
        served.service.keys.revoke(made.key.id)
    elif ending == "rotated":
        served.service.keys.rotate(made.key.id, overlap_hours=0)
    assert (401 if ending == "expired" else 200, 401) == (before, status(served, token))


def test_signing_in_with_a_key_is_in_the_audit(served):
    """As it is with a password; who signs in with none has no session."""
    key = served.key("tenants:read")
    with served.client("") as browser:
        signed_in(served, browser, {"key": key})
        begun = served.service.audit.entries(AuditPlace())[0]
        wrong = browser.post(WHO, json={"key": "id.secret"}, headers={"origin": served.url})
    assert (begun.action, wrong.status_code) == ("session.begin", 401)
    assert begun.principal.startswith(f"key:{key.partition('.')[0]} ")


@pytest.mark.parametrize(
    ("url", "is_secure"), [("https://snapshots.example.org", True), ("http://x.example", False)]
)
@pytest.mark.parametrize("order", ["key", "person"])
def test_cookies_are_secure_where_browsers_use_https(serve, url, is_secure, order):
    """Also behind a proxy that speaks https, where the service hears plain http."""
    served = serve(service_url=url)
    served.service.people.create("ada", PASSWORD, "viewer")
    with served.client("") as browser:
        given = {"key": served.key()} if order == "key" else {"name": "ada", "password": PASSWORD}
        cookie = signed_in(served, browser, given)
        left = browser.delete(WHO, headers={"origin": served.url, "cookie": cookie.partition(";")[0]})
    assert [is_secure] * 2 == ["Secure" in one for one in (cookie, left.headers["set-cookie"])]
