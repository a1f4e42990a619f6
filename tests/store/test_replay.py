"""What a replay of jobs in a copy of the tenant changes of what stands today, beside a model of cells."""

import json
import random
from contextlib import suppress
from dataclasses import replace

import pyarrow as pa
import pytest
from tests.examples import by_turns, examples, sampled
from tests.given import files_of, rows_of
from tests.store.reversal_model import held, random_change, reverted, state_of

from freezeframe.errors import ConflictError, FreezeframeError, JobRevoked
from freezeframe.log import DeltaLog
from freezeframe.log.format.actions import Metadata, Protocol
from freezeframe.log.format.schema import arrow_to_delta
from freezeframe.log.table.transaction import Transaction as DeltaTransaction
from freezeframe.settings import Settings
from freezeframe.storage import MemoryStorage
from freezeframe.storage.memory import Crash, Fault, FaultyStorage, Way
from freezeframe.store.diff.tenant_diff import differing
from freezeframe.store.job import discard_job, publish_job
from freezeframe.store.maintenance import revert as reverting
from freezeframe.store.model.update_options import SYSTEM
from freezeframe.store.replay import Made, stage_replay
from freezeframe.store.tenant import open_job
from freezeframe.store.tenant_log.state import TenantState
from freezeframe.store.tenants import ClonePart, clone_into


class History:
    """A tenant, the bad jobs that it had, and the copy in which mended ones run."""

    def __init__(self, open_finding, storage=None):
        self.storage = MemoryStorage() if storage is None else storage
        self.open = open_finding
        self.tenant = open_finding(self.storage)

    def jobs(self, *bad):
        """Run the bad jobs; from then on they can be replayed in the copy."""
        before = self.tenant.scope.state()
        for number, make in enumerate(bad):
            with self.tenant.job(f"bad-{number}") as job:
                make(job)
        self.note(before)

    def changes(self, count, dice):
        """Make so many random changes, which are the bad ones."""
        before = self.tenant.scope.state()
        for _ in range(count):
            random_change(dice, self.tenant)
        self.note(before)

    def note(self, before):
        """Note what was made since a state."""
        scope = self.tenant.scope
        after = scope.state()
        entries = [scope.log.entry(version) for version in range(before.version + 1, after.version + 1)]
        streams = {str(change.stream) for entry in entries for change in entry.streams}
        files = {change.path for entry in entries for change in entry.files}
        before = before if before.version >= 0 else TenantState()
        self.made = Made(before, after, streams, files)

    def replay(self, *mended):
        """Run mended jobs in the copy."""
        storage = MemoryStorage()
        if self.made.before.version >= 0:
            clone_into(self.storage, storage, Settings(keep_versions=0), part=ClonePart(self.made.before))
        self.copy = self.open(storage)
        for make in mended:
            with self.copy.job() as job:
                make(job)

    def hold(self, storage=None, job_id="replay"):
        """Stage the replay in a held job; what it would do."""
        tenant = self.open(self.storage if storage is None else storage)
        with open_job(replace(tenant.context, review=lambda effects, _: effects), job_id) as job:
            return stage_replay(job, self.made, self.copy)

    def publish(self):
        """Publish the held job; the tenant then."""
        publish_job(self.open(self.storage).context, "replay")
        self.tenant = self.open(self.storage)
        assert self.tenant.verify().is_sound
        return self.tenant


def update(name="Account", *, key="Id", how=None, **columns):
    """A job that updates one stream."""
    return lambda job: job.stream(name).update(pa.table(columns), key=key, **(how or {}))


def write(path, text, **how):
    """A job that writes one file."""
    return lambda job: job.files.write(path, text, **how)


@pytest.fixture
def past(open_finding):
    """A tenant with rows and files, and its history."""
    found = History(open_finding)
    with found.tenant.job("first") as job:
        job.stream("Account").update(pa.table({"Id": [1, 2, 3], "a": ["x", "y", "z"]}), key="Id")
        job.files.write("map.csv", b"old")
        job.files.write("both.csv", b"old")
    return found


