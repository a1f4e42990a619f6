"""What is compared: every peer creates a table from a Parquet file, updates it, and hands its rows over.

All update cell by cell (a null in the batch keeps the stored cell) unless said otherwise. A peer
is used by one process and makes its imports there, so that its memory is its own.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.parquet as pq
from delta_merge import merge_statement, spark_session
from update_data import KEY, Rule, to_pandas

STREAM = "Lead"
LAKE = "1.5.5"
"""The version of DuckDB and of the extension (`tools/setup.sh ducklake`)."""
DUCKLAKE = Path(__file__).parents[1] / ".cache" / "ducklake"


def ducklake(folder: Path) -> Any:
    """Return a connection to DuckDB whose default catalog is a DuckLake in the folder.

    The extension's wheels are of DuckDB 1.5, so `tools/setup.sh ducklake` keeps both in a folder of
    their own (`Peer.packages`).
    """
    import duckdb

    (extension,) = DUCKLAKE.rglob("ducklake.duckdb_extension")
    connection = duckdb.connect()
    connection.execute("SET enable_progress_bar = false")
    connection.execute(f"LOAD '{extension}'")
    connection.execute(f"ATTACH 'ducklake:{folder}/catalog.ducklake' AS lake (DATA_PATH '{folder}/data')")
    connection.execute("USE lake")
    return connection


class Peer:
    """The frame of a peer; ``folder`` is its own, and empty at first."""

    rule: ClassVar[Rule] = "coalesce"
    has_jvm: ClassVar[bool] = False
    """Created and measured in one process; others are created in another, whose memory does not count."""
    patience_seconds: ClassVar[float] = 600
    """A turn that takes longer is given up."""
    packages: ClassVar[Path | None] = None
    """A folder of packages that the peer's process imports before those of the environment."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def create(self, stored: Path) -> None:
        """Make the table."""
        raise NotImplementedError

    def open(self) -> None:
        """Whatever a process does once; not timed."""

    def frame(self, batch: pa.Table) -> Any:
        """The batch as the peer's callers have it; not timed."""
        return batch

    def update(self, frame: Any) -> None:
        """The one call that is timed."""
        raise NotImplementedError

    def rows(self) -> pa.Table | str:
        """All rows, or the pattern of Parquet files that hold them."""
        raise NotImplementedError


class Ours(Peer):
    """``Stream.update``: a receipt comes back."""

    def create(self, stored: Path, stream: str = STREAM) -> None:
        self.open(stream)
        self.stream.update(pq.read_table(stored), key=[KEY])

    def open(self, stream: str = STREAM) -> None:
        from freezeframe import open_tenant

        self.stream = open_tenant(self.folder / "snapshots").stream(stream)

    def update(self, frame: Any) -> None:
        self.receipt = self.stream.update(frame, key=[KEY])

    def rows(self) -> pa.Table:
        return self.stream.read(as_="arrow")

    # Questions about several tables and versions (versions.py); each returns a number of rows.

    def create_many(self, stored: Path, tables: list[str]) -> int:
        self.open()
        return self.update_many(stored, tables)

    def update_many(self, batch: Path, tables: list[str]) -> int:
        from freezeframe import open_tenant

        self.tenant = open_tenant(self.folder / "snapshots")
        frame = pq.read_table(batch)
        with self.tenant.job() as job:
            for table in tables:
                job.stream(table).update(frame, key=[KEY])
        return len(frame) * len(tables)

    def read_before(self, table: str, versions: int) -> int:
        return len(self.tenant.stream(table).read(as_="arrow", version=self.tenant.version - versions))

    def changes_since(self, table: str, versions: int) -> int:
        return len(self.tenant.stream(table).changes(self.tenant.version - versions, as_="arrow"))


class FromPandas(Peer):
    """A peer whose callers have a pandas frame, as most have."""

    def frame(self, batch: pa.Table) -> Any:
        return to_pandas(batch)


class OursFromPandas(FromPandas, Ours):
    """The same with a pandas frame."""


class OursInProcess(Ours):
    """The same with the setting ``engine=auto``: keys are looked for without Spark."""

    def open(self, stream: str = STREAM) -> None:
        os.environ["FREEZEFRAME_ENGINE"] = "auto"
        super().open(stream)


class OursWithFrame(FromPandas, Ours):
    """``update_snapshot``: pandas goes in, the whole merged frame comes back."""

    dtype_backend: ClassVar[str] = "numpy"

    def update(self, frame: Any) -> None:
        from freezeframe import update_snapshot

        self.merged = None  # a script's last frame is gone when its next job begins
        self.merged = update_snapshot(
            self.folder / "snapshots", STREAM, KEY, frame, dtype_backend=self.dtype_backend
        )


class OursWithArrowFrame(OursWithFrame):
    """The same, the columns of the frame being Arrow's."""

    dtype_backend = "pyarrow"


