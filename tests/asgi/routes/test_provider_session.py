"""Signing in with an account of an identity provider, and what is not believed of one."""

import time
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from tests.asgi.conftest import NO_TLS
from tests.asgi.identity_provider import CLIENT, SECRET, Provider

WHO = "/api/v1/session"
LEAVE = "/api/v1/session/provider"
RETURN = "/api/v1/session/provider/return"
TENANTS = "/api/v1/environments/dev/tenants"


@pytest.fixture(scope="module")
def provider():
    """A provider on loopback."""
    found = Provider()
    yield found
    found.close()


@pytest.fixture(scope="module")
def site(serve, provider):
    """A service that its accounts may sign in to."""
    return serve(
        service_requests_per_second=0,
        service_oidc_issuer=provider.issuer,
        service_oidc_client_id=CLIENT,
        service_oidc_client_secret=SECRET,
        service_oidc_name="Example",
        service_oidc_roles="ops=admin, staff=editor, guests=viewer",
    )


@pytest.fixture
def browser(site, provider):
    """Somebody who is nobody yet; the provider behaves."""
    provider.claims, provider.sign = {}, provider.signed
    with site.client("") as found:
        yield found


def come_back(browser, page=None):
    """Go to the provider and follow it back; the last answer."""
    left = browser.get(LEAVE, params={} if page is None else {"next": page})
    assert left.status_code == 302, left.text
    there = httpx.get(left.headers["location"], verify=NO_TLS)
    return browser.get(there.headers["location"])


def test_an_account_signs_in_and_out(site, provider, browser):
    """The person has the claim's role, a session as everybody has, and the same id at the next sign-in."""
    assert browser.get(f"{WHO}/ways").json() == {"provider": "Example"}
    done = come_back(browser, "/tenants/acme?tab=files")
    who = browser.get(WHO).json()
    cookie = done.headers.get_list("set-cookie")

    assert (done.status_code, done.headers["location"]) == (303, "/tenants/acme?tab=files")
    assert (who["kind"], who["name"], "admin" in who["scopes"]) == ("person", "ada@example.org", False)
    assert any(
        "freezeframe_session=" in item and "HttpOnly" in item and "SameSite=lax" in item for item in cookie
    )
    origin = {"origin": site.url}
    assert browser.post(TENANTS, json={"tenant": "made"}, headers=origin).status_code == 201
    assert browser.delete(WHO, headers=origin).status_code == 204
    assert browser.get(WHO).status_code == 401
    assert come_back(browser).status_code == 303
    assert browser.get(WHO).json()["id"] == who["id"]


def test_the_role_is_what_the_claim_says_now(provider, browser):
    """Of several the highest; with the next sign-in it may be another one."""
    for roles, admin in ((["guests", "ops", "x"], True), ("guests", False)):
        provider.claims = {"roles": roles}
        assert come_back(browser).status_code == 303
        scopes = browser.get(WHO).json()["scopes"]
        assert (admin, admin) == ("admin" in scopes, "snapshots:write" in scopes)


def test_who_has_no_role_is_told_what_is_missing(provider, browser):
    """Nobody is made, nobody is signed in; a browser gets a page, in which nothing of the claim is markup."""
    provider.claims = {"sub": "2", "email": "bob@example.org", "roles": ["<script>x"]}
    refused = come_back(browser)
    problem = refused.json()
    browser.headers["accept"] = "text/html"
    page = come_back(browser)

    assert (refused.status_code, problem["code"]) == (403, "NO_ROLE")
    assert "'roles'" in problem["cause"]
    assert "guests, ops, staff" in problem["cause"]
    assert (page.status_code, "<script>" in page.text, "&lt;script&gt;" in page.text) == (403, False, True)
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert browser.get(WHO).status_code == 401


def test_two_accounts_of_one_name_are_two_people(provider, browser):
    """A name is shown; rights and the audit go by the account's id."""
    found = []
    for subject in ("3", "4"):
        provider.claims = {"sub": subject, "email": "root@example.org\n", "roles": ["guests"]}
        assert come_back(browser).status_code == 303
        found.append(browser.get(WHO).json())

    assert ["root@example.org"] * 2 == [item["name"] for item in found]
    assert found[0]["id"] != found[1]["id"]


NOW = time.time()
LIES = {
    "an empty subject": {"sub": ""},
    "a subject of spaces": {"sub": "  "},
    "a subject that is not text": {"sub": 7},
    "another nonce": {"nonce": "another"},
    "no nonce": {"nonce": None},
    "another issuer": {"iss": "https://evil.example"},
    "another audience": {"aud": "somebody"},
    "several audiences": {"aud": [CLIENT, "somebody"], "azp": "somebody"},
    "expired": {"exp": int(NOW) - 3600, "iat": int(NOW) - 7200},
    "no expiry": {"exp": None},
    "from the future": {"iat": int(NOW) + 86_400},
    "not yet": {"nbf": int(NOW) + 86_400},
    "nobody": {"sub": None},
    "another access token": {"at_hash": "AAAAAAAAAAAAAAAAAAAAAA"},
}


