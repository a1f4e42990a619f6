"""Values and bytes changed at random places, by a seed."""

import contextlib
import copy
import io
import json
import random

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from tests.log.tables import UNIQUE_ID, TableBuilder, compacted_name

from freezeframe.errors import FreezeframeError
from freezeframe.log.primitives.paths import checkpoint_name, commit_name, v2_checkpoint_name
from freezeframe.log.scan.rows import files_matching
from freezeframe.log.segments.hint import hint_text, parse_checksum, parse_hint, read_hint
from freezeframe.log.table.checksum_writer import checksum_of, checksum_text
from freezeframe.log.table.upkeep import write_checkpoint

ODD = [
    *(
        None,
        True,
        False,
        0,
        -1,
        5,
        2**63,
        2**70,
        1.5,
        1e400,
        float("nan"),
        "",
        "5",
        "\ud800",
        "\x00",
        "..",
        "/../x",
    ),
    *(
        "x" * 50,
        [],
        [1],
        {},
        {"a": 1},
        [[]],
        {"a": {"b": None}},
        "+10000-01-01",
        "2024-13-45",
        "s3://a/b",
        "NaN",
    ),
]


class Mutations:
    def __init__(self, seed):
        self.random = random.Random(seed)

    def value(self, value):
        """A copy of a JSON value with one to three of its parts replaced, taken away or added."""
        value = copy.deepcopy(value)
        places = list(self._places(value, ()))
        for place in self.random.choices(places, k=self.random.choice([1, 1, 2, 3])) if places else ():
            self._change(value, place)
        return value

    def bytes(self, content):
        """The bytes with a few of them changed, lost or doubled, or with very deep nesting."""
        found = bytearray(content)
        for _ in range(self.random.choice([1, 1, 2, 4])):
            at = self.random.randrange(len(found) + 1)
            kind = self.random.random()
            if kind < 0.5 and at < len(found):
                found[at] = self.random.randrange(256)
            elif kind < 0.7:
                del found[at : at + self.random.randrange(1, 9)]
            elif kind < 0.9:
                found[at:at] = self.random.randbytes(3)
            elif kind < 0.95:
                del found[at:]
            else:
                found[at:at] = self.random.choice([b"[", b'{"a":']) * 20_000
        return bytes(found)

    def _places(self, value, inside):
        parts = (
            value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        )
        for key, one in parts:
            yield (*inside, key)
            yield from self._places(one, (*inside, key))

    def _change(self, value, place):
        try:
            for key in place[:-1]:
                value = value[key]
            odd = copy.deepcopy(self.random.choice(ODD))
            kind = self.random.random()
            if kind < 0.15:
                del value[place[-1]]
            elif kind < 0.25 and isinstance(value, dict):
                value[self.random.choice(["zz", "\ud800", "a.b", ".p", "path"])] = odd
            else:
                value[place[-1]] = odd
        except (KeyError, TypeError, IndexError):
            pass  # an earlier change took the place away


# Every parser of the log layer: mutated input gives an answer or a typed error, never a raw exception.


