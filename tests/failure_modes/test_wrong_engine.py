"""An engine that is wrong: rows that do not add up never become visible."""

import pyarrow as pa
import pytest

from freezeframe.errors import CorruptData
from freezeframe.settings import Settings
from freezeframe.storage import MemoryStorage
from freezeframe.store import Tenant


class WrongEngine:
    """Finds a stored row where there is none, as an engine that loses track of its files does."""

    def require_shared(self, folder):
        """Here all is one process."""

    def find(self, _task):
        """A row beyond the end of the file."""
        types = {"file": pa.int32(), "row": pa.int64(), "place": pa.int64()}
        return pa.table(
            {name: pa.array([value], types[name]) for name, value in zip(types, (0, 10, 0), strict=True)}
        )


def test_rows_that_do_not_add_up_are_refused():
    """A position that no file has is refused before the commit; the stream is as it was."""
    tenant = Tenant(MemoryStorage(), WrongEngine(), Settings(engine="spark"))
    stream = tenant.stream("Lead")
    stream.update(pa.table({"Id": ["1", "3"], "v": [1, 3]}), key="Id")

    with pytest.raises(CorruptData):
        stream.update(pa.table({"Id": ["2"], "v": [2]}))

    assert stream.read(as_="arrow").to_pydict() == {"Id": ["1", "3"], "v": [1, 3]}
