"""Jobs: one commit for what a script changes, and their status from outside."""

import contextlib
import threading

import pandas as pd
import pyarrow as pa
import pytest
from tests.examples import sampled
from tests.given import table

from freezeframe.errors import (
    BadInput,
    ConflictError,
    FreezeframeError,
    IdempotencyConflict,
    InvalidName,
    InvalidOption,
    JobRevoked,
    StreamNotFound,
)
from freezeframe.storage import MemoryStorage
from freezeframe.storage.memory import Crash, Fault, FaultyStorage, Way
from freezeframe.store.job import find_committed_job, revoke_job
from freezeframe.store.model.directory import STAGING_FOLDER
from freezeframe.store.tenant import open_script_job
from freezeframe.store.tenant_log import roll_forward
from freezeframe.store.tenant_log.entry import Entry, TenantChange
from freezeframe.store.tenant_log.state import TenantState, parse_checkpoint


def rows(reader, name):
    try:
        return sorted(reader.stream(name).read(as_="arrow")["v"].to_pylist())
    except StreamNotFound:
        return None


def files(storage):
    return sorted(status.name for status in storage.list_below(""))


def test_streams_of_a_job_appear_together(open_on, memory):
    """Inside, the job reads its own changes; others see the last commit until the block is left."""
    tenant = open_on(memory, streams={"Account": table(1)})

    with tenant.job(message="Nightly", who="ops") as job:
        job.stream("Lead").update(table(2), key="Id")
        inside = job.stream("Contact").update(table(3), key="Id")
        assert (rows(job, "Lead"), rows(tenant, "Lead")) == ([2], None)
        assert job.streams() == ("Account", "Contact", "Lead")
        assert (inside.stream_version, inside.version) == (0, 1)

    assert (rows(tenant, "Lead"), rows(tenant, "Contact")) == ([2], [3])
    assert (tenant.version, job.receipt.committed) == (1, True)
    assert {name: one.inserted for name, one in job.receipt.streams.items()} == {"Contact": 1, "Lead": 1}
    (newest,) = tenant.history(limit=1)
    assert (newest.message, set(newest.streams)) == ("Nightly", {"Lead", "Contact"})


def test_an_exception_inside_means_that_nothing_happened(open_on, local):
    """No commit, and no file of the job is left."""
    tenant = open_on(local, streams={"Account": table(1)})
    before = files(local)

    with pytest.raises(ZeroDivisionError), tenant.job("j") as job:  # noqa: PT012 - the end of the block raises
        job.stream("Lead").update(table(2), key="Id")
        raise ZeroDivisionError

    assert (0, before) == (tenant.version, files(local))
    with pytest.raises(InvalidOption):
        _ = job.receipt
    with pytest.raises(InvalidOption, match="over"):
        job.stream("Lead").update(table(2), key="Id")


def test_an_update_that_fails_inside_leaves_the_job_as_it_was(open_on, memory):
    """What a script catches is not part of the job; the rest of it goes on."""
    tenant = open_on(memory)

    with tenant.job() as job:
        job.stream("Lead").update(table(1), key="Id")
        with pytest.raises(BadInput):
            job.stream("Lead").update(pd.DataFrame({"Id": [None], "v": [2]}), key="Id")
        with pytest.raises(InvalidName):
            job.stream("LEAD").update(table(2), key="Id")

    assert (rows(tenant, "Lead"), tenant.streams()) == ([1], ("Lead",))


def test_several_updates_of_a_stream_are_one_commit_of_its_table(open_on, memory):
    """One table version holds the net effect of all of them."""
    tenant = open_on(memory)

    with tenant.job() as job:
        stream = job.stream("Lead")
        stream.update(table(1), key="Id")
        assert stream.update(table(2), key="Id").version == 0
        assert stream.read(as_="arrow").to_pydict() == {"Id": ["1", "2"], "v": [1, 2]}

    assert (rows(tenant, "Lead"), tenant.stream("Lead").version) == ([1, 2], 0)
    commits = [name for name in files(memory) if name.startswith("Lead.snapshot/_delta_log/")]
    assert commits == ["Lead.snapshot/_delta_log/00000000000000000000.json"]
    assert job.receipt.streams["Lead"].inserted == 2
    assert len(job.receipt.streams["Lead"].changed_rows()) == 2


