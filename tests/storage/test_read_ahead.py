"""Files that are fetched side by side before they are asked for."""

import errno
import json
import os
import shutil
import subprocess
import sys
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from io import BytesIO
from pathlib import Path

import pandas as pd
import pytest
from tests import given
from tests.latency import LatencyStorage, Request, in_sequence

from freezeframe.errors import CorruptData, InvalidOption, StorageUnavailable, TryAgain
from freezeframe.log.scan.file_statistics import file_statistics
from freezeframe.storage import LocalStorage, MemoryStorage, read_ahead
from freezeframe.storage.memory import Fault, FaultyStorage, Way
from freezeframe.storage.read_ahead import (
    ReadAhead,
    map_concurrently,
    passing_failure,
    processors,
    reads_of,
    run_concurrently,
)


def reads(storage):
    return [call.name for call in storage.calls if call.verb == "read"]


def filled(storage):
    for name in "abc":
        storage.put_if_absent(name, f"content of {name}".encode())
    return FaultyStorage(storage)


def test_a_fetched_file_is_read_once():
    """The first read of all of it gives it away; a part of it does not."""
    storage = filled(MemoryStorage())
    ahead = ReadAhead(storage)
    ahead.fetch([("a", 12), ("b", 12)])
    assert sorted(reads(storage)) == ["a", "b"]
    assert ahead.read("a", 2, 3) == b"nte"
    assert ahead.read("a", 0, 100) == b"content of a"
    assert ahead.read("b") == b"content of b"
    assert sorted(reads(storage)) == ["a", "b"]
    assert ahead.read("b") == b"content of b"
    assert sorted(reads(storage)) == ["a", "b", "b"]


def test_all_are_fetched_at_once():
    """Each waits for the others: one after the other they would wait for ever."""
    barrier = threading.Barrier(3)

    class Together(MemoryStorage):
        def read(self, name, offset=0, length=None):
            barrier.wait(20)
            return super().read(name, offset, length)

    storage = Together()
    filled(storage)
    ReadAhead(storage).fetch([(name, 12) for name in "abc"])


def test_nothing_is_fetched_from_a_local_disk(tmp_path):
    """There a read is quicker than a thread."""

    class Unread(LocalStorage):
        def read(self, name, *_):
            raise AssertionError(name)

    storage = Unread(tmp_path)
    filled(storage)
    ReadAhead(storage).fetch([("a", 12), ("b", 12)])


def test_what_cannot_be_fetched_fails_where_it_is_read():
    """A missing file and a storage that fails are told to the one who needs the file."""

    class Away(MemoryStorage):
        def read(self, name, offset=0, length=None):
            if name == "b":
                raise StorageUnavailable("It is away.", remedy="Wait.")
            return super().read(name, offset, length)

    ahead = ReadAhead(filled(Away()))
    ahead.fetch([("a", 12), ("b", 12), ("z", 12)])
    assert ahead.read("a") == b"content of a"
    with pytest.raises(StorageUnavailable):
        ahead.read("b")
    with pytest.raises(FileNotFoundError):
        ahead.read("z")


def test_what_does_not_fit_is_left(monkeypatch):
    """Memory is bounded by what is held and not yet read."""
    monkeypatch.setattr(read_ahead, "HELD_BYTES_MAX", 30)
    storage = filled(MemoryStorage())
    ahead = ReadAhead(storage)
    ahead.fetch([("a", 12), ("b", 12), ("c", 12)])
    assert sorted(reads(storage)) == ["a", "b"]
    ahead.forget()
    ahead.fetch([("b", 12), ("c", 12)])
    assert sorted(reads(storage)) == ["a", "b", "b", "c"]


# A read that fails once is told as such, wherever it is: never as damage, never raw.


pytestmark = pytest.mark.long

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """The library that makes one read of a process fail."""
    compiler = shutil.which("cc")
    if compiler is None or not sys.platform.startswith("linux"):
        pytest.skip("failing the system's own reads needs Linux and a C compiler")
    built = tmp_path_factory.mktemp("library") / "failing_reads.so"
    command = [compiler, "-shared", "-fPIC", "-o", str(built), str(HERE / "failing_reads.c"), "-ldl"]
    subprocess.run(command, check=True)
    return built


