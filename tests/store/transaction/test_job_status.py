"""What became of a job, and how a run that was given up is kept from committing."""

import pytest

from freezeframe.errors import JobRevoked
from freezeframe.storage import MemoryStorage
from freezeframe.store.job import find_committed_job, revoke_job
from freezeframe.store.tenant import open_job_tenant
from freezeframe.store.tenant_log.state import TenantState, parse_checkpoint


class FreezingStorage(MemoryStorage):
    """A storage whose user is frozen before one of its calls; ``meanwhile`` happens then."""

    def __init__(self):
        super().__init__()
        self.frozen_before = self.meanwhile = None
        self.calls = 0

    def _call(self):
        if self.meanwhile is not None:
            self.calls += 1
            if self.calls == self.frozen_before:
                meanwhile, self.meanwhile = self.meanwhile, None
                meanwhile()

    def list_from(self, folder, start=""):
        self._call()
        return super().list_from(folder, start)

    def read(self, name, offset=0, length=None):
        self._call()
        return super().read(name, offset, length)

    def put_if_absent(self, name, content):
        self._call()
        super().put_if_absent(name, content)

    def replace(self, name, content, *, durable=True):
        self._call()
        super().replace(name, content, durable=durable)


def run(tenant, token):
    """One run of job ``j``: it writes its token into a file."""
    with open_job_tenant(tenant.context, "j", token=token) as job:
        job.files.write("who.txt", token.encode())


def test_a_run_frozen_at_any_moment_and_taken_over_cannot_commit(open_on):
    """Between any two calls of its storage, also before it was heard of; the job's next run can."""
    ends = []
    for frozen_before in range(1, 100):
        storage = FreezingStorage()
        open_on(storage).files.write("before.txt", b"")
        tenant = open_on(storage)  # its process is there; of the job nothing has been said yet
        other = open_on(storage)
        storage.frozen_before = frozen_before
        storage.meanwhile = lambda other=other: revoke_job(other.context, "j", "silent", tokens=["first"])
        try:
            run(tenant, "first")
            ends.append("committed")
        except JobRevoked:
            ends.append("refused")
            assert [item.path for item in other.files.list()] == ["before.txt"]
            run(other, "second")
        if storage.meanwhile is not None:
            break  # it ended before it would have been frozen
        expected = {"committed": b"first", "refused": b"second"}[ends[-1]]
        assert open_on(storage).files.read("who.txt") == expected
        assert find_committed_job(other.context, "j") is not None

    # Up to the commit point it is refused, from there on it had committed; there are moments of both kinds.
    assert sorted(set(ends), key=ends.index) == ["refused", "committed"]
    assert ends == sorted(ends, reverse=True)


def test_a_run_is_refused_before_it_begins(open_on):
    """A process that starts late finds its token revoked, and writes nothing; without one nobody knows it."""
    storage = MemoryStorage()
    tenant = open_on(storage)
    tenant.files.write("before.txt", b"")
    assert revoke_job(tenant.context, "j") == ()
    assert revoke_job(tenant.context, "j", tokens=["a/2", "a/1"]) == ("a/1", "a/2")
    assert revoke_job(tenant.context, "j", tokens=["a/1", "a/3"]) == ("a/3",)
    names = [item.name for item in storage.list_below("")]

    with pytest.raises(JobRevoked):
        run(open_on(storage), "a/1")
    assert names == [item.name for item in storage.list_below("")]
    run(open_on(storage), "a/4")
    assert revoke_job(tenant.context, "j", tokens=["a/4"]) == ()
    assert [item.kind for item in reversed(list(tenant.history()))] == [
        "commit",
        "revoke",
        "revoke",
        "commit",
    ]


def test_revoked_tokens_are_kept_as_long_as_job_ids(open_on):
    """They survive a checkpoint, unless they are older than the oldest job that is kept."""
    tenant = open_on(MemoryStorage())
    revoke_job(tenant.context, "j", tokens=["a/1"])
    state = tenant.context.log.current_state()
    assert list(state.revoked_tokens) == ["a/1"]

    kept = parse_checkpoint(state.to_checkpoint(oldest_job_ms=state.timestamp_ms), "checkpoint")
    assert state.revoked_tokens == kept.revoked_tokens
    later = parse_checkpoint(state.to_checkpoint(oldest_job_ms=state.timestamp_ms + 1), "checkpoint")
    assert TenantState().revoked_tokens == later.revoked_tokens
