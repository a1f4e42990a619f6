"""Random histories written by us, by delta-rs and by Delta on Spark: all three read every version alike."""

import json
import random
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import CommitProperties, DeltaTable, QueryBuilder, write_deltalake
from tests.examples import by_turns
from tests.log.data_files import new_files

from freezeframe.log.delta_log import DeltaLog
from freezeframe.log.format.action_columns import from_adds, to_adds
from freezeframe.log.format.actions import Metadata, Protocol
from freezeframe.log.format.schema import arrow_to_delta
from freezeframe.log.scan import rows
from freezeframe.log.table.row_deletion import mark_rows, removal
from freezeframe.log.table.transaction import Transaction
from freezeframe.log.table.upkeep import write_checkpoint
from freezeframe.storage import LocalStorage

pytestmark = pytest.mark.spark

COLUMNS = pa.schema([("id", pa.string()), ("n", pa.int64()), ("p", pa.string())])
EXTRA = "x"


class History:
    """One table, the rows it should have after each version, and every way to change it."""

    def __init__(self, root, spark, seed):
        self.root = root
        self.spark = spark
        self.random = random.Random(seed)
        self.storage = LocalStorage(root)
        self.log = DeltaLog(self.storage, "t")
        self.path = f"{root}/t"
        self.has_vectors = seed % 2 == 0
        self.model = []
        self.states = []
        self.next_number = 0
        self.did = []

    # What the table should hold

    def fresh_rows(self):
        count = self.random.randint(1, 6)
        found = [
            {"id": f"{n:04}", "n": n, "p": self.random.choice("ab")}
            for n in range(self.next_number, self.next_number + count)
        ]
        self.next_number += count
        return found

    def remember(self):
        """Every version up to now that is not known yet shows the present rows."""
        version = self.log.update().version
        while len(self.states) <= version:
            self.states.append(sorted((row["id"], row["n"], row["p"]) for row in self.model))

    # Ours

    def snapshot(self):
        return self.log.update()

    def files(self, added):
        snapshot = self.snapshot()
        made = new_files(
            pa.Table.from_pylist(added, COLUMNS), snapshot.delta_schema, snapshot.protocol, snapshot.metadata
        )
        for file in made:
            self.storage.put_if_absent(f"t/{file.name}", file.content)
        return [file.add for file in made]

    def commit(self, transaction, actions, operation):
        transaction.commit(actions, operation)

    def create(self):
        configuration = {"delta.checkpointInterval": str(self.random.choice([2, 3, 10]))}
        protocol = Protocol(1, 2)
        if self.has_vectors:
            configuration["delta.enableDeletionVectors"] = "true"
            protocol = Protocol(3, 7, ("deletionVectors",), ("deletionVectors", "appendOnly", "invariants"))
        schema = json.dumps(arrow_to_delta(COLUMNS))
        metadata = Metadata(f"id-{self.root.name}", schema, ("p",), configuration, created_time=1)
        self.commit(Transaction(self.log), [protocol, metadata], "CREATE TABLE")

    def our_append(self):
        added = self.fresh_rows()
        self.model += added
        self.commit(Transaction(self.log), self.files(added), "WRITE")

    def our_overwrite(self):
        begun = Transaction(self.log)
        self.model = self.fresh_rows()
        removes = [removal(add) for add in to_adds(begun.snapshot.files)]
        self.commit(begun, [*removes, *self.files(self.model)], "WRITE")

    def our_change(self):
        """Rows of one residue go, by vector or by rewriting their files, and new ones come, in one commit."""
        residue = self.random.randint(0, 2)
        begun = Transaction(self.log)
        added = self.fresh_rows()
        actions = self.by_vector(begun, residue) if self.has_vectors else self.by_rewrite(begun, residue)
        self.model = [row for row in self.model if row["n"] % 3 != residue] + added
        self.commit(begun, [*actions, *self.files(added)], "MERGE")

    def by_vector(self, begun, residue):
        positions = {}
        for add in to_adds(begun.snapshot.files):
            whole = rows.read(
                rows.part_of(begun.snapshot, from_adds([replace(add, deletion_vector=None)])), ["n"]
            )
            places = [at for at, n in enumerate(whole["n"].to_pylist()) if n % 3 == residue]
            positions[add.path] = places
        deletion = mark_rows(begun.snapshot, positions)
        if deletion.file is not None:
            self.storage.put_if_absent(f"t/{deletion.file.name}", deletion.file.content)
        return list(deletion.actions)

    def by_rewrite(self, begun, residue):
        kept = [row for row in rows.read(begun.snapshot).to_pylist() if row["n"] % 3 != residue]
        kept = [{name: row[name] for name in COLUMNS.names} for row in kept]
        removes = [removal(add) for add in to_adds(begun.snapshot.files)]
        return [*removes, *self.files(kept)]

    def our_checkpoint(self):
        write_checkpoint(self.snapshot())

    def our_new_column(self):
        begun = Transaction(self.log)
        schema = begun.snapshot.delta_schema
        if EXTRA not in [field["name"] for field in schema["fields"]]:
            schema["fields"].append({"name": EXTRA, "type": "integer", "nullable": True, "metadata": {}})
            metadata = replace(begun.snapshot.metadata, schema_string=json.dumps(schema))
            self.commit(begun, [metadata], "ADD COLUMNS")

    def our_checkpoint_in_parts(self):
        snapshot = self.snapshot()
        held = snapshot.count + snapshot.tombstones.num_rows
        write_checkpoint(snapshot, part_actions_max=1 + held // self.random.choice([2, 5, 20]))

    # delta-rs

    def rs_append(self):
        added = self.fresh_rows()
        self.model += added
        write_deltalake(
            self.path,
            pa.Table.from_pylist(added, COLUMNS),
            mode="append",
            schema_mode="merge",
            partition_by=["p"],
        )

    def rs_delete(self):
        residue = self.random.randint(0, 3)
        self.model = [row for row in self.model if row["n"] % 4 != residue]
        DeltaTable(self.path).delete(f"n % 4 = {residue}", commit_properties=CommitProperties())

    def rs_optimize(self):
        DeltaTable(self.path).optimize.compact()

    def rs_checkpoint(self):
        DeltaTable(self.path).create_checkpoint()

    # Delta on Spark

    def sql(self, text):
        return self.spark.sql(text.replace("TABLE_", f"delta.`{self.path}`")).collect()

    def spark_append(self):
        added = self.fresh_rows()
        self.model += added
        values = ", ".join(f"('{row['id']}', {row['n']}, '{row['p']}')" for row in added)
        self.sql(f"INSERT INTO TABLE_ (id, n, p) VALUES {values}")

    def spark_delete(self):
        residue = self.random.randint(0, 4)
        self.model = [row for row in self.model if row["n"] % 5 != residue]
        self.sql(f"DELETE FROM TABLE_ WHERE n % 5 = {residue}")

    def spark_merge(self):
        source = self.fresh_rows()[:1] + [dict(row) for row in self.model[:2]]
        for row in source:
            row["id"] = f"m{row['id']}"
        numbers = {row["n"] for row in source}
        partitions = {row["n"]: row["p"] for row in self.model}
        self.model = [row for row in self.model if row["n"] not in numbers]
        self.model += [{**row, "p": partitions.get(row["n"], row["p"])} for row in source]
        values = ", ".join(f"('{row['id']}', {row['n']}, '{row['p']}')" for row in source)
        self.sql(
            f"MERGE INTO TABLE_ t USING (SELECT * FROM VALUES {values} AS s(id, n, p)) s ON t.n = s.n "
            "WHEN MATCHED THEN UPDATE SET t.id = s.id "
            "WHEN NOT MATCHED THEN INSERT (id, n, p) VALUES (s.id, s.n, s.p)"
        )

    def spark_optimize(self):
        self.sql("OPTIMIZE TABLE_")

    def spark_restore(self):
        version = self.random.randrange(len(self.states))
        self.sql(f"RESTORE TABLE TABLE_ TO VERSION AS OF {version}")
        self.model = [{"id": i, "n": n, "p": p} for i, n, p in self.states[version]]

    def spark_vacuum(self):
        self.sql("VACUUM TABLE_")

    # All of it

    def run(self, length):
        ours = [
            self.our_append,
            self.our_change,
            self.our_overwrite,
            self.our_checkpoint,
        ]
        ours.append(self.our_new_column)
        theirs = [self.spark_append, self.spark_delete, self.spark_merge, self.spark_optimize]
        theirs += [self.spark_restore, self.spark_vacuum]
        if not self.has_vectors:  # delta-rs does not write tables with deletion vectors
            theirs += [self.rs_append, self.rs_delete, self.rs_optimize, self.rs_checkpoint]
        self.create()
        self.remember()
        for turn in range(length):
            self.take(self.random.choice(ours if turn % 2 == 0 else theirs))

    def take(self, step):
        self.did.append(step.__name__)
        step()
        self.remember()

    def run_to(self, version, shares):
        """Steps until there are so many versions; ``shares`` says how often each writer has its turn."""
        writers = {
            "our": [
                *(self.our_append, self.our_append, self.our_change, self.our_overwrite),
                *(self.our_checkpoint, self.our_checkpoint_in_parts),
            ],
            "rs": [self.rs_append, self.rs_delete, self.rs_checkpoint, self.rs_append, self.rs_optimize],
            "spark": [self.spark_append, self.spark_delete, self.spark_merge, self.spark_optimize],
        }
        self.create()
        self.remember()
        while len(self.states) <= version:
            [writer] = self.random.choices(list(shares), list(shares.values()))
            self.take(self.random.choice(writers[writer]))


def as_we_read(history, version):
    found = rows.read(DeltaLog(history.storage, "t").snapshot_at(version=version), ["id", "n", "p"])
    return sorted(zip(*(found[name].to_pylist() for name in ("id", "n", "p")), strict=True))


def as_delta_rs_reads(history, version):
    table = DeltaTable(history.path, version=version)
    found = pa.table(QueryBuilder().register("t", table).execute("SELECT id, n, p FROM t").read_all())
    return sorted(zip(*(found[name].to_pylist() for name in ("id", "n", "p")), strict=True))


def as_spark_reads(history, versions):
    """Every version at once: (version, id, n, p)."""
    query = " UNION ALL ".join(
        f"SELECT {version} AS v, id, n, p FROM TABLE_ VERSION AS OF {version}" for version in versions
    )
    found = {version: [] for version in versions}
    for row in history.sql(query):
        found[row["v"]].append((row["id"], row["n"], row["p"]))
    return [sorted(item) for item in found.values()]


def check(tmp_path, session, seed, length):
    history = History(tmp_path, session, seed)
    history.run(length)
    versions = range(len(history.states))
    assert history.states == [as_we_read(history, version) for version in versions], history.did
    assert history.states == as_spark_reads(history, versions), history.did
    assert history.states == [as_delta_rs_reads(history, version) for version in versions], history.did
    kept = pc.field("n") < 7
    wanted = [row for row in history.states[-1] if row[1] < 7]
    found = rows.read(history.log.update(), ["id", "n", "p"], kept)
    assert sorted(zip(*(found[name].to_pylist() for name in ("id", "n", "p")), strict=True)) == wanted


@pytest.mark.sampled
@pytest.mark.parametrize("seed", by_turns(range(6), 0))
def test_all_three_read_every_version_alike(tmp_path, delta_session, seed):
    """A random history of three steps, half of them ours: every version has the rows it should have."""
    check(tmp_path, delta_session, seed, 3)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("seed", "length"), [*((seed, 3) for seed in range(6, 30)), *((seed, 12) for seed in range(30, 330))]
)
def test_all_three_read_every_version_alike_for_long(tmp_path, delta_session, seed, length):
    """The same for some more of three steps, and for three hundred histories of twelve steps."""
    check(tmp_path, delta_session, seed, length)


