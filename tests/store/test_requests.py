"""How often an update of a stream in a bucket waits for an answer; counted, not timed."""

import pandas as pd
import pytest
from obstore.store import MemoryStore
from tests.latency import LatencyStorage, in_sequence

from freezeframe.settings import Settings
from freezeframe.storage.objects import ObjectStorage
from freezeframe.store.diff.counts import ArrowEngine
from freezeframe.store.snapshot_store import Store

SECONDS = 0.02
ROWS = pd.DataFrame({"Id": [f"A{n:05d}" for n in range(10_000)], "v": range(10_000)})


@pytest.fixture
def place():
    """A tenant with a stream of 10,000 rows in a bucket in which each request takes 20 ms."""
    inner = ObjectStorage(MemoryStore(), "memory://bucket")
    filled = Store(inner, ArrowEngine(), Settings()).tenant("acme", create=True)
    filled.stream("Account").update(ROWS, key="Id")
    storage = LatencyStorage(inner, SECONDS)
    return storage, Store(storage, ArrowEngine(), Settings()).tenant("acme")


def _is_of_a_log(request):
    """Rows and keys of the attempt are not: how often they are read is a matter of their size."""
    return not request.name.endswith(".parquet")


def tries(storage):
    """Numbers of up to six tries, each with requests that take twice as long as those of the try before.

    A machine under load starts a thread late, and what was side by side looks like one after the other,
    unless a request takes longer than the thread is late.
    """
    for number in range(6):
        storage.seconds = SECONDS * 2**number
        yield number


def fewest_waits(storage, change, expected):
    """How often ``change(number)`` has to wait for logs, registry and lease, and all of its requests.

    It is done again, while ``tries`` lasts, until it waits no more often than ``expected``.
    """
    for number in tries(storage):
        before = len(storage.requests)
        change(-1 - number)
        asked = storage.requests[before:]
        of_logs = [item for item in asked if _is_of_a_log(item)]
        if len(in_sequence(of_logs)) <= expected:
            break
    return len(in_sequence(of_logs)), asked


@pytest.mark.parametrize("options", [{"key": "Id"}, {}], ids=["key", "stored key"])
def test_an_update_waits_six_times_for_its_logs(place, options):
    """Looks at the beginning, lease, looks before the commit, entry, table, and the registry once more."""
    storage, tenant = place

    def update(value):
        changed = ROWS.sample(1_000, random_state=-value).assign(v=value)
        assert tenant.stream("Account").update(changed, **options).updated == 1_000

    update(-99)
    waits, asked = fewest_waits(storage, update, 6)
    assert waits == 6, asked
    assert len(asked) <= 17


def test_an_update_after_somebody_elses_reads_what_they_committed(place):
    """Two reads more, one of each log, and the rows are on top of theirs."""
    storage, tenant = place
    other = Store(storage, tenant.context.engine, Settings()).tenant("acme").stream("Account")

    def update(value):
        other.update(ROWS.head(5).assign(v=100 + value), key="Id")
        before = len(storage.requests)
        tenant.stream("Account").update(ROWS.head(2).assign(v=value))
        asked.append([request for request in storage.requests[before:] if _is_of_a_log(request)])

    asked = []
    for number in tries(storage):
        update(-1 - number)
        if len(in_sequence(asked[-1])) <= 8:
            break
    assert len(in_sequence(asked[-1])) == 8, asked[-1]
    kept = tenant.stream("Account").read().head(6)["v"]
    assert [-1 - number] * 2 + [99 - number] * 3 + [5] == list(kept)


def test_a_job_of_many_streams_waits_for_their_tables_together(place):
    """Landing eight tables takes as long as landing one; so does looking whether they have grown."""
    storage, tenant = place
    names = [f"S{number}" for number in range(8)]
    asked = []
    for number in tries(storage):
        with tenant.job(f"job {number}") as job:
            for name in names:
                job.stream(name).update(ROWS.head(3).assign(v=number), key="Id")
            before = len(storage.requests)
        asked = [request for request in storage.requests[before:] if _is_of_a_log(request)]
        if len(in_sequence(asked)) <= 4:
            break
    assert len(in_sequence(asked)) == 4, asked
    assert ["Account", *names] == list(tenant.streams())


def test_a_job_that_reads_what_it_writes_to_looks_at_the_table_twice(place):
    """When it reads, which is what it builds on, and before the commit point."""
    storage, tenant = place

    def job(value):
        with tenant.job(f"reading {value}") as opened:
            found = opened.stream("Account").read()
            opened.stream("Account").update(found.head(10).assign(v=value))

    _, asked = fewest_waits(storage, job, 7)
    tables = [item for item in asked if item.name.endswith("Account.snapshot/_delta_log")]
    assert [table.verb for table in tables] == ["list_from", "list_from"], asked


def test_a_look_at_a_stream_waits_for_its_logs_and_its_file(place):
    """Reading again asks both logs whether they have grown; the table's own log tells what has landed."""
    storage, tenant = place
    stream = tenant.stream("Account")
    assert len(stream.read(as_="arrow")) == 10_000
    before = len(storage.requests)
    assert len(stream.read(as_="arrow")) == 10_000
    asked = storage.requests[before:]
    assert [item.verb for item in asked] == ["list_from", "list_from", "read"], asked