def test_the_same_job_again_is_answered_and_not_done(open_on, memory):
    """The receipt of the first time, no version, no file; whatever happened since."""
    tenant = open_on(memory)

    def run():
        with tenant.job("2026-11-21T04:00") as job:
            found = job.stream("Lead").update(table(1, 2), key="Id")
            assert rows(job, "Lead") == [1, 2]
        return job.receipt, found.inserted

    first, inserted = run()
    tenant.stream("Contact").update(table(9), key="Id")
    before = files(memory)
    again, inserted_again = run()

    assert (again.repeated, first.repeated) == (True, False)
    assert (first.tenant_version, first.streams, inserted) == (
        again.tenant_version,
        again.streams,
        inserted_again,
    )
    assert (1, before) == (tenant.version, files(memory))


@pytest.mark.parametrize("earlier", [0, 1], ids=["the first version", "a later version"])
def test_a_repeated_job_reads_what_it_read_then(open_on, memory, earlier):
    """A job that appends to what it reads appends once, also as the tenant's first version."""
    tenant = open_on(memory)
    for _ in range(earlier):
        tenant.files.write("log", b"0")
    for _ in range(2):
        with tenant.job("j") as job:
            known = job.files.read("log") if job.files.exists("log") else b""
            job.files.write("log", known + b"more")

    assert (known, job.receipt.repeated, tenant.version) == (b"0" * earlier, True, earlier)
    assert tenant.files.read("log") == b"0" * earlier + b"more"


@pytest.mark.parametrize(
    "change",
    [
        lambda job: job.stream("Lead").update(table(1, 3), key="Id"),
        lambda job: job.stream("Lead").update(table(1, 2), key="Id", nulls="overwrite"),
        lambda job: job.files.write("a", b"x"),
        lambda _: None,
    ],
)
def test_the_id_alone_decides(open_on, memory, change):
    """A committed id is answered with its receipt, whatever the rows, options and files are now."""
    tenant = open_on(memory)
    with tenant.job("j") as job:
        job.stream("Lead").update(table(1, 2), key="Id")

    with tenant.job("j") as again:
        change(again)

    assert (True, job.receipt.streams["Lead"].inserted) == (
        again.receipt.repeated,
        again.receipt.streams["Lead"].inserted,
    )
    assert (tenant.version, rows(tenant, "Lead"), tenant.files.exists("a")) == (0, [1, 2], False)


def test_a_stream_that_the_committed_job_did_not_update_is_refused(open_on, memory):
    """There is no receipt to answer with: the id belongs to another job."""
    tenant = open_on(memory)
    with tenant.job("j") as job:
        job.stream("Lead").update(table(1, 2), key="Id")

    with pytest.raises(IdempotencyConflict, match="without the stream 'Other'"), tenant.job("j") as job:
        job.stream("Other").update(table(1, 2), key="Id")

    assert tenant.version == 0


def test_the_rows_of_a_repeated_job_are_not_read(open_on, memory):
    """A reader of batches is left as it is."""
    tenant = open_on(memory)
    with tenant.job("j") as job:
        job.stream("Lead").update(table(1), key="Id")
    batches = pa.RecordBatchReader.from_batches(table(2).schema, table(2).to_batches())

    with tenant.job("j") as again:
        again.stream("Lead").update(batches, key="Id")

    assert again.receipt.repeated
    assert table(2) == batches.read_all()


def test_an_object_with_a_column_of_nothing_is_taken_in_a_job(open_on, memory):
    """In a job with an id as outside of one: a field that is always null has no type yet."""
    tenant = open_on(memory)
    row = pa.table({"id": [1], "customer": [{"zip": "1", "country": None}]})

    with tenant.job("j") as job:
        job.stream("Order").update(row, key="id")

    assert job.receipt.streams["Order"].inserted == 1


def test_job_ids_survive_checkpoints(open_on, local):
    """After the entries are behind a checkpoint, a repeated job is still known."""
    tenant = open_on(local)
    with tenant.job("j") as job:
        job.stream("Lead").update(table(1), key="Id")
    for number in range(12):
        tenant.stream(f"S{number}").update(table(1), key="Id")

    with open_on(local).job("j") as job:
        job.stream("Lead").update(table(1), key="Id")

    assert (job.receipt.repeated, job.receipt.tenant_version) == (True, 0)