class Merge(Peer):
    """Delta's own ``MERGE`` on Spark, tuned for one machine; neither fsync nor a log above the table."""

    has_jvm = True
    with_vectors: ClassVar[bool] = False

    def create(self, stored: Path) -> None:
        self.open()
        writer = self.spark.read.parquet(str(stored)).write.format("delta")
        writer.option("delta.enableDeletionVectors", str(self.with_vectors).lower()).save(self._path)

    def open(self) -> None:
        self.spark = spark_session()

    def update(self, frame: Any) -> None:
        self.spark.createDataFrame(frame).createOrReplaceTempView("batch")
        self.spark.sql(merge_statement(self._path, frame.column_names, KEY))

    def rows(self) -> str:
        out = self.folder / "rows"
        self.spark.read.format("delta").load(self._path).write.mode("overwrite").parquet(str(out))
        return f"{out}/*.parquet"

    @property
    def _path(self) -> str:
        return str(self.folder / "table")


class MergeWithVectors(Merge):
    """The same with deletion vectors: only changed rows are written again."""

    with_vectors = True


class DeltaRs(Peer):
    """delta-rs, in this process; neither fsync nor a log above the table."""

    def create(self, stored: Path) -> None:
        from deltalake import write_deltalake

        write_deltalake(self._path, pq.read_table(stored))

    def update(self, frame: Any) -> None:
        from deltalake import DeltaTable

        names = [name for name in frame.column_names if name != KEY]
        merger = DeltaTable(self._path).merge(
            frame,
            predicate=f't."{KEY}" = s."{KEY}"',
            source_alias="s",
            target_alias="t",
            streamed_exec=True,
        )
        merger.when_matched_update(
            {f'"{n}"': f'coalesce(s."{n}", t."{n}")' for n in names}
        ).when_not_matched_insert({f'"{n}"': f's."{n}"' for n in frame.column_names}).execute()

    def rows(self) -> pa.Table:
        from deltalake import DeltaTable

        return DeltaTable(self._path).to_pyarrow_table()

    @property
    def _path(self) -> str:
        return str(self.folder / "table")


class DeltaRsFromPandas(FromPandas, DeltaRs):
    """The same with a pandas frame."""

    def update(self, frame: Any) -> None:
        super().update(pa.Table.from_pandas(frame, preserve_index=False))


class DuckDb(Peer):
    """A DuckDB database file: ``MERGE INTO`` and a checkpoint, so that the file itself holds the rows."""

    def create(self, stored: Path) -> None:
        self.open()
        self.connection.execute(f"CREATE TABLE lead AS SELECT * FROM read_parquet('{stored}')")
        self.connection.execute("CHECKPOINT")
        self.connection.close()

    def open(self) -> None:
        import duckdb

        self.connection = duckdb.connect(self.folder / "lead.duckdb")
        self.connection.execute("SET enable_progress_bar = false")

    def update(self, frame: Any) -> None:
        self.merge("lead", frame)
        self.connection.execute("CHECKPOINT")

    def merge(self, table: str, frame: Any) -> None:
        """Update a table cell by cell."""
        names = list(getattr(frame, "column_names", frame.columns))
        values = ", ".join(f'"{n}" = coalesce(s."{n}", t."{n}")' for n in names if n != KEY)
        columns = ", ".join(f'"{n}"' for n in names)
        given = ", ".join(f's."{n}"' for n in names)
        self.connection.register("batch", frame)
        self.connection.execute(
            f'MERGE INTO {table} t USING batch s ON t."{KEY}" = s."{KEY}" '
            f"WHEN MATCHED THEN UPDATE SET {values} "
            f"WHEN NOT MATCHED THEN INSERT ({columns}) VALUES ({given})"
        )
        self.connection.unregister("batch")

    def rows(self) -> pa.Table:
        return self.connection.sql("SELECT * FROM lead").to_arrow_table()


class DuckLake(DuckDb):
    """Tables of DuckLake, Parquet files beside a catalog in a DuckDB file: ``MERGE INTO`` is its commit."""

    packages = DUCKLAKE

    def create(self, stored: Path) -> None:
        self.open()
        self.connection.execute(f"CREATE TABLE lead AS SELECT * FROM read_parquet('{stored}')")
        self.connection.close()

    def open(self) -> None:
        self.connection = ducklake(self.folder)

    def update(self, frame: Any) -> None:
        self.merge("lead", frame)

    def create_many(self, stored: Path, tables: list[str]) -> int:
        self.open()
        self.connection.execute("BEGIN")
        for table in tables:
            self.connection.execute(f"CREATE TABLE {table} AS SELECT * FROM read_parquet('{stored}')")
        self.connection.execute("COMMIT")
        return 0

    def update_many(self, batch: Path, tables: list[str]) -> int:
        frame = pq.read_table(batch)
        self.connection.execute("BEGIN")
        for table in tables:
            self.merge(table, frame)
        self.connection.execute("COMMIT")
        return len(frame) * len(tables)

    def read_before(self, table: str, versions: int) -> int:
        then = self._version() - versions
        return len(self.connection.sql(f"SELECT * FROM {table} AT (VERSION => {then})").to_arrow_table())

    def changes_since(self, table: str, versions: int) -> int:
        now = self._version()
        changes = f"SELECT * FROM lake.table_changes('{table}', {now - versions + 1}, {now})"
        return len(self.connection.sql(changes).to_arrow_table())

    def _version(self) -> int:
        return self.connection.sql("SELECT max(snapshot_id) FROM lake.snapshots()").fetchone()[0]


