"""Cursors of pages, and caches by version."""

from __future__ import annotations

import base64
import hashlib
import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, Generic, TypeVar

from freezeframe.errors import InvalidOption
from freezeframe.service.base.secret import ServiceSecret
from freezeframe.store.tenant_log.state import TenantState

# Opaque cursors: where the next page of a list begins, signed so that nobody makes one up.
#
# A cursor is bound to what was listed; given to another list, or for another tenant, it is refused.

_SIGNATURE_BYTES = 16
_LABEL = b"freezeframe cursors"


class Cursors:
    """Makes and reads the cursors of one service; all its workers have the same secret."""

    def __init__(self, secret: ServiceSecret) -> None:
        self._secret = secret

    def encode(self, listing: str, place: Any) -> str:
        """The cursor for the position in a list where the next page begins."""
        content = json.dumps(place, ensure_ascii=False, separators=(",", ":")).encode()
        signature = self._secret.sign(_LABEL, _bound(listing, content))[:_SIGNATURE_BYTES]
        return base64.urlsafe_b64encode(signature + content).decode().rstrip("=")

    def read(self, listing: str, cursor: str) -> Any:
        """The position that ``encode`` was given."""
        try:
            raw = base64.urlsafe_b64decode(cursor.encode() + b"=" * (-len(cursor) % 4))
            signature, content = raw[:_SIGNATURE_BYTES], raw[_SIGNATURE_BYTES:]
            is_whole = len(signature) == _SIGNATURE_BYTES
            if is_whole and self._secret.is_signed(_LABEL, _bound(listing, content), signature):
                return json.loads(content)
        except (ValueError, UnicodeError):
            pass
        raise InvalidOption(
            "The cursor is none of this list.",
            cause="It is of another list or tenant, of the list with other parameters, or was cut short.",
            remedy="Pass next_cursor as the page before gave it, with the same parameters.",
        )


def _bound(listing: str, content: bytes) -> bytes:
    return hashlib.sha256(listing.encode()).digest() + content


# A cache of values derived from a tenant's state, invalidated by a newer version.
#
# A tenant's log gives the same object as its state until it has grown, so that what was made of it is known
# to
# be true by a look at the object, whatever happened in between: a commit, an erasure, a restore of a
# backup.

_T = TypeVar("_T")


class VersionedCache(Generic[_T]):
    """LRU cache of at most ``most`` values; safe to share between threads."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._kept: OrderedDict[Hashable, tuple[TenantState, _T]] = OrderedDict()

    def value(self, name: Hashable, state: TenantState, make: Callable[[_T | None], _T]) -> _T:
        """The value that ``make`` derives from the state, cached; ``make`` gets that of a state it grew from.

        ``name`` is the tenant's folder, which no other tenant ever has, with all else that the value is of.
        """
        with self._lock:
            found = self._kept.get(name)
            if found is not None:
                self._kept.move_to_end(name)
        if found is not None and found[0] is state:
            return found[1]
        made = make(None if found is None or not _grew(found[0], state) else found[1])
        with self._lock:
            self._kept[name] = (state, made)
            self._kept.move_to_end(name)
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)
        return made


def _grew(before: TenantState, state: TenantState) -> bool:
    """Whether commits alone lie between the two: no erasure and no restoration of a backup."""
    return before.version <= state.version and before.erased == state.erased
