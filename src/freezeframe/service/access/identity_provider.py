"""OpenID Connect sign-in: the authorization code flow with PKCE.

The service sends a browser to the provider with a new state, nonce and challenge; the browser returns with a
code. The service exchanges the code for an ID token, which the provider must have signed, for this client and
nonce, and which must be valid now. Its claims give the person's role, environments and tenants.
"""

import functools
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import httpx
from authlib.common.security import generate_token  # type: ignore[import-untyped]  # ships no types
from authlib.oauth2.rfc6749.parameters import prepare_grant_uri  # type: ignore[import-untyped]  # as above
from authlib.oauth2.rfc7636 import create_s256_code_challenge  # type: ignore[import-untyped]  # as above
from authlib.oidc.core import CodeIDToken  # type: ignore[import-untyped]  # as above
from joserfc import jwt
from joserfc.errors import InvalidKeyIdError, JoseError
from joserfc.jwk import KeySet

from freezeframe.errors import (
    InputNotFound,
    InvalidName,
    NotAllowed,
    NotAuthenticated,
    SetupError,
    TryAgain,
)
from freezeframe.identifiers import EnvironmentName, TenantId
from freezeframe.service.access.keys import ROLES, Role
from freezeframe.settings import Settings

# Algorithms with a private key only: neither "none" nor a shared secret.
ALGORITHMS = (
    "RS256",
    "RS384",
    "RS512",
    "PS256",
    "PS384",
    "PS512",
    "ES256",
    "ES384",
    "ES512",
    "Ed25519",
    "EdDSA",
)
CLOCK_SKEW_SECONDS = 60
_TIMEOUT_SECONDS = 10.0
_KEPT_SECONDS = 3600.0
_KEYS_ASKED_EVERY_SECONDS = 10.0
_TOKEN_LENGTH = 48
_LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
_NAMES = ("preferred_username", "email", "name", "sub")


@dataclass(frozen=True, slots=True)
class SignInAttempt:
    """What a browser was sent to the provider with; it has to come back with the same state."""

    state: str = field(repr=False)
    nonce: str = field(repr=False)
    verifier: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Account:
    """An account at the provider: its unique subject, its name, and its role in the service.

    ``bounds`` has ``environments`` and ``tenants`` where claims tell them: names, or None for all.
    """

    issuer: str
    subject: str
    name: str
    role: Role
    bounds: dict[str, tuple[str, ...] | None]


def new_sign_in_attempt() -> SignInAttempt:
    """Return an attempt of one browser."""
    return SignInAttempt(*(generate_token(_TOKEN_LENGTH) for _ in range(3)))