def test_cells_become_what_the_replay_made_and_later_ones_stay(past):
    """Rows and files that only the jobs, only the replay, or both made; the replay is one version."""
    past.jobs(
        update(Id=[1, 2, 4], a=["BAD", "BAD", "BAD"], b=[1, 2, 4]),
        update(Id=[3], a=["BAD"]),
        write("map.csv", b"bad"),
        write("both.csv", b"bad"),
        write("only.csv", b"bad"),
    )
    later = past.tenant
    with later.job("later") as job:
        job.stream("Account").update(pa.table({"Id": [2, 9], "a": ["later", "new"]}))
        job.files.write("both.csv", b"later")
    version = later.version
    past.replay(
        update(Id=[1, 2, 5], a=["good", "good", "good"], b=[1, 20, 5]),
        write("map.csv", b"good"),
        write("both.csv", b"good"),
        write("new.csv", b"good"),
    )

    done = past.hold()

    assert version == past.open(past.storage).version
    effect = done.streams["Account"]
    assert (1, 3, 1) == (effect.counts.inserted, effect.counts.updated, effect.counts.deleted)
    assert [({"Id": 2}, {"a": ("good", "BAD", "later")})] == [(row.key, row.cells) for row in effect.kept]
    tenant = past.publish()
    assert {
        1: {"a": "good", "b": 1},
        2: {"a": "later", "b": 20},
        3: {"a": "z"},
        5: {"a": "good", "b": 5},
        9: {"a": "new"},
    } == held(tenant.stream("Account"))
    found = {file.path: tenant.files.read(file.path) for file in tenant.files.list()}
    assert {"map.csv": b"good", "both.csv": b"later", "new.csv": b"good"} == found
    assert (("both.csv",), version + 1) == (done.files_kept, tenant.version)


WHOLE = {"override": True}
# How a stream is made, the bad job and the mended one; why it stays if somebody changed it since.
STREAMS = {
    "without a key": (
        update(key=None, how=WHOLE, Id=[1], a=["x"]),
        update(key=None, how=WHOLE, Id=[1, 1], a=["x", "BAD"]),
        update(key=None, how=WHOLE, Id=[1, 1], a=["x", "good"]),
        "no key",
    ),
    "with a history": (
        update(Id=[1], a=["x"], how={"history": "scd2"}),
        update(Id=[1], a=["BAD"]),
        update(Id=[1], a=["good"]),
        "keeps its rows' past",
    ),
    "with another key": (
        update(Id=[1], a=["x"]),
        update(Id=[1], a=["BAD"]),
        update(key="a", how=WHOLE, Id=[1, 1], a=["x", "y"]),
        "another key",
    ),
    "with another type": (
        update(Id=[1], a=["1"]),
        update(Id=[1], a=["2"]),
        update(how=WHOLE, Id=[1], a=[3]),
        None,
    ),
    "with a column less": (
        update(Id=[1], a=["1"]),
        update(Id=[1], a=["1"], b=["BAD"]),
        update(Id=[1], a=["3"]),
        None,
    ),
    "with odd names": (
        update(**{"Id": [1], "a.b": ["1"], 'q"`': ["1"]}),
        update(**{"Id": [1], "a.b": ["BAD"], 'q"`': ["BAD"]}),
        update(**{"Id": [1], "a.b": ["3"], 'q"`': ["4"], "New Column": ["5"]}),
        None,
    ),
    "new by the jobs": (update("Other", Id=[1]), update(Id=[1], a=["BAD"]), update("Other", Id=[2]), None),
    "new by the replay": (update("Other", Id=[1]), update("Other", Id=[2]), update(Id=[1], a=["3"]), None),
}


def everything(tenant):
    """The schema, the key and the rows of each stream."""
    return {
        name: (
            tenant.stream(name).schema.remove_metadata(),
            tenant.stream(name).key,
            sorted(rows_of(tenant, name, history=tenant.stream(name).has_history), key=str),
        )
        for name in tenant.streams()
    }