def test_a_job_with_an_id_is_remembered_even_if_it_changed_nothing(open_on, memory):
    """The id was used: that is all that its entry says."""
    tenant = open_on(memory)
    with tenant.job("j"):
        pass
    with tenant.job("j") as again:
        pass
    with tenant.job() as nameless:
        pass

    assert (tenant.version, again.receipt.repeated, nameless.receipt.committed) == (0, True, False)


def test_two_runs_of_a_job_at_once_are_one(open_on, memory):
    """Who commits second gets the receipt of the first."""
    tenant = open_on(memory)
    with tenant.job("j") as slow:
        slow.stream("Lead").update(table(1), key="Id")
        with open_on(memory).job("j") as quick:
            quick.stream("Lead").update(table(1), key="Id")

    assert (tenant.version, slow.receipt.repeated, slow.receipt.tenant_version) == (0, True, 0)
    assert len([name for name in files(memory) if name.endswith(".parquet")]) == 1


def test_jobs_on_different_streams_both_commit(open_on, memory):
    """The later one is committed one version later, with the same files."""
    tenant = open_on(memory)
    with tenant.job() as job:
        job.stream("Lead").update(table(1), key="Id")
        tenant.stream("Contact").update(table(2), key="Id")
        assert None is rows(job, "Contact")

    assert (job.receipt.tenant_version, rows(tenant, "Lead"), rows(tenant, "Contact")) == (1, [1], [2])


def test_jobs_on_the_same_stream_are_carried_out_one_after_the_other(open_on, memory):
    """What the job had not read is planned again on what the other one made."""
    tenant = open_on(memory)
    with tenant.job() as job:
        job.stream("Lead").update(table(1, 2), key="Id")
        tenant.stream("Lead").update(table(3), key="Id")
        assert rows(job, "Lead") == [1, 2]
        job.stream("Contact").update(table(4), key="Id")

    assert (rows(tenant, "Lead"), rows(tenant, "Contact")) == ([1, 2, 3], [4])
    assert (
        job.receipt.tenant_version,
        job.receipt.streams["Lead"].version,
        job.receipt.streams["Lead"].inserted,
    ) == (1, 1, 2)


def test_what_was_read_and_written_must_not_have_changed(open_on, memory):
    """Rows that may be made from old ones are refused, and nothing of the job is there."""
    tenant = open_on(memory, streams={"Lead": table()})
    before = files(memory)

    with pytest.raises(ConflictError, match="read rows"), tenant.job() as job:  # noqa: PT012 - the end of the block raises
        assert rows(job, "Lead") == []
        job.stream("Lead").update(table(1), key="Id")
        job.stream("Other").update(table(1), key="Id")
        tenant.stream("Lead").update(table(2), key="Id")

    assert (rows(tenant, "Lead"), rows(tenant, "Other")) == ([2], None)
    assert len(files(memory)) - len(before) == 3  # the winner's entry, commit and data file


def test_a_reader_sees_one_moment(open_on, memory):
    """A job that only reads sees the tenant as it was when it began, and says what it looked for."""
    tenant = open_on(memory, streams={"Lead": table(1)})

    with tenant.job() as job:
        tenant.stream("Contact").update(table(2), key="Id")
        assert job.streams() == ("Lead",)
        assert None is rows(job, "Contact")
        assert job.stream("Lead").count() == 1

    assert job.streams_used == ["Contact", "Lead"]
    assert not job.receipt.committed


def test_a_job_that_was_declared_dead_cannot_commit(open_on, memory):
    """A revoke that lands first decides, and the error says so."""
    tenant = open_on(memory)
    with pytest.raises(JobRevoked), tenant.job() as job:  # noqa: PT012 - the end of the block raises
        job.stream("Lead").update(table(1), key="Id")
        (lease,) = memory.list_from(STAGING_FOLDER)
        revoke = TenantChange(revoked=(lease.name.removesuffix(".json"),))
        tenant.context.log.add(TenantState(), Entry("r", 1, (revoke,), kind="revoke"))

    assert None is rows(tenant, "Lead")
    assert list(memory.list_from(STAGING_FOLDER)) == []


