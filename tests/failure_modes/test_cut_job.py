"""A crash between the streams of a job: all of them and the files are there, or none."""

import pyarrow as pa
import pytest

from freezeframe.settings import Settings
from freezeframe.storage import MemoryStorage
from freezeframe.storage.memory import Crash, Fault, FaultyStorage, Way
from freezeframe.store import Tenant

ROWS = pa.table({"Id": ["1"], "v": [1]})


@pytest.mark.parametrize("way", [Way.CUT_BEFORE, Way.CUT_AFTER])
def test_a_cut_job_publishes_everything_or_nothing(way):
    """Cut at each storage call of a job of two streams and a file in turn: everything or nothing."""
    outcomes = set()
    for call in range(200):
        storage = MemoryStorage()
        faulty = FaultyStorage(storage, [Fault(call, way)])
        try:
            with Tenant(faulty, None, Settings()).job("run") as job:
                job.stream("Account").update(ROWS, key="Id")
                job.files.write("cursor", b"1")
                job.stream("Lead").update(ROWS, key="Id")
        except Crash:
            after = Tenant(storage, None, Settings())
            outcomes.add((after.streams(), after.files.exists("cursor")))
        else:
            break
    assert outcomes == {((), False), (("Account", "Lead"), True)}
