"""All operations of a tenant in any order, with crashes between storage calls, against plain dicts."""

import logging
import os

import hypothesis.strategies as st
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from tests.store.reversal_model import reverted

from freezeframe.errors import FreezeframeError
from freezeframe.proof.model import Step, carry_out, changed, content
from freezeframe.storage import MemoryStorage
from freezeframe.storage.memory import Crash, Fault, FaultyStorage, Way

pytestmark = pytest.mark.stateful

STREAMS = st.sampled_from(["Account", "Lead", "Contact@crm"])
PATHS = st.sampled_from(["config.json", "maps/a.csv", "maps/b.csv"])
# In the order of their keys: the same rows in another order are other input, but equal dictionaries.
KEYS = st.sampled_from([f"key-{number}" for number in range(6)])
ROWS = st.dictionaries(KEYS, st.integers(0, 3), max_size=4).map(lambda rows: dict(sorted(rows.items())))
FAULTS = st.none() | st.builds(
    Fault,
    st.integers(0, 90),
    st.sampled_from([Way.CUT_BEFORE, Way.CUT_AFTER, Way.FAIL_BEFORE, Way.FAIL_AFTER]),
)
CHANGES = st.lists(
    st.one_of(
        st.tuples(st.just("upsert"), STREAMS, ROWS),
        st.tuples(st.just("override"), STREAMS, ROWS),
        st.tuples(st.just("write"), PATHS, st.binary(max_size=3)),
        st.tuples(st.just("delete"), PATHS, st.none()),
    ),
    min_size=1,
    max_size=4,
)