ROUNDS = [pytest.param(40, id="short"), pytest.param(5_000, id="long", marks=pytest.mark.nightly)]
KINDS = "long integer double float string date timestamp timestamp_ntz boolean binary"
NESTED = {
    "type": "struct",
    "fields": [{"name": "q", "type": "decimal(10,2)", "nullable": False, "metadata": {"k": 1}}],
}
SCHEMA = {
    "type": "struct",
    "fields": [
        {"name": name, "type": kind, "nullable": True, "metadata": {}}
        for name, kind in [*zip("abcdefghij", KINDS.split(), strict=True), ("p", "timestamp"), ("z", NESTED)]
    ],
}
STATISTICS = {
    "numRecords": 2,
    "minValues": {"a": 1, "c": 1.5, "e": "a", "f": "2024-01-01", "g": "2024-01-01T00:00:00.000Z"},
    "maxValues": {"a": 5, "c": 2.5, "e": "b", "f": "+10000-01-01", "g": "2024-01-01T00:00:00.000Z"},
    "nullCount": {"a": 0, "c": 0, "e": 0, "f": 2},
}
VECTOR = {
    "storageType": "u",
    "pathOrInlineDv": "vBn[lx{q8@P<9BNH/isA",
    "offset": 1,
    "sizeInBytes": 36,
    "cardinality": 2,
}
FEATURES = ["columnMapping", "deletionVectors", "timestampNtz", "v2Checkpoint"]
PROPERTIES = {
    "delta.enableInCommitTimestamps": "true",
    "delta.inCommitTimestampEnablementVersion": "0",
    "delta.inCommitTimestampEnablementTimestamp": "0",
    "delta.columnMapping.mode": "none",
    "delta.setTransactionRetentionDuration": "interval 7 days",
    "delta.deletedFileRetentionDuration": "interval 1 days",
}
LINES = [
    {"commitInfo": {"timestamp": 1, "operation": "WRITE", "inCommitTimestamp": 5, "txnId": "q"}},
    {
        "protocol": {
            "minReaderVersion": 3,
            "minWriterVersion": 7,
            "readerFeatures": FEATURES,
            "writerFeatures": [*FEATURES, "inCommitTimestamp"],
        }
    },
    {
        "metaData": {
            "id": "i",
            "format": {"provider": "parquet", "options": {}},
            "schemaString": json.dumps(SCHEMA),
            "partitionColumns": ["p"],
            "configuration": PROPERTIES,
            "createdTime": 1,
        }
    },
    {"txn": {"appId": "a", "version": 3, "lastUpdated": 9}},
    {"domainMetadata": {"domain": "d", "configuration": "{}", "removed": False}},
    {
        "add": {
            "path": "f1.parquet",
            "partitionValues": {"p": "2024-01-01 00:00:00"},
            "size": 10,
            "modificationTime": 1,
            "dataChange": True,
            "stats": json.dumps(STATISTICS),
            "tags": {"t": "v"},
            "deletionVector": VECTOR,
            "baseRowId": 1,
        }
    },
    {
        "add": {
            "path": "f2.parquet",
            "partitionValues": {"p": None},
            "size": 1,
            "modificationTime": 1,
            "stats": "{}",
        }
    },
    {
        "remove": {
            "path": "f0.parquet",
            "deletionTimestamp": 5,
            "partitionValues": {"p": "x"},
            "size": 4,
            "tags": {},
        }
    },
]


def content(lines):
    return "".join(json.dumps(line) + "\n" for line in lines).encode()


def mutated(mutations, lines):
    """The content of a commit in which lines, the JSON inside of them, or bytes are changed."""
    found = []
    for line in lines:
        if mutations.random.random() < 0.25:
            line = mutations.value(line)  # noqa: PLW2901 - the line, changed
            for kind, name in (("metaData", "schemaString"), ("add", "stats")):
                if isinstance(line.get(kind), dict) and mutations.random.random() < 0.5:
                    line[kind][name] = json.dumps(mutations.value(json.loads(json.dumps(SCHEMA))))
        found.append(line)
    whole = content(found)
    return mutations.bytes(whole) if mutations.random.random() < 0.3 else whole


def use(log):
    """Everything that is made of a snapshot's log."""
    snapshot = log.update()
    for table in (snapshot.files, snapshot.tombstones):
        table.to_pylist()
    assert snapshot.count == snapshot.files.num_rows
    found = (snapshot.transactions, snapshot.domains, log.history(), checksum_text(checksum_of(snapshot)))
    for name, value in (("a", 3), ("f", None), ("p", None)):
        if name in snapshot.delta_schema["fields"]:
            files_matching(snapshot, pc.field(name).is_null() if value is None else pc.field(name) > value)
    return found, snapshot.to_arrow()


def is_typed(call, *arguments):
    """Whether the call gives an answer or one of our errors; another error goes its way."""
    with contextlib.suppress(FreezeframeError):
        call(*arguments)
    return True


