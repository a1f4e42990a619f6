"""A bucket that refuses one call after a commit, for the doors at which commits are made."""

import re

from obstore.store import MemoryStore

from freezeframe.storage.memory import Fault, FaultyStorage, Way
from freezeframe.storage.objects import ObjectStorage

OF_TENANT = re.compile(r"tenants/.*/_freezeframe/log/\d{20}\.json")
OF_STORE = re.compile(r"_freezeframe/registry/\d{20}\.json")


class AfterCommit(FaultyStorage):
    """In memory, and not trusted, so that each commit is read back; ``number`` counts calls from 0."""

    def __init__(self):
        super().__init__(ObjectStorage(MemoryStore(), "memory://bucket", is_trusted=False))
        self.expect(None, None)

    def expect(self, commit, number):
        """From now on watch for such a commit."""
        self.commit, self.number, self.seen = commit, number, None

    def _enter(self, verb, name):
        if self.seen is not None:
            self.seen += 1
            return Fault(0, Way.FAIL_BEFORE) if self.seen - 1 == self.number else None
        if verb == "put_if_absent" and self.commit is not None and self.commit.fullmatch(name):
            self.seen = 0
        return None
