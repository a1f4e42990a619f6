"""Conditions of a request (RFC 9110, section 13): entity tags that must or must not be what is there."""

from __future__ import annotations

import re
from dataclasses import dataclass

from freezeframe.errors import PreconditionFailed, PreconditionRequired, UnreadableRequest

_TAG = re.compile(r'\s*(W/)?"([^"\x00-\x1f\x7f]*)"\s*(?:,|$)')
_ANY = "*"


@dataclass(frozen=True, slots=True)
class Conditions:
    """What ``If-Match`` and ``If-None-Match`` say; None: the header is not there.

    ``strict``: a change of what is there needs one of them (``service_requires_conditions``).
    """

    if_match: str | None = None
    if_none_match: str | None = None
    strict: bool = False

    @property
    def are_given(self) -> bool:
        """Whether there is any."""
        return self.if_match is not None or self.if_none_match is not None

    def require(self, etag: str | None, *, strict: bool = False) -> None:
        """Refuse a change unless the current state (None: nothing) meets the request's conditions.

        With ``strict`` a change of something that is there needs a condition.

        Raises:
            PreconditionFailed: it is something else.
            PreconditionRequired: there is no condition and there must be one.
            UnreadableRequest: a header is not a list of entity tags.
        """
        if (
            (strict or self.strict)
            and etag is not None
            and self.if_match is None
            and self.if_none_match is None
        ):
            raise PreconditionRequired(
                "A change of what is there needs If-Match.",
                cause="The service is set up to refuse changes that do not say what they rest on.",
                remedy="Read it first and send its ETag as If-Match.",
            )
        if self.if_match is not None and not _names(self.if_match, etag, strong=True):
            raise PreconditionFailed(
                "It is not what If-Match says.",
                cause="There is nothing." if etag is None else "Somebody changed it meanwhile.",
                remedy="Read it again and decide anew.",
                etag=etag,
            )
        if self.if_none_match is not None and _names(self.if_none_match, etag, strong=False):
            raise PreconditionFailed(
                "There is one already.",
                cause="If-None-Match asks for a change only where there is none (or another one).",
                remedy="Read it, and send its ETag as If-Match to replace it.",
                etag=etag,
            )

    def is_fresh(self, etag: str) -> bool:
        """Whether the client has this very version already, so that the answer is 304."""
        return self.if_none_match is not None and _names(self.if_none_match, etag, strong=False)


def _names(header: str, etag: str | None, *, strong: bool) -> bool:
    if header.strip() == _ANY:
        return etag is not None
    position, found = 0, False
    while position < len(header):
        match = _TAG.match(header, position)
        if match is None:
            raise UnreadableRequest(
                f"{header!r} is not a list of entity tags.",
                cause="A tag stands in quotes, as the header ETag gives it.",
                remedy='Send * or tags in quotes, such as "12".',
            )
        found = found or (etag == f'"{match[2]}"' and not (strong and match[1]))
        position = match.end()
    return found