@pytest.mark.parametrize("kind", STREAMS)
def test_a_stream_that_nobody_changed_since_becomes_what_it_is_in_the_copy(open_finding, kind):
    """Columns, types, key, rows and their past; a second replay then has nothing to change."""
    first, bad, mended, _ = STREAMS[kind]
    past = History(open_finding)
    first(past.tenant)
    past.jobs(bad)
    past.replay(mended)

    past.hold()

    expected = everything(past.copy)
    assert expected == everything(past.publish())
    for made in past.made.streams:
        assert made in expected or made not in past.tenant.streams()
    past.tenant.revert(past.tenant.version)
    assert everything(past.tenant.at(past.made.after.version)) == everything(past.tenant)


@pytest.mark.parametrize("kind", [kind for kind, case in STREAMS.items() if case[3]])
def test_a_stream_whose_rows_cannot_be_matched_stays_if_it_was_changed_since(open_finding, kind):
    """It is named with the reason, and all of it stays."""
    first, bad, mended, reason = STREAMS[kind]
    past = History(open_finding)
    first(past.tenant)
    past.jobs(bad)
    update(key=None if kind == "without a key" else "Id", how=WHOLE if kind == "without a key" else {},
           Id=[7], a=["later"])(past.tenant)  # fmt: skip
    before = everything(past.tenant)
    past.replay(mended)

    effect = past.hold().streams["Account"]

    assert ("kept", True) == (effect.fate, reason in effect.reason)
    assert before == everything(past.publish())


@pytest.mark.parametrize("key", [-0.0, float("nan"), None])
def test_a_key_of_any_value_is_found(open_finding, key):
    """Zero under either sign, NaN and null."""
    past, match = History(open_finding), {"null_keys": "match"}
    keys = pa.array([key, 5.0], pa.float64())
    past.tenant.stream("Account").update(pa.table({"Id": keys, "a": ["x", "y"]}), key="Id", **match)
    past.jobs(update(Id=keys, a=["BAD", "BAD"], how=match))
    update(Id=[5.0], a=["later"])(past.tenant)
    past.replay(update(Id=pa.array([key and abs(key), 5.0], pa.float64()), a=["good", "good"], how=match))

    past.hold()

    assert ["good", "later"] == sorted(row["a"] for row in rows_of(past.publish(), "Account"))


def test_what_targets_accepted_stays(past):
    """They still have it, whatever the replay makes: the rows that differ are pending for them."""

    def deliver(value):
        def make(job):
            job.stream("Account").update(pa.table({"Id": [1], "a": [value]}))
            rows = job.delivery("shop").pending("Account")
            job.delivery("shop").accept("Account", rows.assign(_target_id=value))

        return make

    past.jobs(deliver("BAD"))
    accepted = rows_of(past.tenant, "Account.delivery.shop")
    past.replay(deliver("good"))

    reasons = {name: effect.reason for name, effect in past.hold().streams.items()}

    name = "Account.delivery.shop"
    assert {"Account": "", name: "it is what a target accepted, which still has it"} == reasons
    tenant = past.publish()
    assert accepted == rows_of(tenant, name)
    assert {1: {"a": "good"}, 2: {"a": "y"}, 3: {"a": "z"}} == held(tenant.stream("Account"))
    assert ["good"] == tenant.delivery("shop").pending("Account")["a"].tolist()


def test_dropped_and_released_streams_stay(past):
    """So does a stream that somebody made under the name of one that the replay makes."""
    tenant = past.tenant
    for name in ("Dropped", "Released"):
        update(name, Id=[1], a=["x"])(tenant)
    past.jobs(*(update(name, Id=[1], a=["BAD"]) for name in ("Dropped", "Released")))
    tenant.drop_stream("Dropped")
    tenant.stream("Released").release()
    update("New", Id=[1], a=["later"])(tenant)
    past.replay(*(update(name, Id=[1], a=["good"]) for name in ("Dropped", "Released", "New")))

    reasons = {name: effect.reason for name, effect in past.hold().streams.items()}

    assert {
        "Dropped": "it was dropped since",
        "Released": "it was released, so other programs may write to it",
        "New": "there is a stream of this name since",
    } == reasons


