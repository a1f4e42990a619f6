"""A power loss at any call: nothing acknowledged is missing, nothing unacknowledged is half there."""

import logging
import tempfile
from pathlib import Path
from random import Random

import pytest
from tests.power_loss.disk import Disk
from tests.power_loss.recording import STRACE, Call, parsed
from tests.power_loss.scenarios import SCENARIOS
from tests.power_loss.states import record_scenarios, try_states

pytestmark = pytest.mark.stateful
records = pytest.mark.skipif(STRACE is None, reason="strace is not here")


@pytest.fixture(scope="module")
def recorded():
    """A folder in memory, where there is one, and the calls of all scenarios."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        yield Path(folder), record_scenarios(Path(folder))


@pytest.fixture(autouse=True)
def quiet(caplog):
    """What is told of each state is not written out."""
    caplog.set_level(logging.CRITICAL, "freezeframe")


@records
@pytest.mark.timeout(7200)
@pytest.mark.parametrize(
    "states", [pytest.param(40, id="some"), pytest.param(None, id="all", marks=pytest.mark.nightly)]
)
@pytest.mark.parametrize("name", SCENARIOS)
def test_a_power_loss_leaves_what_was_acknowledged(recorded, name, states):
    """Jobs, the registry, uploads and the control database, after any call that changes the disk."""
    counts, wrong = try_states(name, *recorded, seed=0 if states else Random().random(), states_max=states)
    assert wrong == []
    assert counts.total() > 20


@records
@pytest.mark.parametrize("name", SCENARIOS)
def test_a_disk_that_ignores_fsync_is_found(recorded, name):
    """The same calls, of which no fsync is obeyed: something is missing, or half there."""
    _, wrong = try_states(name, *recorded, seed=1, states_max=400, obeys_fsync=False)
    assert len(wrong) >= 1


def calls_of(*lines):
    return list(parsed(f"1 {line}" for line in lines))


def found_after(calls, mode="lost", seed=0):
    disk = Disk("/d")
    for call in calls:
        disk.apply(call)
    return disk.after_power_loss(Random(seed), mode)


MAKE = 'openat(AT_FDCWD</>, "\\x61", O_WRONLY|O_CREAT, 0600) = 3</d/a>'
WRITE = 'write(3</d/a>, "\\x78\\x79", 2) = 2'
SYNC = "fsync(3</d/a>) = 0"
TOP = ('openat(AT_FDCWD</>, "\\x61", O_RDONLY) = 4</d>', "fsync(4</d>) = 0")
RENAME = 'renameat(4</d>, "\\x61", 4</d>, "\\x62") = 0'


def test_bytes_and_names_are_safe_after_the_fsync_of_each():
    """A file's own fsync is not its folder's, and the other way round."""
    assert {"": None} == found_after(calls_of(MAKE, WRITE, SYNC))
    assert {"": None, "/a": b""} == found_after(calls_of(MAKE, WRITE, *TOP))
    assert {"": None, "/a": b"xy"} == found_after(calls_of(MAKE, WRITE, SYNC, *TOP))
    assert {"": None, "/a": b"xy"} == found_after(calls_of(MAKE, WRITE), "kept")


def test_a_rename_is_there_whole_or_not():
    """And without a trace of what was not synced; each of both is found."""
    calls = calls_of(MAKE, WRITE, SYNC, *TOP, RENAME)
    states = {tuple(sorted(found_after(calls, "any", seed))) for seed in range(20)}
    assert {("", "/a"), ("", "/b")} == states


def test_what_was_written_since_may_be_torn_or_zeros():
    """By sectors of 512 bytes, and never anything else than zeros or what was written."""
    data = bytes([7]) * 1500
    write = Call("pwrite64", (3,), ("/d/a",), frozenset(), data, 100, len(data))
    calls = [*calls_of(MAKE), *calls_of(*TOP), write]
    found = {found_after(calls, "any", seed)["/a"] for seed in range(200)}
    whole = bytes(100) + data
    parts = [slice(100, 512), slice(512, 1024), slice(1024, 1536), slice(1536, 1600)]
    for item in found - {b""}:
        assert len(whole) == len(item)
        assert all(item[part] in (whole[part], bytes(part.stop - part.start)) for part in parts)
    assert {b"", whole, bytes(1600)} < found
