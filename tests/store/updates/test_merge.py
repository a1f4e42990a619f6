"""What a merge tells the engine of its input."""

import pyarrow as pa
import pytest

from freezeframe.errors import InvalidOption
from freezeframe.settings import Settings
from freezeframe.storage import MemoryStorage
from freezeframe.store import Tenant
from freezeframe.store.diff.counts import ArrowEngine


class Noting(ArrowEngine):
    """Notes the task of each merge and carries out those that an engine without Spark can."""

    tasks: list

    def merge(self, task):
        self.tasks.append(task)
        return super().merge(task)


def test_a_merge_knows_how_many_bytes_go_in():
    """Those of the stored files by the log, and those of the batch, also where no disk can be asked."""
    storage = MemoryStorage()
    engine = Noting(storage)
    engine.tasks = []
    tenant = Tenant(storage, engine, Settings())
    stream = tenant.stream("Lead")
    stream.update(pa.table({"Id": range(1000), "v": range(1000)}), key="Id")
    stored = sum(file.size for file in storage.list_below("") if file.name.endswith(".parquet"))
    with pytest.raises(InvalidOption, match="move stored rows"):
        stream.update(pa.table({"Id": [1], "v": [1]}), replace_where="v = 1")
    stream.update(pa.table({"Id": [1], "v": [1]}), key="Id", override=True)
    window, override = (task.size_bytes for task in engine.tasks)
    assert stored < window == override < 2 * stored
