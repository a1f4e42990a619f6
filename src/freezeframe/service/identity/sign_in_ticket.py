"""The signed ticket of a sign-in at an identity provider: ten minutes, one use."""

from __future__ import annotations

import base64
import hmac
import json
import time
from dataclasses import asdict, dataclass

from freezeframe.errors import NotAuthenticated
from freezeframe.service.base.pepper import Pepper
from freezeframe.service.identity.identity_provider import SignInAttempt

LIFE_SECONDS = 600
_SIGNATURE_BYTES = 32
_LABEL = b"freezeframe sign-in tickets"


@dataclass(frozen=True, slots=True)
class Ticket:
    """An attempt to sign in, and the page that it is to end at."""

    attempt: SignInAttempt
    page: str


class Tickets:
    """Makes and reads tickets; all workers of a service have the same pepper."""

    def __init__(self, pepper: Pepper) -> None:
        self._pepper = pepper

    def encode(self, ticket: Ticket) -> str:
        """The ticket as a cookie's value."""
        record = {**asdict(ticket), "until": time.time() + LIFE_SECONDS}
        content = json.dumps(record, separators=(",", ":")).encode()
        signature, *_ = self._pepper.signatures(_LABEL, content)
        return base64.urlsafe_b64encode(signature + content).decode().rstrip("=")

    def read(self, cookie: str, state: str) -> Ticket:
        """The ticket of the browser, if its state matches.

        Raises:
            NotAuthenticated: there is none, it is over or not ours, or the state is another one's.
        """
        try:
            raw = base64.urlsafe_b64decode(cookie.encode() + b"=" * (-len(cookie) % 4))
            signature, content = raw[:_SIGNATURE_BYTES], raw[_SIGNATURE_BYTES:]
            signatures = self._pepper.signatures(_LABEL, content)
            is_ours = any(hmac.compare_digest(signature, one) for one in signatures)
            record = json.loads(content) if is_ours else {}
            ticket = Ticket(SignInAttempt(**record["attempt"]), record["page"])
            is_current = record["until"] > time.time()
        except (ValueError, KeyError, TypeError):
            raise _unknown() from None
        if not is_current or not hmac.compare_digest(ticket.attempt.state.encode(), state.encode()):
            raise _unknown()
        return ticket


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
        cause="The browser has no ticket for it, or the ticket is used up.",
        remedy="Begin again at the sign-in page.",
    )
