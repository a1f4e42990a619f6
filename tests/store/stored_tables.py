"""A stream's table written by hand: as many files and row groups as a test of reading wants."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
from pyroaring import BitMap64
from tests.log.tables import inline_vector, with_mapping

from freezeframe.log.delta_log import DeltaLog
from freezeframe.log.format.actions import Add, CommitInfo, Metadata, Protocol, Remove, to_json_line
from freezeframe.log.format.schema import arrow_to_delta
from freezeframe.log.scan.file_statistics import file_statistics, statistics_text
from freezeframe.log.segments.commit import write_commit
from freezeframe.storage import MemoryStorage

FEATURES = ("columnMapping", "deletionVectors", "timestampNtz", "typeWidening")
PROTOCOL = Protocol(3, 7, FEATURES, FEATURES)


class MeasuredStorage(MemoryStorage):
    """Counts the bytes that are read of data files."""

    bytes_read = 0

    def read(self, name, offset=0, length=None):
        found = super().read(name, offset, length)
        self.bytes_read += len(found) if name.endswith(".parquet") else 0
        return found


class StoredTable:
    """A table with a key; each ``commit`` makes a version and gives its snapshot."""

    def __init__(self, schema, key=(), storage=None, *, renamed=False, **configuration):
        self.storage = storage or MeasuredStorage()
        self.schema = arrow_to_delta(schema)
        properties = {"freezeframe.key": json.dumps(list(key)), **configuration}
        if renamed:
            self.schema, id_max = with_mapping(self.schema)
            properties["delta.columnMapping.mode"] = "name"
            properties["delta.columnMapping.maxColumnId"] = str(id_max)
        self._names = [
            (item["metadata"] or {}).get("delta.columnMapping.physicalName", item["name"])
            for item in self.schema["fields"]
        ]
        self._version = -1
        self._adds = {}
        self._actions = [PROTOCOL, Metadata("id", json.dumps(self.schema), (), properties)]

    def file(self, rows, *, groups=100, gone=()):
        """A file of row groups of so many rows, of which some positions are deleted."""
        sink = pa.BufferOutputStream()
        pq.write_table(rows.rename_columns(self._names), sink, row_group_size=groups)
        content = sink.getvalue().to_pybytes()
        name = f"{len(self._adds):03}.parquet"
        self.storage.put_if_absent(f"t/{name}", content)
        text = statistics_text(file_statistics(content, self.schema))
        vector = inline_vector(BitMap64(gone)) if gone else None
        self._adds[name] = Add(name, len(content), {}, stats=text, deletion_vector=vector)
        self._actions.append(self._adds[name])
        return name

    def delete(self, name, positions):
        """From the next version on rows of a file are deleted; without positions the whole file is."""
        old = self._adds[name]
        self._actions.append(Remove(name, deletion_vector=old.deletion_vector, deletion_timestamp=1))
        if positions:
            vector = inline_vector(BitMap64(positions))
            self._adds[name] = Add(name, old.size, {}, stats=old.stats, deletion_vector=vector)
            self._actions.append(self._adds[name])

    def commit(self):
        """The snapshot of a new version."""
        self._version += 1
        lines = [to_json_line(action) for action in [CommitInfo({"operation": "WRITE"}), *self._actions]]
        write_commit(self.storage, "t", self._version, ("\n".join(lines) + "\n").encode())
        self._actions = []
        return DeltaLog(self.storage, "t").snapshot_at(self._version)