# Few turns are Spark's: a commit of its takes a hundred times as long as one of the others.
SHARES = {"our": 735, "rs": 260, "spark": 5}


def check_at_length(tmp_path, session, seed, commits, told):
    """A history of so many versions: we read each tenth, delta-rs and Spark some."""
    history = History(tmp_path, session, seed)
    history.run_to(commits, SHARES)
    states, last = history.states, len(history.states) - 1
    for every, read in ((10, as_we_read), (100, as_delta_rs_reads)):
        versions = [*range(0, last, every), last]
        assert {at: states[at] for at in versions} == {at: read(history, at) for at in versions}
    versions = [*range(0, last, max(1, commits // 20)), last]
    assert [states[at] for at in versions] == as_spark_reads(history, versions)
    for name in ("our", "rs", "spark"):
        told(name, sum(step.startswith(name) for step in history.did))
    log = tmp_path / "t" / "_delta_log"
    for name, pattern in {"checkpoints": "*.checkpoint.parquet", "parts": "*.checkpoint.*.*.parquet"}.items():
        told(name, len(list(log.glob(pattern))))
    told("compacted", len(list(log.glob("*.compacted.json"))))
    told("versions", last)


@pytest.mark.nightly
@pytest.mark.timeout(4 * 3600)
def test_thousands_of_commits_by_three_writers(tmp_path, delta_session, record_property):
    """5,000 commits by us, delta-rs and Spark with mixed checkpoints are read alike by all."""
    check_at_length(tmp_path, delta_session, 1, 5_000, record_property)