class DuckLakeFromPandas(FromPandas, DuckLake):
    """The same from a pandas frame."""


class DuckLakeWithFrame(DuckLakeFromPandas):
    """The same, and the whole merged table as a pandas frame."""

    def update(self, frame: Any) -> None:
        self.merged = None
        super().update(frame)
        self.merged = self.connection.sql("SELECT * FROM lead").df()


class PyIceberg(Peer):
    """pyiceberg's ``upsert``, which replaces rows whole; a join with the stored ones fills nulls first."""

    patience_seconds = 60

    def create(self, stored: Path) -> None:
        self.open()
        rows = pq.read_table(stored)
        self.catalog.create_namespace("bench")
        self.catalog.create_table("bench.lead", schema=rows.schema).append(rows)

    def open(self) -> None:
        from pyiceberg.catalog.sql import SqlCatalog

        where = self.folder.absolute()
        self.catalog = SqlCatalog("bench", uri=f"sqlite:///{where}/catalog.db", warehouse=f"file://{where}")

    def update(self, frame: Any) -> None:
        table = self.catalog.load_table("bench.lead")
        stored = table.scan().to_arrow()
        table.upsert(coalesced(frame, stored), join_cols=[KEY])

    def rows(self) -> pa.Table:
        return self.catalog.load_table("bench.lead").scan().to_arrow()


def coalesced(batch: pa.Table, stored: pa.Table) -> pa.Table:
    """The batch with the stored cells where it has none, in the stored columns and types."""
    import pyarrow.compute as pc

    at = pc.index_in(batch[KEY], stored[KEY])
    old = stored.take(at)
    columns = [
        pc.coalesce(batch[name].cast(old[name].type), old[name]) if name in batch.column_names else old[name]
        for name in stored.column_names
    ]
    return pa.table(columns, schema=stored.schema)


class PandasCsv(FromPandas):
    """The usual script: read the CSV, ``combine_first``, write the CSV; no types, no lock, no fsync."""

    def create(self, stored: Path) -> None:
        to_pandas(pq.read_table(stored)).to_csv(self._path, index=False)

    def update(self, frame: Any) -> None:
        import pandas as pd

        self.merged = None
        latest = frame.drop_duplicates(KEY, keep="last").set_index(KEY)
        merged = latest.combine_first(pd.read_csv(self._path).set_index(KEY)).reset_index()
        merged.to_csv(self._path, index=False)
        self.merged = merged

    def rows(self) -> pa.Table:
        import pandas as pd

        rows = pd.read_csv(self._path, dtype={"Visits": "Int64", "Employees": "Int64", "IsActive": "boolean"})
        rows["ModifiedAt"] = pd.to_datetime(rows["ModifiedAt"], utc=True, format="ISO8601")
        return pa.Table.from_pandas(rows, preserve_index=False)

    @property
    def _path(self) -> Path:
        return self.folder / f"{STREAM}.snapshot.csv"


class Gluestick(FromPandas):
    """gluestick's ``snapshot_records`` on Parquet: rows are replaced whole, so nulls overwrite; no fsync."""

    rule = "replace"

    def create(self, stored: Path) -> None:
        self.update(self.frame(pq.read_table(stored)))

    def update(self, frame: Any) -> None:
        import gluestick

        self.merged = None
        self.merged = gluestick.snapshot_records(frame, STREAM, str(self.folder), pk=KEY)

    def rows(self) -> pa.Table:
        return pq.read_table(self.folder / f"{STREAM}.snapshot.parquet")


RECEIPT_PEERS: dict[str, type[Peer]] = {
    "freezeframe": Ours,
    "freezeframe_pandas": OursFromPandas,
    "freezeframe_auto": OursInProcess,
    "delta_rs": DeltaRs,
    "delta_rs_pandas": DeltaRsFromPandas,
    "duckdb": DuckDb,
    "ducklake": DuckLake,
    "ducklake_pandas": DuckLakeFromPandas,
    "merge_with_vectors": MergeWithVectors,
    "merge": Merge,
    "pyiceberg": PyIceberg,
}
FRAME_PEERS: dict[str, type[Peer]] = {
    "freezeframe_frame": OursWithFrame,
    "freezeframe_arrow_frame": OursWithArrowFrame,
    "ducklake_frame": DuckLakeWithFrame,
    "gluestick": Gluestick,
    "pandas_csv": PandasCsv,
}
PEERS = {**RECEIPT_PEERS, **FRAME_PEERS}
