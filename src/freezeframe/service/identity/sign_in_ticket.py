"""Signed tickets that sign in once: of a browser that was sent to an identity provider, and of a link.

``freezeframe serve`` prints a link on loopback, as Jupyter does; whoever opens it first is an administrator.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets
import time
from dataclasses import asdict, dataclass
from typing import Any

from freezeframe.errors import NotAuthenticated
from freezeframe.service.base.secret import SIGNATURE_BYTES, ServiceSecret
from freezeframe.service.identity.identity_provider import SignInAttempt

LIFE_SECONDS = 600
LINK_SECONDS = 86_400
_LABEL = b"freezeframe sign-in tickets"


@dataclass(frozen=True, slots=True)
class Ticket:
    """An attempt to sign in, and the page that it is to end at."""

    attempt: SignInAttempt
    page: str


class Tickets:
    """Makes and reads tickets; all workers of a service have the same secret."""

    def __init__(self, secret: ServiceSecret) -> None:
        self._secret = secret

    def encode(self, ticket: Ticket) -> str:
        """The ticket as a cookie's value."""
        return self._sign(asdict(ticket), LIFE_SECONDS)

    def read(self, cookie: str, state: str) -> Ticket:
        """The ticket of the browser, if its state matches."""
        record = self._read(cookie)
        try:
            ticket = Ticket(SignInAttempt(**record["attempt"]), record["page"])
        except (KeyError, TypeError):
            raise _unknown() from None
        if not hmac.compare_digest(ticket.attempt.state.encode(), state.encode()):
            raise _unknown()
        return ticket

    def link(self) -> str:
        """A text that signs in once, within a day."""
        return self._sign({"link": secrets.token_hex(8)}, LINK_SECONDS)

    def read_link(self, text: str) -> str:
        """The name under which the use of a link is recorded."""
        link = self._read(text).get("link")
        if not isinstance(link, str):
            raise _unknown()
        return f"link-{link}"

    def name(self, ticket: Ticket) -> str:
        """The name under which a used ticket is recorded."""
        return hashlib.sha256(ticket.attempt.state.encode()).hexdigest()

    def _sign(self, record: dict[str, Any], life_seconds: int) -> str:
        told = {**record, "until": time.time() + life_seconds}
        content = json.dumps(told, separators=(",", ":")).encode()
        signature = self._secret.sign(_LABEL, content)
        return base64.urlsafe_b64encode(signature + content).decode().rstrip("=")

    def _read(self, text: str) -> dict[str, Any]:
        try:
            raw = base64.urlsafe_b64decode(text.encode() + b"=" * (-len(text) % 4))
            signature, content = raw[:SIGNATURE_BYTES], raw[SIGNATURE_BYTES:]
            is_ours = len(signature) == SIGNATURE_BYTES and self._secret.is_signed(_LABEL, content, signature)
            record: dict[str, Any] = json.loads(content) if is_ours else {}
            is_current = record["until"] > time.time()
        except (ValueError, KeyError, TypeError):
            raise _unknown() from None
        if not is_current:
            raise _unknown()
        return record


def local_page(address: str | None, default: str = "/tenants") -> str:
    """The address if it is a page of this service, else the first page: a link cannot redirect elsewhere."""
    is_ours = (
        address is not None
        and address.startswith("/")
        and not address.startswith("//")
        and "\\" not in address
        and address.isprintable()
        and address.isascii()
    )
    return address if is_ours and address is not None else default


def _unknown() -> NotAuthenticated:
    return NotAuthenticated(
        "This sign-in was not begun here, or too long ago.",
        cause="Its ticket is missing, over, or not of this service.",
        remedy="Begin again at the sign-in page, or start freezeframe serve again for another link.",
    )