@pytest.mark.parametrize("rounds", ROUNDS)
@pytest.mark.parametrize("seed", range(2))
def test_commits(seed, rounds):
    """Commits with their schemas, statistics, vectors and partition values; what is read can be written."""
    mutations = Mutations(seed)
    for _ in range(rounds):
        table = TableBuilder()
        table.raw(commit_name(0), mutated(mutations, LINES))

        def look(table=table):
            use(table.log())

        def write(table=table):
            write_checkpoint(table.log().current_snapshot)

        assert is_typed(look)
        assert is_typed(write)
        assert is_typed(look)


@pytest.mark.parametrize("rounds", ROUNDS)
def test_compacted_files(rounds):
    """A compacted file, whatever is in it: the table stays readable as long as it is seen to be damaged."""
    mutations = Mutations(7)
    for _ in range(rounds):
        table = TableBuilder().commits(4)
        table.raw(compacted_name(1, 3), mutated(mutations, LINES[3:]))
        assert is_typed(lambda table: table.log().update().files.to_pylist(), table)


@pytest.mark.parametrize("rounds", ROUNDS)
@pytest.mark.parametrize("kind", ["json", "parquet"])
def test_checkpoints(kind, rounds):
    """Checkpoints of text, and of columns without checksums of their pages."""
    mutations = Mutations(8)
    lines = [*LINES[1:], {"checkpointMetadata": {"version": 0}}]
    name = v2_checkpoint_name(0, UNIQUE_ID, "json") if kind == "json" else checkpoint_name(0)
    whole = columns() if kind == "parquet" else b""
    for _ in range(rounds // 4 if kind == "parquet" else rounds):
        table = TableBuilder()
        table.raw(commit_name(0), content(LINES))
        table.raw(name, mutated(mutations, lines) if kind == "json" else mutations.bytes(whole))
        assert is_typed(lambda table: use(table.log()), table)


def columns():
    """A checkpoint of columns that keeps statistics as a struct."""
    table = TableBuilder()
    table.raw(
        commit_name(0),
        content([*LINES[:5], *({"add": {**LINES[6]["add"], "path": f"f{n}"}} for n in range(9))]),
    )
    write_checkpoint(table.log().current_snapshot)
    rows = pq.read_table(io.BytesIO(table.storage.read(f"{table.folder}/{checkpoint_name(0)}")))
    add = rows["add"].combine_chunks()
    parsed = pa.array([{"numRecords": 2, "minValues": {"e": "a", "f": None}}] * len(rows))
    fields = [add.type.field(index) for index in range(add.type.num_fields)]
    kept = [index for index, field in enumerate(fields) if field.name != "stats"]
    struct = pa.StructArray.from_arrays(
        [*(add.field(index) for index in kept), parsed],
        fields=[*(fields[index] for index in kept), pa.field("stats_parsed", parsed.type)],
        mask=add.is_null(),
    )
    sink = io.BytesIO()
    pq.write_table(rows.set_column(rows.schema.get_field_index("add"), "add", struct), sink)
    return sink.getvalue()


@pytest.mark.parametrize("rounds", ROUNDS)
def test_hints_and_checksums(rounds):
    """A hint is a hint or garbled, a checksum is one or none; a table beside them is read."""
    mutations = Mutations(9)
    table = TableBuilder().commits(3)
    hint = {
        "version": 2,
        "size": 3,
        "parts": 2,
        "tags": {"a": "b"},
        "v2Checkpoint": {"path": "x", "sidecarFiles": []},
    }
    checksum = json.loads(checksum_text(checksum_of(table.log().current_snapshot)))
    for _ in range(rounds):
        for name, base in (("_last_checkpoint", hint), (f"{2:020d}.crc", checksum)):
            text = json.dumps(mutations.value(base)).encode()
            table.raw(name, mutations.bytes(text) if mutations.random.random() < 0.4 else text)
        found, _ = read_hint(table.storage, table.folder, sleep=lambda _: None)
        assert found is None or parse_hint(hint_text(found).encode()).version == found.version
        said = parse_checksum(table.storage.read(f"{table.folder}/{2:020d}.crc"))
        assert said is None or checksum_text(said)
        assert is_typed(lambda table: table.log().update().files.to_pylist(), table)
