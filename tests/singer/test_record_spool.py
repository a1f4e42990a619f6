"""The rows of streams that wait in one file for their commit."""

import tempfile
from concurrent.futures import ThreadPoolExecutor

from freezeframe.singer.messages import RecordMessage, SchemaMessage
from freezeframe.singer.record_spool import BatchLimits, RecordSpool

ROWS = 100


def test_streams_are_read_side_by_side():
    """Threads that read several streams of one file at once get each its own rows."""
    with tempfile.TemporaryFile() as file:
        spools = {}
        for name in ("a", "b", "c"):
            schema = SchemaMessage(1, name, {"Id": {"type": "string"}}, ("Id",))
            spools[name] = RecordSpool(file, schema, BatchLimits(1, 2**20))
            for number in range(ROWS):
                spools[name].add(RecordMessage(2, name, {"Id": f"{name}{number}"}, None))

        def read(name):
            return name, spools[name].reader(None).read_all()["Id"].to_pylist()

        with ThreadPoolExecutor(6) as threads:
            found = list(threads.map(read, [*spools] * 6))

    assert found == [(name, [f"{name}{number}" for number in range(ROWS)]) for name, _ in found]
