"""The tables of the oracle: small, our own, and made by the same steps each time.

A step is a statement for Spark, in which ``@`` is the table, or a function of the table's folder.
"""

import json
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

ID_NAME = "(id INT, name STRING)"


def properties(**values):
    """Return the clause of a table's properties; ``__`` in a name stands for a dot."""
    listed = ", ".join(f"'delta.{name.replace('__', '.')}' = '{value}'" for name, value in values.items())
    return f"TBLPROPERTIES ({listed})"


def create(columns, *clauses):
    """Return the statement that makes the table."""
    return f"CREATE TABLE @ {columns} USING delta {' '.join(clauses)}"


def inserts(*rows):
    """Return one statement a row, so that each is a commit with a file of its own."""
    return [f"INSERT INTO @ VALUES {row}" for row in rows]


def commit_file(folder, version):
    """Return the path of a commit."""
    return Path(folder) / "_delta_log" / f"{version:020d}.json"


def drop_commits(last):
    """Return a step that removes the commits up to a version, which a checkpoint has."""

    def step(folder):
        for version in range(last + 1):
            commit_file(folder, version).unlink()
            commit_file(folder, version).with_suffix(".crc").unlink(missing_ok=True)

    return step


def remove_commit(version):
    """Return a step that removes one commit."""
    return lambda folder: commit_file(folder, version).unlink()