def test_a_stream_whose_name_differs_by_case_is_not_made_again(past):
    """It would be another one for readers, and the same folder on some disks; the one that is there stays."""
    past.jobs(update("Lead", Id=[1], a=["BAD"]))
    past.replay(update("lead", Id=[1], a=["good"]))

    reasons = {name: effect.reason for name, effect in past.hold().streams.items()}

    assert dict.fromkeys(("Lead", "lead"), "its name differs by case alone from another stream's") == reasons
    assert {1: {"a": "BAD"}} == held(past.publish().stream("Lead"))


@pytest.mark.parametrize("key", ["Id", None])
def test_an_adopted_table_keeps_the_version_since_which_commits_have_times(open_finding, monkeypatch, key):
    """It is changed whole, or not at all where the replay makes the same; all its versions have a time."""
    past, folder = History(open_finding), "Old.snapshot"
    schema = pa.schema([("Id", pa.string()), ("a", pa.string())])
    metadata = Metadata("id", json.dumps(arrow_to_delta(schema)))
    DeltaTransaction(DeltaLog(past.storage, folder)).commit([Protocol(1, 2), metadata], "CREATE TABLE")
    past.tenant.adopt("Old", key=key)
    whole = {"override": True}
    jobs = [update("Old", key=key, how=whole, Id=["1"], a=["BAD"])]
    past.jobs(*jobs)
    past.replay(*jobs)
    monkeypatch.setattr(reverting, "ROWS_MAX", 0)
    assert {} == past.hold(job_id="same").streams

    past.replay(update("Old", key=key, how=whole, Id=["1"], a=[3]))
    past.hold()

    assert [3] == [row["a"] for row in rows_of(past.publish(), "Old")]
    log = DeltaLog(past.storage, folder)
    last = log.update().version
    assert list(range(last + 1)) == [time.version for time in log.commit_times(0, last)]


def test_a_replay_that_makes_the_same_changes_nothing(past):
    """Nothing of it is written, whatever came later."""
    jobs = [update(Id=[1, 4], a=["a", "b"]), write("map.csv", b"new")]
    past.jobs(*jobs)
    update(Id=[1, 4], a=["later", "b"])(past.tenant)
    past.replay(*jobs)
    before = everything(past.tenant)

    done = past.hold()

    assert ({}, ()) == (done.streams, done.files_kept)
    assert before == everything(past.publish())


def test_what_a_replay_rests_on_may_not_change_before_it_is_published(past):
    """Also a cell that stays; another stream may. The tenant is then as the others left it."""
    past.jobs(update(Id=[1, 2], a=["BAD", "BAD"]))
    update(Id=[2], a=["later"])(past.tenant)
    past.replay(update(Id=[1, 2], a=["good", "good"]))
    past.hold()
    update("Other", Id=[1])(past.tenant)
    update(Id=[2], a=["latest"])(past.tenant)
    before = everything(past.tenant)

    with pytest.raises(ConflictError, match="stream 'Account'"):
        publish_job(past.tenant.context, "replay")

    assert before == everything(past.tenant)
    assert discard_job(past.tenant.context, "replay", SYSTEM)
    past.hold()
    assert ["good", "latest", "z"] == [row["a"] for row in rows_of(past.publish(), "Account")]


def test_a_discarded_replay_leaves_nothing(past):
    """As an erasure, which also ends one that is held: it may bring the erased rows back."""
    past.jobs(update(Id=[1], a=["BAD"]), write("map.csv", b"bad"))
    past.replay(update(Id=[1], a=["good"]), write("map.csv", b"good"))
    before = {name for name in files_of(past.storage) if "/log/" not in name}
    past.hold()
    discard_job(past.tenant.context, "replay", SYSTEM)
    assert before == {name for name in files_of(past.storage) if "/log/" not in name}

    past.hold()
    past.tenant.erase("Account", [1])

    with pytest.raises(JobRevoked):
        publish_job(past.open(past.storage).context, "replay")
    assert [2, 3] == [row["Id"] for row in rows_of(past.open(past.storage), "Account")]


def test_many_changed_rows_replace_a_stream_that_nobody_changed_since(past, monkeypatch):
    """They are not compared in memory; of one that was changed since they are too many."""
    past.jobs(update(Id=[1, 2, 3], a=["BAD"] * 3))
    past.replay(update(Id=[1, 2, 3], a=["good"] * 3))
    monkeypatch.setattr(reverting, "ROWS_MAX", 2)

    effect = past.hold().streams["Account"]

    assert None is effect.cells
    assert ["good"] * 3 == [row["a"] for row in rows_of(past.publish(), "Account")]


