"""Verification of an audit chain: what was changed, taken out or cut off since it was written."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from freezeframe.service.access.audit_entry import FIRST, TRIM, AuditEntry, AuditKeys, Head


@dataclass(frozen=True, slots=True)
class AuditProof:
    """Result of a verification; ``broken_at`` is the first entry that differs, with the reason.

    ``entries`` is how many were looked at, ``heads`` how many heads kept elsewhere were compared;
    ``head_number`` and ``head_hash`` are of the newest entry, None and empty where there is none.
    """

    broken_at: int | None
    reason: str
    entries: int
    heads: int
    head_number: int | None
    head_hash: str

    @property
    def is_whole(self) -> bool:
        """Whether every entry up to the newest known head is there as it was written."""
        return self.broken_at is None


def prove(entries: Iterable[AuditEntry], keys: AuditKeys, heads: Sequence[Head] = ()) -> AuditProof:
    """Check a chain, lowest number first, against the heads that are kept elsewhere."""
    walk = _Walk(keys, heads)
    for entry in entries:
        if walk.fault is not None:
            break
        walk.take(entry)
    if walk.fault is None:
        walk.end()
    number, reason = walk.fault or (None, "")
    last = walk.last
    head = (None, "") if last is None else (last.number, last.hash)
    return AuditProof(number, reason, walk.count, walk.compared, *head)


class _Walk:
    """The way through one chain; ``fault`` is the first that was found."""

    def __init__(self, keys: AuditKeys, heads: Sequence[Head]) -> None:
        self._keys = keys
        self._heads: dict[int, list[Head]] = {}
        for head in heads:
            self._heads.setdefault(head.number, []).append(head)
        self._first: AuditEntry | None = None
        self._is_start_told = False
        self.last: AuditEntry | None = None
        self.count = self.compared = 0
        self.fault: tuple[int, str] | None = None

    def take(self, entry: AuditEntry) -> None:
        """Check one entry: its own hash, its predecessor, and the heads of its number."""
        number = entry.number
        if self.last is None:
            self._first = entry
            self._compare(number - 1, entry.previous_hash)
        elif number != self.last.number + 1:
            self._break(self.last.number + 1, "the entry is missing")
        elif entry.previous_hash != self.last.hash:
            self._break(number, "it does not follow from the entry before")
        elif self.last.signing_key and not entry.signing_key:
            self._break(number, "it is not signed, though the entry before is")
        expected = self._keys.hash(entry.to_record())
        if expected is None:
            self._break(number, "it is signed with a key that this service does not hold")
        elif expected != entry.hash:
            self._break(number, "its content is not what was written")
        self._compare(number, entry.hash)
        if entry.action == TRIM and entry.signing_key:
            self._note_trim(entry)
        self.last, self.count = entry, self.count + 1

    def end(self) -> None:
        """Check what holds for the whole chain."""
        first, last = self._first, self.last
        if first is not None and not self._is_start_told:
            self._break(0, "entries before the first one are missing")
        if last is not None and not last.signing_key:
            self._break(last.number, "the newest entry is not signed")
        end = -1 if last is None else last.number
        for head in (one for number, heads in self._heads.items() if number > end for one in heads):
            self._break(end + 1, f"the chain ends here; {head.origin} knows entry {head.number}")

    def _note_trim(self, entry: AuditEntry) -> None:
        told, first = json.loads(entry.details), self._first
        if first is not None and (told["removed_through"], told["hash"]) == (
            first.number - 1,
            first.previous_hash,
        ):
            self._is_start_told = True

    def _compare(self, number: int, found: str) -> None:
        if number < 0:
            self._is_start_told = self._is_start_told or found == FIRST
        for head in self._heads.get(number, ()):
            self.compared += 1
            if head.hash != found:
                self._break(number, f"{head.origin} knows it with another hash")

    def _break(self, number: int, reason: str) -> None:
        if self.fault is None:
            self.fault = (number, reason)
