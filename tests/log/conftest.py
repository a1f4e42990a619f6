"""A table that tests write through transactions, on any storage."""

import json

import pyarrow as pa
import pytest
from tests.log.data_files import new_files

from freezeframe.log.delta_log import DeltaLog
from freezeframe.log.format.actions import Metadata, Protocol
from freezeframe.log.format.schema import arrow_to_delta
from freezeframe.log.table.row_deletion import mark_rows, removal
from freezeframe.log.table.transaction import Transaction
from freezeframe.log.table.upkeep import Upkeep
from freezeframe.storage import MemoryStorage

COLUMNS = pa.schema([("id", pa.string()), ("n", pa.int64()), ("p", pa.string())])


class WritableTable:
    """A table ``t`` with the columns id, n and p (its partition), and the usual ways to change it."""

    def __init__(self, storage, upkeep=None, features=(), schema=None, **configuration):
        self.storage = storage
        self.upkeep = upkeep
        self.log = DeltaLog(storage, "t")
        self.schema = schema or arrow_to_delta(COLUMNS)
        reader = tuple(f for f in ("deletionVectors", "v2Checkpoint", "columnMapping", *features) if f != "")
        used = [f for f in reader if f in ("deletionVectors", "v2Checkpoint", "columnMapping")]
        writer = tuple(sorted({*reader, "inCommitTimestamp", "domainMetadata", "appendOnly"}))
        self.protocol = Protocol(3, 7, tuple(sorted(used)), writer)
        keys = {f"delta.{key.replace('_', '.')}": value for key, value in configuration.items()}
        keys = {"delta.enableDeletionVectors": "true", **keys}
        self.metadata = Metadata(
            "00000000-0000-4000-8000-000000000000", json.dumps(self.schema), ("p",), keys
        )

    def begin(self, **options):
        return Transaction(self.log, upkeep=self.upkeep, **options)

    def create(self):
        return self.begin().commit([self.protocol, self.metadata], "CREATE TABLE")

    def adds(self, numbers, partition="a"):
        """Stores a file of these numbers and gives its action."""
        numbers = list(numbers)
        rows = pa.table({"id": [f"{n:04}" for n in numbers], "n": numbers, "p": [partition] * len(numbers)})
        files = new_files(rows, self.schema, self.protocol, self.metadata)
        for file in files:
            self.storage.put_if_absent(f"t/{file.name}", file.content)
        return [file.add for file in files]

    def append(self, numbers, partition="a"):
        return self.begin().commit(self.adds(numbers, partition), "WRITE")

    def delete(self, transaction, positions):
        """The actions that delete rows by vector; the vector file is stored."""
        deletion = mark_rows(transaction.snapshot, positions)
        if deletion.file is not None:
            self.storage.put_if_absent(f"t/{deletion.file.name}", deletion.file.content)
        return list(deletion.actions)

    def remove_all(self, transaction):
        """The actions that remove every live file of the transaction's snapshot."""
        from freezeframe.log.format.action_columns import to_adds

        return [removal(add) for add in to_adds(transaction.snapshot.files)]

    def fresh(self):
        """The newest snapshot, read by somebody who has seen nothing yet."""
        return DeltaLog(self.storage, "t").update()


@pytest.fixture
def table():
    made = WritableTable(MemoryStorage(), Upkeep())
    made.create()
    return made


@pytest.fixture
def make_table():
    return WritableTable
