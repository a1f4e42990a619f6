"""All operations of a tenant in any order, with crashes between storage calls, against plain dicts."""

import copy

import hypothesis.strategies as st
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from freezeframe.errors import FreezeframeError, IdempotencyConflict
from freezeframe.storage import MemoryStorage
from freezeframe.storage.faulty import Crash, Fault, FaultyStorage, Way

STREAMS = st.sampled_from(["Account", "Lead", "Contact@crm"])
PATHS = st.sampled_from(["config.json", "maps/a.csv", "maps/b.csv"])
ROWS = st.dictionaries(st.integers(0, 5), st.integers(0, 3), max_size=4)
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


def frame(rows):
    ids = pa.array([f"key-{one}" for one in rows], pa.string())
    return pa.table({"Id": ids, "v": pa.array(list(rows.values()), pa.int64())})


def content(reader):
    streams = {}
    for name in reader.streams():
        rows = reader.stream(name).read(as_="arrow").to_pydict()
        streams[name] = {int(key.removeprefix("key-")): v for key, v in zip(*rows.values(), strict=True)}
    return streams, {one.path: reader.files.read(one.path) for one in reader.files.list(recursive=True)}


def changed(state, changes):
    """What the changes make of a state of the model."""
    streams, files = copy.deepcopy(state)
    for kind, name, value in changes:
        if kind == "override":
            streams[name] = dict(value)
        elif kind == "upsert" and (value or name not in streams):
            streams.setdefault(name, {}).update(value)
        elif kind == "write":
            files[name] = value
        elif kind == "delete":
            files.pop(name, None)
    return streams, files


def carry_out(job, changes):
    for kind, name, value in changes:
        if kind == "override":
            job.stream(name).update(frame(value), override=True, key="Id")
        elif kind == "upsert":
            job.stream(name).update(frame(value), key="Id")
        elif kind == "write":
            job.files.write(name, value)
        elif job.files.exists(name):
            job.files.delete(name)


class Machine(RuleBasedStateMachine):
    """A tenant and what it should hold: now, and at each version that was ever made."""

    open_tenant = None

    @initialize()
    def begin(self):
        self.storage = MemoryStorage()
        self.now = ({}, {})
        self.past = {}
        self.jobs = {}
        self.released = set()
        self.tags = {}
        self.dirty = False

    def tenant(self, fault=None):
        storage = self.storage if fault is None else FaultyStorage(self.storage, [fault])
        return type(self).open_tenant(
            storage, gc_grace_seconds=0, lease_dead_seconds=0, checkpoint_interval=4
        )

    def attempt(self, fault, call, new):
        """Whether ``call`` took effect; with a fault it may have or not, but never in part."""
        before = self.tenant().version
        try:
            call(self.tenant(fault))
            failed = False
        except (Crash, FreezeframeError):
            if fault is None:
                raise
            failed = True
        after = self.tenant()
        found = content(after)
        assert found in ((self.now, new) if failed else (new,)), (found, self.now, new)
        done = not failed or (found == new and after.version > before)
        self.now = found
        self.dirty |= failed
        for version in range(before + 1, after.version + 1):
            self.past[version] = found
        return done

    def usable(self, changes):
        return [one for one in changes if one[1] not in self.released]

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
        """Done once: again it is answered, and with other input refused."""
        changes = self.usable(changes)
        known = self.jobs.get(number)

        def call(tenant):
            with tenant.job(f"job-{number}") as job:
                carry_out(job, changes)

        if known is None:
            version = self.tenant().version
            if self.attempt(fault, call, changed(self.now, changes)) and self.tenant().version > version:
                self.jobs[number] = changes
        elif known == changes:
            before = self.tenant().version
            call(self.tenant())
            assert before == self.tenant().version
        elif all(kind == "write" for kind, _, _ in changes):
            with pytest.raises(IdempotencyConflict):
                call(self.tenant())

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

        version = self.tenant().version
        middle = changed(self.now, other)
        self.attempt(None, call, changed(middle, one))
        if self.tenant().version == version + 2:
            self.past[version + 1] = middle

    @precondition(lambda self: self.past)
    @rule(data=st.data(), fault=FAULTS)
    def restore(self, data, fault):
        """Everything, as of any version that is listed."""
        version = data.draw(st.sampled_from(self.listed()))
        then = self.past[version]
        streams = {name: rows for name, rows in then[0].items() if name not in self.released}
        self.attempt(fault, lambda tenant: tenant.restore(version), (streams, then[1]))

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
        self.rows = {**getattr(self, "rows", {}), name: self.past[self.tenant().version - 1][0][name]}

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
        key = data.draw(st.integers(0, 5))
        rows = {one: v for one, v in self.now[0][name].items() if one != key}
        new = ({**self.now[0], name: rows}, self.now[1])
        before = self.tenant().version
        self.attempt(fault, lambda tenant: tenant.erase(name, [f"key-{key}"]), new)
        if self.tenant().version > before:
            self.tags.clear()

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

    def listed(self):
        return [entry.version for entry in self.tenant().history()]

    @invariant()
    def it_holds_what_it_should(self):
        """Now, and at each version that is listed; tags are where they were put."""
        tenant = self.tenant()
        assert self.now == content(tenant)
        assert self.tags == tenant.tags()
        for version in self.listed():
            assert self.past[version] == content(tenant.at(version)), version


def run(open_finding, examples, steps):
    machine = type("TenantMachine", (Machine,), {"open_tenant": staticmethod(open_finding)})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


@pytest.mark.timeout(300)
def test_any_order_of_operations_with_crashes(open_finding):
    """A few hundred steps: the tenant holds what plain dicts say, now and at each listed version."""
    run(open_finding, examples=12, steps=12)


@pytest.mark.nightly
@pytest.mark.timeout(36_000)
def test_any_order_of_operations_with_crashes_for_long(open_finding):
    """The same for tens of thousands of steps."""
    run(open_finding, examples=1_000, steps=50)