def test_a_lease_names_what_is_under_way(open_on, memory):
    """It is there from the first staged file on, and gone after the commit."""
    tenant = open_on(memory)
    with tenant.job() as job:
        assert list(memory.list_from(STAGING_FOLDER)) == []
        job.stream("Lead").update(table(1), key="Id")
        (lease,) = memory.list_from(STAGING_FOLDER)
        assert any(lease.name.removesuffix(".json") in name for name in files(memory) if "Lead" in name)

    assert list(memory.list_from(STAGING_FOLDER)) == []


@pytest.mark.parametrize("job_id", ["", " ", 7, "x" * 501])
def test_an_id_must_be_a_text(open_on, memory, job_id):
    """What cannot be an id is refused before anything happens."""
    with pytest.raises(InvalidOption), open_on(memory).job(job_id):
        pytest.fail("the block must not begin")


def test_long_commits_are_kept_beside_the_entry(open_on, memory, monkeypatch):
    """A commit beyond the limit is named by its SHA-256, landed, and then not needed any more."""
    monkeypatch.setattr(roll_forward, "INLINE_BYTES_MAX", 100)
    tenant = open_on(memory)
    with tenant.job() as job:
        job.stream("Wide").update(table(1), key="Id")

    (change,) = tenant.context.log.entry(0).streams
    assert (len(change.sha256), change.content) == (64, "")
    assert rows(open_on(memory), "Wide") == [1]
    assert list(memory.list_from(STAGING_FOLDER)) == []


def two_streams(tenant):
    with tenant.job("j") as job:
        job.stream("Lead").update(table(1), key="Id")
        job.stream("Contact").update(table(2), key="Id")
    return job.receipt


@pytest.fixture
def prepared(open_on, memory):
    """A function that gives a new storage in which the stream Account is."""
    open_on(memory).stream("Account").update(table(0), key="Id")
    return memory.copy


def calls_of_one_job(open_on, prepared):
    storage = FaultyStorage(prepared())
    tenant = open_on(storage)
    before = len(storage.calls)
    two_streams(tenant)
    return range(before, len(storage.calls))


def test_a_job_changes_rows_that_it_changed_before(open_finding, memory):
    """Updates of stored rows, of rows of the same job, and an override come to one net commit."""
    tenant = open_finding(memory, streams={"Lead": table(1, 2, 3)})

    with tenant.job() as job:
        stream = job.stream("Lead")
        assert stream.update(pa.table({"Id": ["2"], "v": [20]}), key="Id").updated == 1
        assert stream.update(pa.table({"Id": ["2"], "v": [200]}), key="Id").updated == 1
        assert rows(job, "Lead") == [1, 3, 200]
        stream.update(table(1, 4), override=True)

    assert (rows(tenant, "Lead"), tenant.stream("Lead").version) == ([1, 4], 1)
    assert sorted(tenant.stream("Lead").read(version=0)["v"]) == [1, 2, 3]
    changed = job.receipt.streams["Lead"].changed_rows("arrow")
    assert sorted(changed["_change_type"].to_pylist()) == ["delete", "delete", "insert"]
    live = [name for name in files(memory) if name.endswith(".parquet")]
    assert len(live) == 2  # of the first version and of the last update: what lay between is gone


def test_a_race_for_one_row_is_carried_out_again(open_finding, memory):
    """The loser's update is planned on the winner's rows: cells of both are there."""
    tenant = open_finding(memory, streams={"Lead": {"Id": ["1"], "a": [1], "b": [1]}})

    with tenant.job() as job:
        job.stream("Lead").update(pa.table({"Id": ["1"], "a": [2]}), key="Id")
        tenant.stream("Lead").update(pa.table({"Id": ["1"], "b": [2]}), key="Id")

    assert tenant.stream("Lead").read(as_="arrow").to_pydict() == {"Id": ["1"], "a": [2], "b": [2]}