class Machine(RuleBasedStateMachine):
    """A tenant and what it should hold: now, and at each version that was ever made."""

    open_tenant = None
    new_storage = MemoryStorage
    steps_done = 0

    @initialize(interval=st.sampled_from([4, 15]))
    def begin(self, interval):
        self.storage = self.new_storage()
        self.now = ({}, {})
        self.past = {}
        self.jobs = {}
        self.released = set()
        self.tags = {}
        self.version = -1
        self.steps = 0
        self.known = {}
        self.interval = interval
        self.observer = self.tenant()

    def tenant(self, fault=None):
        storage = self.storage if fault is None else FaultyStorage(self.storage, [fault])
        return type(self).open_tenant(
            storage, gc_grace_seconds=0, lease_dead_seconds=0, checkpoint_interval=self.interval
        )

    def do(self, fault, *step):
        """Whether a step of the model took effect."""
        step = Step(*step)
        return self.attempt(fault, step.run, step.expected(self.now, self.past))

    def attempt(self, fault, call, new):
        """Whether ``call`` took effect; with a fault it may have or not, but never in part."""
        before = self.version
        try:
            call(self.tenant(fault))
            failed = False
        except (Crash, FreezeframeError):
            if fault is None:
                raise
            failed = True
        after = self.tenant()
        found = content(after, self.known)
        assert found in ((self.now, new) if failed else (new,)), (found, self.now, new)
        done = not failed or (found == new and after.version > before)
        self.now, self.version = found, after.version
        for version in range(before + 1, after.version + 1):
            self.past[version] = found
        return done

    def usable(self, changes):
        return [change for change in changes if change[1] not in self.released]

    @rule(changes=CHANGES, fault=FAULTS)
    def job(self, changes, fault):
        """A job without an id."""
        changes = self.usable(changes)

        def call(tenant):
            with tenant.job() as job:
                carry_out(job, changes)
                assert content(job) == changed(self.now, changes)

        self.attempt(fault, call, changed(self.now, changes))

    @rule(changes=CHANGES, number=st.integers(0, 3), fault=FAULTS)
    def job_with_an_id(self, changes, number, fault):
        """Done once: again it is answered."""
        changes = self.usable(changes)
        job, version = ("job", changes, f"job-{number}"), self.version
        if number not in self.jobs:
            if self.do(fault, *job) and self.version > version:
                self.jobs[number] = changes
        elif self.jobs[number] == changes:
            Step(*job).run(self.tenant())
            assert self.version == self.tenant().version

    @rule(name=STREAMS, mine=ROWS, theirs=ROWS, more=CHANGES)
    def race(self, name, mine, theirs, more):
        """Two jobs at once on one stream: the later one is carried out again on what the first one made."""
        one = self.usable([("upsert", name, mine)])
        other = self.usable([("upsert", name, theirs), *more])

        def call(tenant):
            with tenant.job() as job:
                carry_out(job, one)
                with self.tenant().job() as quicker:
                    carry_out(quicker, other)

        version = self.version
        middle = changed(self.now, other)
        # What changes nothing is not a commit: it is as if it had come first.
        self.attempt(None, call, middle if changed(self.now, one) == self.now else changed(middle, one))
        # After every 32nd version the retention makes one of its own, which may lie between the two.
        history = self.tenant().history()
        made = [entry.version for entry in history if entry.version > version and entry.kind == "commit"]
        if len(made) == 2:
            self.past.update(dict.fromkeys(range(min(made), max(made)), middle))

    @precondition(lambda self: self.past)
    @rule(data=st.data(), fault=FAULTS)
    def restore(self, data, fault):
        """Everything, as of any version that is listed."""
        version = data.draw(st.sampled_from(self.listed()))
        then = self.past[version]
        streams = {name: rows for name, rows in then[0].items() if name not in self.released}
        self.attempt(fault, lambda tenant: tenant.restore(version), (streams, then[1]))

    @precondition(lambda self: self.past)
    @rule(data=st.data(), fault=FAULTS)
    def revert(self, data, fault):
        """Any version that a job made is taken back, and what came after it stays."""
        listed = {entry.version: entry.kind for entry in self.observer.history()}
        made = [
            number
            for number, kind in listed.items()
            if kind in ("commit", "restore") and (not number or number - 1 in listed)
        ]
        if made:
            version = data.draw(st.sampled_from(made))
            sides = [self.state_at(number) for number in (version - 1, version, self.version)]
            streams, files, _ = reverted(*sides, released=self.released)
            rows = {
                name: {key: cells["v"] for key, cells in cells_of.items()}
                for name, cells_of in streams.items()
            }
            self.attempt(fault, lambda tenant: tenant.revert(version), (rows, files))

    def state_at(self, version):
        """A version as the model of reversions has it."""
        if version < 0:
            return {}, {}
        streams, files = self.past[version]
        reader = self.tenant().at(version)
        return {
            name: (
                reader.stream(name).stream_version,
                {"v": "int64"},
                {key: {"v": value} for key, value in rows.items()},
            )
            for name, rows in streams.items()
        }, files

    @precondition(lambda self: self.now[0])
    @rule(data=st.data(), fault=FAULTS)
    def drop(self, data, fault):
        """A stream goes; its past stays."""
        name = data.draw(st.sampled_from(sorted(self.now[0])))
        streams = {one: rows for one, rows in self.now[0].items() if one != name}
        self.attempt(fault, lambda tenant: tenant.drop_stream(name), (streams, self.now[1]))

    @precondition(lambda self: self.now[0])
    @rule(data=st.data())
    def release(self, data):
        """A stream is let go."""
        name = data.draw(st.sampled_from(sorted(self.now[0])))
        streams = {one: rows for one, rows in self.now[0].items() if one != name}
        self.attempt(None, lambda tenant: tenant.stream(name).release(), (streams, self.now[1]))
        self.released.add(name)
        self.rows = {**getattr(self, "rows", {}), name: self.past[self.version - 1][0][name]}

    @precondition(lambda self: self.released)
    @rule(data=st.data())
    def adopt(self, data):
        """A stream is taken back with the rows it had."""
        name = data.draw(st.sampled_from(sorted(self.released)))
        streams = {**self.now[0], name: self.rows[name]}
        self.attempt(None, lambda tenant: tenant.adopt(name), (streams, self.now[1]))
        self.released.discard(name)

    @precondition(lambda self: self.now[0])
    @rule(data=st.data(), fault=FAULTS)
    def erase(self, data, fault):
        """Rows go from everywhere, and history begins anew."""
        name = data.draw(st.sampled_from(sorted(self.now[0])))
        key = data.draw(KEYS)
        before = self.version
        self.do(fault, "erase", key, name)
        if self.version > before:
            self.tags.clear()
        self.require_past(self.listed())

    @precondition(lambda self: self.past)
    @rule(data=st.data(), name=st.sampled_from(["x", "y"]))
    def tag(self, data, name):
        """A version gets a name, or the name is taken off."""
        if name in self.tags:
            self.attempt(None, lambda tenant: tenant.untag(name), self.now)
            del self.tags[name]
        else:
            version = data.draw(st.sampled_from(self.listed()))
            self.attempt(None, lambda tenant: tenant.tag(name, version), self.now)
            self.tags[name] = version

    @precondition(lambda self: self.past)
    @rule(keep=st.integers(1, 4), fault=FAULTS)
    def gc(self, keep, fault):
        """Old versions and left-overs go, nothing else."""
        self.attempt(None, lambda tenant: tenant.set_retention(keep_versions=keep), self.now)
        self.attempt(fault, lambda tenant: tenant.gc(), self.now)
        self.require_past(self.listed())

    def listed(self):
        return [entry.version for entry in self.observer.history()]

    def require_past(self, versions):
        """Read by the one who was there from the beginning; a newcomer reads the present at each step."""
        tenant, known = self.observer, {}
        for version in versions:
            assert self.past[version] == content(tenant.at(version), known), version

    @invariant()
    def it_holds_what_it_should(self):
        """Tags are where they were put; at every third step a version, each time another, is what it was."""
        type(self).steps_done += 1
        self.steps += 1
        assert self.tags == self.observer.tags()
        listed = () if self.steps % 3 else self.listed()
        self.require_past(listed[self.steps % len(listed) :][:1] if listed else ())

    def teardown(self):
        """At the end all is read anew: what it holds now, and of the listed versions the last and a third."""
        if hasattr(self, "past"):
            self.observer = self.tenant()
            assert self.now == content(self.observer)
            listed = self.listed()
            self.require_past(sorted({*listed[:1], *listed[self.steps % 3 :: 3]}))