def cut_commit(version):
    """Return a step that leaves the first half of a commit's last line."""

    def step(folder):
        file = commit_file(folder, version)
        lines = file.read_text().splitlines()
        file.write_text("\n".join([*lines[:-1], lines[-1][: len(lines[-1]) // 2]]))

    return step


def edit_protocol(**fields):
    """Return a step that changes the protocol in the first commit."""

    def step(folder):
        file = commit_file(folder, 0)
        lines = [json.loads(line) for line in file.read_text().splitlines()]
        for line in lines:
            if "protocol" in line:
                line["protocol"] |= fields
        file.write_text("".join(json.dumps(line) + "\n" for line in lines))
        for checksum in file.parent.glob("*.crc"):  # which holds the protocol as well
            checksum.unlink()

    return step


def alter_fields(features, **metadata):
    """Return a step that adds a commit with metadata of columns which no statement of Spark sets."""

    def step(folder):
        actions = {}
        for line in commit_file(folder, 0).read_text().splitlines():
            actions |= json.loads(line)
        schema = json.loads(actions["metaData"]["schemaString"])
        for field in schema["fields"]:
            field["metadata"] |= metadata.get(field["name"], {})
        actions["metaData"]["schemaString"] = json.dumps(schema)
        actions["protocol"]["writerFeatures"] += features
        info = {"timestamp": actions["commitInfo"]["timestamp"] + 1, "operation": "CHANGE COLUMN"}
        kept = ({"commitInfo": info}, *({name: actions[name]} for name in ("protocol", "metaData")))
        commit_file(folder, 1).write_text("".join(json.dumps(action) + "\n" for action in kept))

    return step


def compact(start, end):
    """Return a step in which delta-rs adds a compacted file for some commits."""

    return lambda folder: DeltaTable(folder).compact_logs(start, end)


def write_by_delta_rs(folder):
    """Let delta-rs write, append, delete, compact and write a checkpoint."""
    at = pa.array([0, None, 1], pa.timestamp("us"))
    table = pa.table({"id": [1, 2, 3], "p": ["a", None, "b c"], "at": at})
    write_deltalake(folder, table, partition_by=["p"])
    write_deltalake(folder, table, mode="append", partition_by=["p"])
    DeltaTable(folder).delete("id = 1")
    DeltaTable(folder).optimize.compact()
    DeltaTable(folder).create_checkpoint()
    write_deltalake(folder, table.slice(0, 1), mode="append", partition_by=["p"])


TYPES = """(
    k INT, bool BOOLEAN, i8 TINYINT, i16 SMALLINT, i64 BIGINT, f32 FLOAT, f64 DOUBLE, whole DECIMAL(38,0),
    exact DECIMAL(20,10), text STRING, bytes BINARY, day DATE, moment TIMESTAMP, local TIMESTAMP_NTZ,
    list ARRAY<INT>, lists ARRAY<ARRAY<STRING>>, map MAP<STRING, BIGINT>, struct STRUCT<a: INT, b: STRING>,
    deep STRUCT<list: ARRAY<STRUCT<m: MAP<INT, DATE>, d: DECIMAL(5,2)>>, at: TIMESTAMP>)"""
TYPED_ROWS = (
    """(1, true, 127Y, 32767S, 9223372036854775807L, float(1.5), 0.1D,
        99999999999999999999999999999999999999BD, 1.0000000001BD, 'Zürich 😀', X'00FF', DATE '9999-12-31',
        TIMESTAMP '9999-12-31 23:59:59.999999', TIMESTAMP_NTZ '2024-02-29 12:00:00.000001',
        array(1, NULL, 3), array(array('a', NULL), NULL, array()), map('k', 1L, 'n', NULL),
        named_struct('a', 1, 'b', NULL),
        named_struct('list', array(named_struct('m', map(1, DATE '1970-01-01'), 'd', 1.25BD), NULL),
                     'at', TIMESTAMP '1969-12-31 23:59:59.999999'))""",
    """(2, false, -128Y, -32768S, -9223372036854775808L, float('NaN'), double('-Infinity'),
        -99999999999999999999999999999999999999BD, -0.0000000001BD, '', X'', DATE '0001-01-01',
        TIMESTAMP '1582-10-15 00:00:00', TIMESTAMP_NTZ '0001-01-01 00:00:00', array(), array(), map(),
        named_struct('a', NULL, 'b', ''), named_struct('list', array(), 'at', NULL))""",
    f"(3{', NULL' * 18})",
)
PARTITIONS = "(n INT, p STRING, day DATE, at TIMESTAMP, d DECIMAL(10,2), b BOOLEAN)"
PARTITIONED_ROWS = (
    "(1, 'a b', DATE '2024-02-29', TIMESTAMP '2024-02-29 01:02:03.000004', 1.50BD, true)",
    "(2, NULL, NULL, NULL, NULL, NULL)",
    "(3, '', DATE '0001-01-01', TIMESTAMP '1969-12-31 23:59:59', -0.01BD, false)",
    "(4, 'x/y=%20:é?#[]{}', DATE '1970-01-01', TIMESTAMP '2024-01-01 00:00:00', 0BD, true)",
    "(5, '__HIVE_DEFAULT_PARTITION__ ', DATE '1970-01-01', TIMESTAMP '2024-01-01 00:00:00', 0BD, true)",
)
MERGE = """MERGE INTO @ t USING (SELECT * FROM VALUES (2, 'two'), (3, 'gone'), (9, 'new') AS s(id, name)) s
    ON t.id = s.id WHEN MATCHED AND s.name = 'gone' THEN DELETE WHEN MATCHED THEN UPDATE SET *
    WHEN NOT MATCHED THEN INSERT * WHEN NOT MATCHED BY SOURCE AND t.id = 4 THEN UPDATE SET name = 'left'"""
FOUR = "INSERT INTO @ VALUES (1, 'a'), (2, 'b'), (3, 'c'), (4, NULL)"
CHANGES = [
    FOUR,
    "UPDATE @ SET name = upper(name) WHERE id < 3",
    "DELETE FROM @ WHERE id = 1",
    MERGE,
]
PLAIN = [create(ID_NAME), *inserts("(1, 'a')", "(2, NULL)")]
MAPPED = "(`First Name` STRING, `a.b` INT, s STRUCT<`x y`: INT, z: ARRAY<STRUCT<q: INT>>>, p STRING)"
MAPPED_STEPS = [
    "INSERT INTO @ VALUES ('Ada', 1, named_struct('x y', 2, 'z', array(named_struct('q', 3))), 'a')",
    "ALTER TABLE @ RENAME COLUMN `First Name` TO `name; of, {it}`",
    "ALTER TABLE @ RENAME COLUMN s.`x y` TO x",
    "ALTER TABLE @ DROP COLUMN `a.b`",
    "ALTER TABLE @ ADD COLUMN `a.b` STRING",
    "INSERT INTO @ VALUES ('Bob', named_struct('x', NULL, 'z', NULL), NULL, 'again')",
]
WIDENED = "(id INT, small TINYINT, exact DECIMAL(5,2), part FLOAT, day DATE, s STRUCT<n: SMALLINT>, p INT)"
WIDENING = [
    *(
        f"ALTER TABLE @ ALTER COLUMN {column} TYPE {kind}"
        for column, kind in (
            ("id", "BIGINT"),
            ("small", "INT"),
            ("exact", "DECIMAL(12,4)"),
            ("part", "DOUBLE"),
            ("day", "TIMESTAMP_NTZ"),
            ("s.n", "INT"),
            ("p", "BIGINT"),
        )
    ),
    """INSERT INTO @ VALUES (5000000000L, 70000, 12345678.1234BD, 0.1D,
        TIMESTAMP_NTZ '2024-02-29 12:00:00', named_struct('n', 70000), 5000000000L)""",
]

TABLES = {
    "types": [create(TYPES), *inserts(*TYPED_ROWS)],
    "no-rows": [create("(id INT NOT NULL, s STRUCT<a: STRING NOT NULL>)")],
    "partitions": [
        create(PARTITIONS, "PARTITIONED BY (p, day, at, d, b)"),
        f"INSERT INTO @ VALUES {', '.join(PARTITIONED_ROWS)}",
        "DELETE FROM @ WHERE p = 'a b'",
    ],
    "deletion-vectors": [
        create(ID_NAME, properties(enableDeletionVectors=True)),
        "INSERT INTO @ SELECT cast(id AS INT), concat('n', id) FROM range(100)",
        "INSERT INTO @ SELECT cast(id AS INT), NULL FROM range(100, 104)",
        "DELETE FROM @ WHERE id % 10 <> 3 AND id < 100",
        "UPDATE @ SET name = 'changed' WHERE id IN (13, 101)",
        "DELETE FROM @ WHERE id >= 100",
    ],
    "column-mapping-by-name": [
        create(MAPPED, "PARTITIONED BY (p)", properties(columnMapping__mode="name")),
        *MAPPED_STEPS,
    ],
    "column-mapping-by-id": [create(MAPPED, properties(columnMapping__mode="id")), *MAPPED_STEPS],
    "checkpoint-classic": [
        create(ID_NAME, properties(checkpointInterval=3)),
        *CHANGES,
        drop_commits(2),
    ],
    "checkpoint-v2": [
        create(ID_NAME, properties(checkpointInterval=3, checkpointPolicy="v2")),
        *CHANGES,
        drop_commits(2),
    ],
    "checkpoint-with-struct-statistics": [
        create(
            "(id INT, name STRING, p DATE)",
            "PARTITIONED BY (p)",
            properties(
                checkpoint__writeStatsAsStruct="true",
                checkpoint__writeStatsAsJson="false",
                checkpointInterval=2,
            ),
        ),
        *inserts("(1, 'a', DATE '2024-02-29')", "(2, NULL, NULL)", "(3, 'c', DATE '1970-01-01')"),
        drop_commits(1),
    ],
    "compacted-log": [*PLAIN, "DELETE FROM @ WHERE id = 1", FOUR, compact(1, 3)],
    "optimized": [*PLAIN, *inserts("(3, 'c')"), "OPTIMIZE @", "DELETE FROM @ WHERE id = 2"],
    "change-data-feed": [create(ID_NAME, properties(enableChangeDataFeed=True)), *CHANGES],
    "change-data-feed-with-vectors": [
        create(ID_NAME, properties(enableChangeDataFeed=True, enableDeletionVectors=True)),
        *CHANGES,
    ],
    "changes-and-restore": [
        create(ID_NAME),
        *CHANGES,
        "RESTORE TABLE @ TO VERSION AS OF 1",
        "INSERT OVERWRITE TABLE @ VALUES (7, 'only')",
        "TRUNCATE TABLE @",
    ],
    "type-widening": [
        create(
            WIDENED,
            "PARTITIONED BY (p)",
            properties(enableTypeWidening=True, feature__timestampNtz="supported"),
        ),
        "INSERT INTO @ VALUES (1, 2Y, 3.25BD, float(0.5), DATE '2024-02-29', named_struct('n', 4S), 5)",
        *WIDENING,
    ],
    "generated-default-identity": [
        create(
            "(id BIGINT, name STRING DEFAULT 'none', at TIMESTAMP, day DATE)",
            properties(feature__allowColumnDefaults="supported"),
        ),
        alter_fields(
            ("generatedColumns", "identityColumns"),
            id={
                "delta.identity.start": 10,
                "delta.identity.step": 5,
                "delta.identity.allowExplicitInsert": True,
            },
            day={"delta.generationExpression": "CAST(at AS DATE)"},
        ),
        "INSERT INTO @ (name, at) VALUES ('a', TIMESTAMP '2024-02-29 23:00:00')",
        "INSERT INTO @ (at) VALUES (NULL)",
        "INSERT INTO @ (id, name) VALUES (1, NULL)",
        "ALTER TABLE @ ADD CONSTRAINT positive CHECK (id > 0)",
    ],
    "writer-features": [
        create(
            ID_NAME,
            "CLUSTER BY (id)",
            properties(enableRowTracking=True, enableInCommitTimestamps=True, appendOnly=True),
        ),
        FOUR,
    ],
    "written-by-delta-rs": [write_by_delta_rs],
    "damaged-gap": [*PLAIN, remove_commit(1)],
    "damaged-commit": [*PLAIN, cut_commit(2)],
    "newer-reader-feature": [
        *PLAIN,
        edit_protocol(
            minReaderVersion=3,
            minWriterVersion=7,
            readerFeatures=["ofTheFuture"],
            writerFeatures=["ofTheFuture"],
        ),
    ],
    "newer-reader-version": [*PLAIN, edit_protocol(minReaderVersion=9)],
}
