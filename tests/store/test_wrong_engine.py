"""An engine that is wrong: rows that do not add up never become visible."""

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from freezeframe.engine.protocol import TableEngine
from freezeframe.errors import CorruptData
from freezeframe.settings import Settings
from freezeframe.storage import LocalStorage
from freezeframe.store import Tenant


class WrongEngine(TableEngine):
    """Spark, whose answers name rows beyond the end of their files, as after it lost track of them."""

    def __init__(self, spark):
        self._spark = spark

    def _behind(self):
        return self._spark

    def run(self, calls):
        """The rows that Spark found, each ten rows too far."""
        return [found.set_column(1, "row", pc.add(found["row"], 10)) for found in super().run(calls)]

    def close(self):
        """The engine is the whole run's."""


@pytest.mark.spark
def test_rows_that_do_not_add_up_are_refused(tmp_path, spark_engine):
    """A position that no file has is refused before the commit; the stream is as it was."""
    storage, settings = LocalStorage(tmp_path), Settings(engine="spark")
    Tenant(storage, spark_engine, settings).stream("Lead").update(
        pa.table({"Id": ["1", "3"], "v": [1, 3]}), key="Id"
    )
    stream = Tenant(storage, WrongEngine(spark_engine), settings).stream("Lead")

    with pytest.raises(CorruptData):
        stream.update(pa.table({"Id": ["3", "5"], "v": [2, 2]}))

    assert stream.read(as_="arrow").to_pydict() == {"Id": ["1", "3"], "v": [1, 3]}