class OverwritingStorage(MemoryStorage):
    """A storage that breaks its promise: a name that is taken is written over."""

    def put_if_absent(self, name, content):
        self.replace(name, content)


class ForgetfulStorage(MemoryStorage):
    """A storage that breaks its promise: of what is deleted the neighbour goes as well."""

    def delete(self, name, *, durable=True):
        super().delete(name, durable=durable)
        folder = name.rpartition("/")[0]
        for neighbour in list(self.list_from(folder))[:1]:
            super().delete(f"{folder}/{neighbour.name}")


def run(open_finding, examples, steps, new_storage=MemoryStorage, phases=tuple(Phase)):
    """A machine that was run: examples times at most so many steps; how many there were is its steps_done."""
    tools = {"open_tenant": staticmethod(open_finding), "new_storage": new_storage}
    machine = type("TenantMachine", (Machine,), tools)
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            database=None,
            deadline=None,
            phases=phases,
            report_multiple_bugs=False,
            suppress_health_check=list(HealthCheck),
        ),
    )
    return machine.steps_done


def run_until(wanted, open_finding):
    """Machines that were run for so many steps; how many an example has is not known before."""
    done = 0
    while done < wanted:
        done += run(open_finding, examples=min(2_000, (wanted - done) // 25 + 1), steps=25)


@pytest.fixture(autouse=True)
def quiet(caplog):
    """What is told of every planned fault is not written out; small reads are not shared out."""
    caplog.set_level(logging.CRITICAL, "freezeframe")
    threads = pa.cpu_count()
    pa.set_cpu_count(1)  # for a few rows, handing work to threads takes longer than the work
    yield
    pa.set_cpu_count(threads)


def test_any_order_of_operations_with_crashes(open_finding):
    """Two hundred steps: the tenant holds what plain dicts say, now and at each listed version."""
    run_until(200, open_finding)


@pytest.mark.parametrize("broken", [OverwritingStorage, ForgetfulStorage])
def test_a_broken_storage_is_caught(open_finding, broken):
    """The machine finds what it is there to find: commits that are lost, files that are gone."""
    with pytest.raises((AssertionError, FreezeframeError)):
        run(open_finding, examples=100, steps=25, new_storage=broken, phases=[Phase.generate])


@pytest.mark.nightly
@pytest.mark.timeout(72_000)
def test_any_order_of_operations_with_crashes_for_long(open_finding):
    """The same for a million steps; FREEZEFRAME_MACHINE_STEPS is another number of them."""
    wanted = int(os.environ.get("FREEZEFRAME_MACHINE_STEPS", "1000000"))
    run_until(wanted, open_finding)