@pytest.mark.sampled
def test_a_kill_at_any_storage_call_leaves_the_tenant_as_it_was(past):
    """While it is staged, held and published: all of it or nothing is there, and the next one succeeds."""
    past.jobs(update(Id=[1, 4], a=["BAD", "BAD"]), write("map.csv", b"bad"), update("Gone", Id=[1], a=["x"]))
    past.replay(update(Id=[1], a=["good"]), write("map.csv", b"good"), update("New", Id=[1], a=["x"]))
    origin, before = past.storage, state_of(past.tenant)

    def attempt(fault=None):
        faulty = FaultyStorage(past.storage, [fault] if fault else [])
        with suppress(Crash, FreezeframeError):
            past.hold(faulty)
            publish_job(past.open(faulty).context, "replay")
        return len(faulty.calls)

    past.storage = origin.copy()
    calls = attempt()
    done = state_of(past.open(past.storage))
    assert before != done
    for number in sampled(range(calls), every=5):
        for way in by_turns((Way.CUT_BEFORE, Way.CUT_AFTER, Way.FAIL_BEFORE, Way.FAIL_AFTER), number):
            past.storage = origin.copy()
            attempt(Fault(number, way))
            tenant = past.open(past.storage)
            assert state_of(tenant) in (before, done), (number, way)
            assert tenant.verify().is_sound
            if state_of(tenant) == before:
                past.hold(job_id="again")
                publish_job(tenant.context, "again")
            assert state_of(past.open(past.storage)) == done, (number, way)


def replay_beside_model(open_finding, seed):
    """A random history, bad jobs, later work, and other jobs in the copy; how many rows stay in part."""
    dice, past = random.Random(seed), History(open_finding)
    past.tenant = open_finding(past.storage, keep_versions=10_000)
    for _ in range(dice.randint(0, 8)):
        random_change(dice, past.tenant)
    past.changes(dice.randint(1, 4), dice)
    past.replay()
    for _ in range(dice.randint(0, 4)):
        random_change(dice, past.copy)
    for _ in range(dice.randint(0, 5)):
        random_change(dice, past.tenant)
    made, ended, now = (
        state_of(past.tenant.at(past.made.after.version)),
        state_of(past.copy),
        state_of(past.tenant),
    )
    begun = past.copy.scope.state(0) if past.made.before.version >= 0 else TenantState()
    names = {*past.made.streams, *differing(begun.streams, past.copy.scope.state().streams)}
    paths = {*past.made.files, *differing(begun.files, past.copy.scope.state().files)}
    before = (
        {name: ("of the copy", *item[1:]) for name, item in ended[0].items() if name in names},
        {path: content for path, content in ended[1].items() if path in paths},
    )
    after = tuple({name: item for name, item in side.items() if name in names | paths} for side in made)
    streams, files, told = reverted(before, after, now)

    done = past.hold()
    tenant = past.publish()

    found = state_of(tenant)
    assert (streams, files) == ({name: item[2] for name, item in found[0].items()}, found[1]), seed
    for name, (cells, kept) in told.items():
        effect = done.streams.get(name)
        seen = (effect.cells, {row.key["Id"]: len(row.cells) for row in effect.kept}) if effect else (0, {})
        assert (cells, kept) == seen, (seed, name)
    tenant.revert(tenant.version)
    assert [now[0][name][2] for name in sorted(now[0])] == [
        item[2] for _, item in sorted(state_of(tenant)[0].items())
    ]
    return sum(len(kept) for _, kept in told.values())


@pytest.mark.stateful
@pytest.mark.sampled
def test_random_replays_equal_a_model(open_finding):
    """Upserts, extracts, overrides, drops, restorations and files, by the jobs, their replay and later."""
    seeds = range(examples(160, 8))
    assert sum(replay_beside_model(open_finding, seed) for seed in seeds) > len(seeds) // 4