def _failed(library, folder, *names):
    done = subprocess.run(
        [sys.executable, str(HERE / "failing_reads.py"), str(folder), *names],
        env={**os.environ, "LD_PRELOAD": str(library)},
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


def _require_typed(told):
    assert {name: [] for name in told} == {name: one["wrong"] for name, one in told.items()}
    assert all(item["reads"] > 1 for item in told.values())


def test_an_error_of_the_disk_is_never_damage(library, tmp_path):
    """Each read fails with EIO in turn, PyArrow's own included: of an update, input, verification."""
    _require_typed(_failed(library, tmp_path, "first", "csv", "parquet", "verify"))


@pytest.mark.nightly
@pytest.mark.parametrize(
    "name",
    ["update", "adopt", "read", "override", "restore", "history", "file", "gc", "erase", "clone"],
)
def test_no_operation_takes_an_error_of_the_disk_for_damage(library, tmp_path, name):
    """Every other operation, read by read."""
    _require_typed(_failed(library, tmp_path, name))


@pytest.mark.parametrize("name", ["read", "update", "history", "gc"])
def test_a_refused_request_can_be_tried_again(name):
    """In a bucket: each reading request of an operation is refused in turn."""
    inner = MemoryStorage()
    given.tenant(inner).stream("A").update(pd.DataFrame({"Id": ["1", "2"], "v": [1, 2]}), key="Id")
    operation = {
        "read": lambda tenant: tenant.stream("A").read(),
        "update": lambda tenant: tenant.stream("A").update(pd.DataFrame({"Id": ["2"], "v": [3]}), key="Id"),
        "history": lambda tenant: list(tenant.history()),
        "gc": lambda tenant: tenant.gc(),
    }[name]
    number, failed = 0, 0
    while True:
        storage = FaultyStorage(inner, [Fault(number, Way.FAIL_BEFORE, "read")])
        try:
            operation(given.tenant(storage))
        except TryAgain:
            failed += 1
        number += 1
        if sum(call.verb == "read" for call in storage.calls) < number:
            break
    assert failed
    assert len(given.tenant(inner).stream("A").read()) == 2


class Stopped(BytesIO):
    """A file whose reads the system stops."""

    def read(self, *_):
        raise OSError(errno.EIO, os.strerror(errno.EIO))


def test_statistics_tell_a_failed_read_from_damage():
    """EIO may be gone the next time; bytes that are not Parquet stay so."""
    with pytest.raises(StorageUnavailable):
        file_statistics(Stopped(b"PAR1" * 10), {"type": "struct", "fields": []})
    with pytest.raises(CorruptData):
        file_statistics(b"PAR1" * 10, {"type": "struct", "fields": []})


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (OSError(errno.EIO, "x"), StorageUnavailable),
        (OSError(errno.EMFILE, "x"), StorageUnavailable),
        (OSError("not a Parquet file"), None),
        (FileNotFoundError(errno.ENOENT, "x"), None),
        (ValueError("x"), None),
    ],
)
def test_only_the_system_fails_for_now(error, expected):
    """An error number is the system's; without one the bytes are wrong, and a missing file is missing."""
    found = passing_failure("a", error)

    assert expected is (None if found is None else type(found))
    with pytest.raises(expected or type(error)), reads_of("a"):
        raise error


# Storage calls run in sequence on a disk and concurrently in a bucket.


def test_calls_on_a_disk_run_in_sequence(tmp_path):
    """By the thread that asks, in order, up to the first error."""
    storage, taken = LocalStorage(tmp_path), []

    def fails():
        raise FileNotFoundError("second")

    def note():
        taken.append(threading.current_thread())
        return len(taken)

    assert run_concurrently(storage, note, note) == (1, 2)
    with pytest.raises(FileNotFoundError, match="second"):
        run_concurrently(storage, note, fails, note)
    assert [threading.current_thread()] * 3 == taken


def test_calls_on_a_bucket_run_concurrently():
    """Each waits until all have begun, which they could not in turn; the answers are in order."""
    begun = threading.Barrier(3, timeout=60)

    def look(answer):
        begun.wait()
        return answer

    assert run_concurrently(MemoryStorage(), *(lambda item=item: look(item) for item in "abc")) == (
        "a",
        "b",
        "c",
    )


def test_the_first_error_in_order_is_raised_when_all_calls_have_ended():
    """A call that ends later is waited for, and the error is not the one that happened to come first."""
    over, second = [], threading.Event()

    def first():
        second.wait(60)
        over.append("first")
        raise FileNotFoundError("first")

    def other():
        second.set()
        raise PermissionError("other")

    with pytest.raises(FileNotFoundError, match="first"):
        run_concurrently(MemoryStorage(), first, other)
    assert over == ["first"]