@pytest.mark.sampled
@pytest.mark.parametrize("way", [Way.CUT_BEFORE, Way.CUT_AFTER, Way.FAIL_BEFORE, Way.FAIL_AFTER])
def test_every_fault_leaves_all_or_nothing(open_on, prepared, way):
    """Failed or cut at each storage call in turn: both streams or none, and the same job can be run again."""
    outcomes = set()
    for call in sampled(calls_of_one_job(open_on, prepared)):
        inner = prepared()
        receipt = None
        with contextlib.suppress(Crash, FreezeframeError):
            receipt = two_streams(open_on(FaultyStorage(inner, [Fault(call, way)])))
        reader = open_on(inner)
        found = (rows(reader, "Lead"), rows(reader, "Contact"))
        outcomes.add(found[0] is not None)
        assert found in [([1], [2]), (None, None)], call
        assert receipt is None or found == ([1], [2]), call
        assert rows(reader, "Account") == [0]

        again = two_streams(open_on(inner))

        assert again.repeated == (found[0] is not None), call
        assert (rows(reader, "Lead"), rows(reader, "Contact"), reader.version) == ([1], [2], 1)
    assert True in outcomes


def test_four_threads_of_jobs_lose_nothing(open_finding, local):
    """Jobs over shared and own streams: each is there once, and none is seen in part."""
    open_finding(local).stream("All").update(table(), key="Id")
    errors = []

    def work(number):
        try:
            tenant = open_finding(local)
            for turn in range(3):
                with tenant.job(f"{number}-{turn}") as job:
                    job.stream("All").update(table(10 + 3 * number + turn), key="Id")
                    job.stream(f"B{number}").update(table(turn), key="Id")
        except Exception as error:  # noqa: BLE001 - collected for the assertion
            errors.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert errors == []
    tenant = open_finding(local)
    assert tenant.version == 12
    for version in range(13):
        found = [tenant.stream(name).read(tenant_version=version) for name in tenant.streams(version)]
        assert 2 * version == sum(len(rows) for rows in found), version


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
    with open_script_job(tenant.context, "j", token=token) as job:
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


ALONE = {
    "restore": lambda tenant: tenant.restore(0),
    "drop_stream": lambda tenant: tenant.drop_stream("A"),
    "tag": lambda tenant: tenant.tag("t"),
    "untag": lambda tenant: tenant.untag("t"),
    "adopt": lambda tenant: tenant.adopt("B"),
    "set_retention": lambda tenant: tenant.set_retention(1),
    "gc": lambda tenant: tenant.gc(),
    "erase": lambda tenant: tenant.erase("A", ["1"]),
    "release": lambda tenant: tenant.stream("A").release(),
}


@pytest.mark.parametrize("call", ALONE)
def test_a_job_and_a_past_version_refuse_what_commits_by_itself(open_on, call):
    """Each such call of the tenant, by its own job, by a script's job and by the tenant of a version."""
    tenant = open_on(MemoryStorage())
    tenant.stream("A").update(pa.table({"Id": ["1"]}), "Id")

    with pytest.raises(InvalidOption), tenant.job() as job:
        ALONE[call](job)
    with pytest.raises(InvalidOption), open_script_job(tenant.context, "j", token="t") as job:
        ALONE[call](job)
    with pytest.raises(InvalidOption):
        ALONE[call](tenant.at(0))
    assert (0, ("A",), {}) == (tenant.version, tenant.streams(), tenant.tags())


def test_a_past_version_begins_no_job(open_on):
    """It is as it was: neither a job nor a single change of a file or stream is begun there."""
    tenant = open_on(MemoryStorage())
    tenant.files.write("a", b"1")
    past = tenant.at(0)

    with pytest.raises(InvalidOption), past.job():
        pass
    with pytest.raises(InvalidOption):
        past.files.write("a", b"2")
    assert (0, 0, b"1") == (tenant.version, past.version, past.files.read("a"))


def test_a_part_of_a_job_is_committed_with_it_alone(open_on):
    """``with tenant.job()`` inside a job is the same job; it cannot be tried without being committed."""
    tenant = open_on(MemoryStorage())
    with tenant.job("whole") as job:
        with job.job("part") as part:
            part.files.write("a", b"1")
        with pytest.raises(InvalidOption, match="dry run"), job.job(dry_run=True):
            pass
        assert tenant.version == -1

    assert [("whole", ("a",))] == [(item.job_id, item.files_written) for item in tenant.history()]