@pytest.mark.parametrize("lie", LIES)
def test_a_token_that_is_not_what_it_must_be(provider, browser, lie):
    """Signed as it should be, and not for us, or not for now."""
    provider.claims = LIES[lie]

    assert (come_back(browser).status_code, come_back(browser).json()["code"]) == (401, "NOT_AUTHENTICATED")
    assert browser.get(WHO).status_code == 401


@pytest.mark.parametrize("way", ["signed_by_another", "signed_by_nobody", "signed_with_the_public_key"])
def test_a_token_that_is_not_the_providers(provider, browser, way):
    """By another key, by none (alg none), or by the public key as if it were a shared secret."""
    provider.sign = getattr(provider, way)

    assert come_back(browser).status_code == 401
    assert browser.get(WHO).status_code == 401


def test_clocks_may_differ_a_little(provider, browser):
    """Half a minute is no lie."""
    provider.claims = {"iat": int(time.time()) + 30, "exp": int(time.time()) - 30}

    assert come_back(browser).status_code == 303


def test_a_return_is_for_the_browser_that_left_and_for_once(site, provider, browser):
    """Without the ticket, with another's, a second time, or with another state nobody is signed in."""
    left = browser.get(LEAVE)
    ticket = browser.cookies["freezeframe_sign_in"]
    back = httpx.get(left.headers["location"], verify=NO_TLS).headers["location"]
    forged = back.replace("state=", "state=x")
    with site.client("") as victim:
        assert victim.get(back).status_code == 401  # a link that an attacker sends, made for another session
        victim.get(LEAVE)
        assert victim.get(back).status_code == 401
    assert browser.get(forged).status_code == 401
    browser.cookies.set("freezeframe_sign_in", ticket)
    assert browser.get(back).status_code == 303
    browser.cookies.clear()
    again = {"cookie": f"freezeframe_sign_in={ticket}"}
    assert browser.get(back, headers=again).status_code == 401
    for cookie in ("", "x", ticket[:-3] + "AAA", ticket[5:]):
        broken = {"cookie": f"freezeframe_sign_in={cookie}"}
        assert browser.get(back, headers=broken).status_code == 401
    assert browser.get(WHO).status_code == 401


@pytest.mark.parametrize(
    "page",
    [
        "//evil.example",
        "https://evil.example",
        "/\\evil.example",
        "\\\\evil",
        "/a\r\nSet-Cookie: x=1",
        "javascript:1",
        "",
    ],
)
def test_nobody_is_sent_elsewhere(browser, page):
    """An address that is not a page of ours is not the end of a sign-in."""
    done = come_back(browser, page)

    assert (done.status_code, done.headers["location"]) == (303, "/tenants")


def test_what_is_sent_to_the_provider(site, browser):
    """A challenge and not its verifier, and an address of ours."""
    request = parse_qs(urlsplit(browser.get(LEAVE).headers["location"]).query)

    assert tuple(request[name] for name in ("code_challenge_method", "response_type", "client_id")) == (
        ["S256"],
        ["code"],
        [CLIENT],
    )
    assert [f"{site.url}{RETURN}"] == request["redirect_uri"]
    assert "code_verifier" not in request
    assert browser.get(f"{RETURN}?error=access_denied&state=x").status_code == 401


def test_without_a_provider_there_is_none(served):
    """The page is told so, and the ways there are not there."""
    with served.client("") as browser:
        assert browser.get(f"{WHO}/ways").json() == {"provider": None}
        assert [browser.get(item).status_code for item in (LEAVE, RETURN)] == [404, 404]


@pytest.fixture(scope="module")
def bounded(serve, provider):
    """A service whose accounts are bound by claims."""
    return serve(
        service_oidc_issuer=provider.issuer,
        service_oidc_client_id=CLIENT,
        service_oidc_client_secret=SECRET,
        service_oidc_roles="ops=admin, staff=editor",
        service_oidc_environment_claim="environments",
        service_oidc_tenant_claim="app.tenants",
    )


@pytest.mark.parametrize(
    ("claims", "environments", "tenants"),
    [
        ({"environments": ["dev"], "app": {"tenants": ["acme", "../x"]}}, ["dev"], ["acme"]),
        ({"environments": "*", "app": {"tenants": "globex"}}, None, ["globex"]),
        ({}, [], []),
    ],
)
def test_claims_bind_an_account(bounded, provider, claims, environments, tenants):
    """At each sign-in to what they say then; without the claim to nothing; what cannot be a name is none."""
    provider.claims, provider.sign = {"roles": ["staff"], **claims}, provider.signed
    bounded.tenant("acme")
    with bounded.client("") as browser:
        done = come_back(browser)
        who = browser.get(WHO).json()
        seen = browser.get("/api/v1/environments/dev/tenants/acme").status_code

    assert done.status_code == 303
    assert (environments, tenants) == (who["environments"], who["tenants"])
    assert (200 if tenants == ["acme"] else 404) == seen