def test_calls_that_have_calls_of_their_own_need_no_free_thread(monkeypatch):
    """Each group is carried out by the thread that has it where there are fewer threads than groups."""
    monkeypatch.setattr(read_ahead, "_workers", ThreadPoolExecutor(2))
    storage = MemoryStorage()

    def leaves(depth):
        return 1 if depth == 0 else sum(run_concurrently(storage, *[lambda: leaves(depth - 1)] * 5))

    assert leaves(4) == 5**4


def test_answers_keep_the_order_of_their_names():
    """Two readers that wait for each other: both read at once, and the answers are in order."""
    together = threading.Barrier(2, timeout=60)

    def read(name):
        together.wait()
        return name.upper()

    assert map_concurrently(read, ["a", "b", "c", "d"], 2) == ["A", "B", "C", "D"]
    assert map_concurrently(read, [], 2) == []


def test_the_first_error_of_a_map_is_raised():
    """A file that cannot be read is told as if it were read alone."""

    def read(name):
        raise FileNotFoundError(name)

    with pytest.raises(FileNotFoundError, match="x"):
        map_concurrently(read, ["x", "y"], 2)


def test_an_error_is_raised_where_an_earlier_call_is_cancelled_because_of_it(monkeypatch):
    """A thread that has taken a call may begin it after another one has failed."""
    made, cancelled = [], threading.Event()

    class SlowToBegin(Future):
        def __init__(self):
            super().__init__()
            made.append(self)

        def set_running_or_notify_cancel(self):
            if self is made[0]:
                cancelled.wait(60)
            return super().set_running_or_notify_cancel()

        def cancel(self):
            ended = super().cancel()
            if self is made[0]:
                cancelled.set()
            return ended

    def read(name):
        raise FileNotFoundError(name)

    monkeypatch.setattr(read_ahead, "Future", SlowToBegin)
    with pytest.raises(FileNotFoundError, match="second"):
        map_concurrently(read, ["first", "second"], 2)


# Requests that wait for each other are told from those that go side by side.


def test_the_longest_chain_is_counted():
    """Three at once are one step, whatever their order; one that begins at an end has waited for it."""
    requests = [Request("read", name, began, ended) for name, began, ended in
                [("a", 0, 1), ("b", 0, 1), ("c", 0.5, 1.5), ("d", 1, 2), ("e", 2, 3)]]  # fmt: skip
    for order in (requests, requests[::-1]):
        assert [item.name for item in in_sequence(order)][1:] == ["d", "e"]
        assert len(in_sequence(order)) == 3
    assert in_sequence([]) == ()


def test_each_request_takes_its_time_and_failures_count():
    """Side by side or one after the other, as the caller asks; an absent file is an answer as well."""
    storage, together = LatencyStorage(MemoryStorage(), 0.2), threading.Barrier(4, timeout=60)

    def put(number):
        together.wait()
        storage.put_if_absent(f"f/{number}", b"x")

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(put, range(4)))
    assert (len(storage.requests), len(in_sequence(storage.requests))) == (4, 1)
    assert all(request.ended - request.began >= 0.2 for request in storage.requests)
    storage.seconds = 0.01
    with pytest.raises(FileNotFoundError):
        storage.read("f/5")
    assert storage.read("f/1") == b"x"
    assert len(list(storage.list_from("f"))) == 4
    assert [request.verb for request in storage.requests[4:]] == ["read", "read", "list_from"]
    assert len(in_sequence(storage.requests)) == 4
    assert all(request.ended - request.began >= 0.01 for request in storage.requests)
    with pytest.raises(InvalidOption):
        LatencyStorage(MemoryStorage(), -1)


@pytest.mark.parametrize(
    ("limit", "expected"),
    [(None, 6), ("max 100000", 6), ("150000 100000", 2), ("10000 100000", 1), ("900000 100000", 6)],
)
def test_processors_are_those_that_the_process_may_use(tmp_path, monkeypatch, limit, expected):
    """Those of its affinity, or its container's share of time, rounded up; not all of the machine's."""
    if limit is not None:
        (tmp_path / "cpu.max").write_text(f"{limit}\n")
    monkeypatch.setattr(read_ahead, "_CGROUP_LIMIT", tmp_path / "cpu.max")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(6)))
    assert expected == processors.__wrapped__()