class IdentityProvider:
    """The provider that the settings name; its addresses and keys are fetched once an hour."""

    def __init__(self, settings: Settings) -> None:
        self.issuer = settings.service_oidc_issuer
        self._client_id = settings.service_oidc_client_id
        self._client_secret = _client_secret(settings)
        self._scopes = settings.service_oidc_scopes
        self._claim = settings.service_oidc_role_claim
        self._roles = parse_roles(settings.service_oidc_roles)
        claims = (
            ("environments", settings.service_oidc_environment_claim, EnvironmentName),
            ("tenants", settings.service_oidc_tenant_claim, TenantId),
        )
        self._bounds = [item for item in claims if item[1]]
        host = urlsplit(self.issuer).hostname or ""
        self.name = settings.service_oidc_name or host
        if not (self._client_id and "openid" in self._scopes.split() and _is_safe(self.issuer)):
            raise SetupError(
                "The settings of the identity provider are not valid.",
                cause="An https issuer, a client id and the scope openid are required.",
                remedy="Set service_oidc_issuer, service_oidc_client_id and service_oidc_scopes.",
            )
        self._lock = threading.Lock()
        self._metadata: tuple[float, Mapping[str, Any]] | None = None
        self._keys: tuple[float, KeySet] | None = None

    def address(self, attempt: SignInAttempt, redirect_uri: str) -> str:
        """Return the provider's address that a browser is redirected to."""
        address: str = prepare_grant_uri(
            self._endpoint("authorization_endpoint"),
            self._client_id,
            "code",
            redirect_uri=redirect_uri,
            scope=self._scopes,
            state=attempt.state,
            nonce=attempt.nonce,
            code_challenge=create_s256_code_challenge(attempt.verifier),
            code_challenge_method="S256",
        )
        return address

    def account(self, attempt: SignInAttempt, code: str, redirect_uri: str) -> Account:
        """Return the account that the provider gives for the code."""
        response = self._token(attempt, code, redirect_uri)
        claims = self._claims(str(response.get("id_token", "")), attempt.nonce, response.get("access_token"))
        name = next(
            claims[item] for item in _NAMES if isinstance(claims.get(item), str) and claims[item].strip()
        )
        subject = claims["sub"]
        if not isinstance(subject, str) or not subject.strip():
            raise NotAuthenticated(
                "The provider did not identify you.",
                cause="Its ID token has no subject (sub).",
                remedy="Ask the operator of the provider.",
            )
        role = role_of(claims, self._claim, self._roles)
        bounds = {what: bounds_of(claims, claim, kind) for what, claim, kind in self._bounds}
        return Account(self.issuer, subject, name, role, bounds)

    def _token(self, attempt: SignInAttempt, code: str, redirect_uri: str) -> Mapping[str, Any]:
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": redirect_uri,
            "code_verifier": attempt.verifier,
            "client_id": self._client_id,
        }
        methods = self._discover().get("token_endpoint_auth_methods_supported", ["client_secret_basic"])
        auth = None
        if self._client_secret and "client_secret_basic" in methods:
            auth = httpx.BasicAuth(self._client_id, self._client_secret)
        elif self._client_secret:
            form["client_secret"] = self._client_secret
        answer = _ask("POST", self._endpoint("token_endpoint"), data=form, auth=auth)
        token = _object(answer)
        if answer.is_error or not token.get("id_token"):
            raise _refusal(
                f"The provider did not take the code ({token.get('error') or answer.status_code})."
            )
        return token

    def _claims(self, token: str, nonce: str, access_token: Any) -> Mapping[str, Any]:
        """Return the claims of a valid ID token of the provider, for this client and this nonce."""
        try:
            try:
                signed = jwt.decode(token, self._key_set(), algorithms=list(ALGORITHMS))
            except InvalidKeyIdError:  # the provider may have new keys since
                signed = jwt.decode(token, self._key_set(anew=True), algorithms=list(ALGORITHMS))
            must_be = {
                "iss": {"essential": True, "value": self.issuer},
                "aud": {"essential": True, "value": self._client_id},
                "nonce": {"essential": True, "value": nonce},
            }
            known = {"nonce": nonce, "client_id": self._client_id, "access_token": access_token}
            claims = CodeIDToken(signed.claims, signed.header, must_be, known)
            claims.validate(leeway=CLOCK_SKEW_SECONDS)
        except (JoseError, ValueError) as error:
            raise _refusal(f"The provider's token is not what it must be: {error}.") from error
        return dict(claims)

    def _endpoint(self, name: str) -> str:
        found = self._discover().get(name)
        if not isinstance(found, str) or not _is_safe(found):
            raise _unreachable(f"Its discovery document has no usable {name}.")
        return found

    def _discover(self) -> Mapping[str, Any]:
        with self._lock:
            if self._metadata is None or self._metadata[0] < time.monotonic():
                url = f"{self.issuer.rstrip('/')}/.well-known/openid-configuration"
                found = _object(_ask("GET", url))
                if found.get("issuer") != self.issuer:
                    raise _unreachable(f"It calls itself {found.get('issuer')!r}, not {self.issuer!r}.")
                self._metadata = (time.monotonic() + _KEPT_SECONDS, found)
            return self._metadata[1]

    def _key_set(self, *, anew: bool = False) -> KeySet:
        address = self._endpoint("jwks_uri")
        with self._lock:
            now = time.monotonic()
            # A token with an unknown key id causes a refresh, but at a limited rate.
            is_old = self._keys is None or now > self._keys[0] + _KEPT_SECONDS
            if is_old or (anew and self._keys and now > self._keys[0] + _KEYS_ASKED_EVERY_SECONDS):
                found = _object(_ask("GET", address))
                self._keys = (now, KeySet.import_key_set({"keys": found.get("keys", [])}))
            assert self._keys is not None  # noqa: S101 - fetched above
            return self._keys[1]


