"""How often an update of a stream in a bucket waits for an answer; counted, not timed."""

import io

import pandas as pd
import pyarrow.parquet as pq
import pytest
from obstore.store import MemoryStore
from tests.store.conftest import FindingEngine

from freezeframe.settings import Settings
from freezeframe.storage import ObjectStorage
from freezeframe.storage.distant import DistantStorage, in_sequence
from freezeframe.store.snapshot_store import Store

SECONDS = 0.05
ROWS = pd.DataFrame({"Id": [f"A{n:05d}" for n in range(10_000)], "v": range(10_000)})


class Engine(FindingEngine):
    """It reads on its own line, as Spark does."""

    def __init__(self, inner):
        super().__init__(inner)
        self._inner = inner

    def _rows(self, path):
        content = self._inner.read(path.removeprefix(self._inner.root).lstrip("/"))
        return pq.read_table(io.BytesIO(content)).to_pylist()


@pytest.fixture
def place():
    """A tenant with a stream of 10,000 rows in a bucket in which each request takes 50 ms."""
    inner = ObjectStorage(MemoryStore(), "memory://bucket")
    storage = DistantStorage(inner, SECONDS)
    store = Store(storage, Engine(inner), Settings())
    tenant = store.tenant("acme", create=True)
    tenant.stream("Account").update(ROWS, key="Id")
    return storage, tenant


def _is_of_a_log(request):
    """Rows and keys of the attempt are not: how often they are read is a matter of their size."""
    return not request.name.endswith(".parquet")


def test_an_update_waits_at_most_twelve_times_for_its_logs(place):
    """10,000 rows <- 1,000: what the tenant's log, the table's, the registry and the lease take together."""
    storage, tenant = place
    for seed in (1, 2):
        before = len(storage.requests)
        changed = ROWS.sample(1_000, random_state=seed).assign(v=-seed)
        assert 1_000 == tenant.stream("Account").update(changed, key="Id").updated
        asked = [one for one in storage.requests[before:] if _is_of_a_log(one)]
        shown = "\n".join(f"{one.verb} {one.name}" for one in in_sequence(asked))
        assert len(in_sequence(asked)) <= 12, shown
        assert len(storage.requests) - before <= 22


def test_a_look_at_a_stream_waits_for_its_logs_and_its_file(place):
    """Reading again asks both logs whether they have grown, and whether the newest entry has landed."""
    storage, tenant = place
    stream = tenant.stream("Account")
    assert 10_000 == len(stream.read(as_="arrow"))
    before = len(storage.requests)
    assert 10_000 == len(stream.read(as_="arrow"))
    asked = storage.requests[before:]
    assert ["list_from", "list_from", "read", "read"] == [one.verb for one in asked], asked