def _client_secret(settings: Settings) -> str:
    path = settings.service_oidc_client_secret_file
    if path is None:
        return settings.service_oidc_client_secret
    try:
        return path.read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        raise InputNotFound(
            f"There is no file {path} with the client's secret.",
            remedy="Check service_oidc_client_secret_file.",
        ) from None
    except OSError as error:
        raise SetupError(
            f"The client's secret cannot be read from {path}.", cause=str(error), remedy="Check its mode."
        ) from error


def _is_safe(address: str) -> bool:
    """Return whether the connection is private: https, or this machine."""
    parts = urlsplit(address)
    return parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _LOOPBACK)


@functools.cache
def _tls() -> ssl.SSLContext:
    """Return the authorities that are trusted; reading them takes longer than a request."""
    return httpx.create_ssl_context()


def _ask(method: str, url: str, **options: Any) -> httpx.Response:
    try:
        return httpx.request(method, url, timeout=_TIMEOUT_SECONDS, verify=_tls(), **options)
    except httpx.HTTPError as error:
        raise _unreachable(str(error)) from error


def _object(answer: httpx.Response) -> Mapping[str, Any]:
    try:
        found = answer.json()
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise _unreachable(f"It answered {answer.status_code}, and with no JSON object.")
    return found


def _unreachable(cause: str) -> TryAgain:
    return TryAgain(
        "The identity provider cannot be used now.",
        cause=cause,
        remedy="Try again; if it fails again, ask the operator of this service.",
        code="PROVIDER_UNAVAILABLE",
    )


def _refusal(cause: str) -> NotAuthenticated:
    return NotAuthenticated("The sign-in failed.", cause=cause, remedy="Begin again at the sign-in page.")


def parse_roles(text: str) -> dict[str, Role]:
    """Parse roles by the claim's values, as in ``ops-team=admin, support=viewer``; empty: the roles."""
    if not text.strip():
        return {role: role for role in ROLES}
    found: dict[str, Role] = {}
    for pair in text.split(","):
        value, separator, named = (part.strip() for part in pair.rpartition("="))
        role: Role | None = next((item for item in ROLES if item == named), None)
        if not (separator and value and role):
            raise SetupError(
                f"{pair.strip()!r} in service_oidc_roles is not a role of a claim's value.",
                remedy=f"Write it as group=role, with a role of {', '.join(ROLES)}.",
            )
        found[value] = role
    return found


def role_of(claims: Mapping[str, Any], claim: str, roles: Mapping[str, Role]) -> Role:
    """Return the highest role that the claim gives."""
    values = _values(claims, claim)
    # The roles stand from the highest to the lowest.
    found: Role | None = next(
        (item for item in ROLES if item in {roles.get(value) for value in values}), None
    )
    if found is None:
        raise NotAllowed(
            "Your account has no role here.",
            cause=f"Its claim {claim!r} has {', '.join(map(repr, values[:20])) or 'nothing'}, and none of "
            f"{', '.join(sorted(roles))}.",
            remedy="Ask the administrator of the accounts for one of these roles.",
            code="NO_ROLE",
        )
    return found


def bounds_of(claims: Mapping[str, Any], claim: str, kind: type[str]) -> tuple[str, ...] | None:
    """Return the names that the claim binds a person to; None for ``*``. What is not a name is left out."""
    values = _values(claims, claim)
    return None if "*" in values else tuple(sorted({str(name) for name in _names(values, kind)}))


def _names(values: list[str], kind: type[str]) -> Iterator[str]:
    for value in values:
        with suppress(InvalidName):
            yield kind(value)


def _values(claims: Mapping[str, Any], claim: str) -> list[str]:
    found: Any = claims.get(claim)
    if found is None:
        found = claims
        for name in claim.split("."):
            found = found.get(name) if isinstance(found, Mapping) else None
    listed = found if isinstance(found, list) else [found]
    return [item for item in listed if isinstance(item, str)]
