"""Names of deltalake, Delta and Polars, and what to write for each on a ``DeltaLog``."""

from abc import ABCMeta
from typing import Any, NoReturn

_DELTALAKE = "DeltaLog does not write. For a table of your own: deltalake.DeltaTable(path).{}."
_SPARK = "DeltaLog does not write. For a table of your own: Delta's DeltaTable.forPath(spark, path).{}."
_STREAM = " For a stream: {}."
_UPDATE = _STREAM.format("tenant.stream(name).update(frame)")
_GC = _STREAM.format("tenant.gc()")
_RESTORE = _STREAM.format("tenant.stream(name).restore(version)")
_AT = "Use log.snapshot_at(version=3), or log.snapshot_at(timestamp=moment)."
_OPEN = "Use DeltaLog.open(path)."
_IS_TABLE = "Use DeltaLog.is_table(path)."
_CREATE = "DeltaLog creates no table: use deltalake.write_deltalake(path, rows), or Spark." + _UPDATE
_SPARK_FRAME = (
    "Use spark.read.format('delta').load(log.path); of a stream tenant.stream(name).read(as_='spark')."
)
_CHANGES = "Use log.changes(start_version, end_version)."

INSTEAD = {
    # What deltalake's DeltaTable has.
    "alter": _DELTALAKE.format("alter"),
    "cleanup_metadata": "Use log.maintenance.clean_up().",
    "compact_logs": "Use log.maintenance.checkpoint().",
    "count": "Use log.snapshot.to_dataset().count_rows(); log.snapshot.count is the number of files.",
    "create": _CREATE,
    "create_checkpoint": "Use log.maintenance.checkpoint().",
    "create_write_transaction": "Use log.start_transaction(), which commits given actions.",
    "delete": _DELTALAKE.format("delete(predicate)")
    + _STREAM.format("tenant.stream(name).update(rows, mode='full'), or tenant.erase(name, keys)"),
    "deletion_vectors": "Use log.snapshot.files, which has the column deletion_vector.",
    "file_uris": "Use log.snapshot.file_uris().",
    "files": "Use log.snapshot.files.",
    "generate": _DELTALAKE.format("generate()"),
    "get_add_actions": "Use log.snapshot.files.",
    "is_deltatable": _IS_TABLE,
    "load_as_version": _AT,
    "load_version": _AT,
    "load_with_datetime": _AT,
    "load_cdf": _CHANGES,
    "merge": _DELTALAKE.format("merge(...)") + _UPDATE,
    "metadata": "Use log.snapshot.metadata.",
    "optimize": _DELTALAKE.format("optimize") + " A stream's updates keep its files in order.",
    "partitions": "Use log.snapshot.partitions().",
    "protocol": "Use log.snapshot.protocol.",
    "repair": _DELTALAKE.format("repair()") + _STREAM.format("tenant.stream(name).repair()"),
    "restore": _DELTALAKE.format("restore(version)") + _RESTORE,
    "table_config": "Use log.snapshot.metadata.configuration.",
    "table_uri": "Use log.path.",
    "to_pyarrow_dataset": "Use log.to_dataset().",
    "to_pyarrow_table": "Use log.to_arrow().",
    "transaction_version": "Use log.snapshot.transactions.",
    "update_incremental": "Use log.update(), which returns the newest snapshot.",
    "vacuum": _DELTALAKE.format("vacuum()") + _GC,
    # What Delta's DeltaTable has, in Python and Scala.
    "addFeatureSupport": _SPARK.format("addFeatureSupport(feature)"),
    "alias": _SPARK_FRAME,
    "clone": _SPARK.format("clone(target)") + _STREAM.format("store.clone_tenant(id, new_id)"),
    "convertToDelta": _CREATE,
    "createIfNotExists": _CREATE,
    "createOrReplace": _CREATE,
    "detail": "Use log.snapshot: its metadata, protocol, size, count and path.",
    "forName": _OPEN,
    "forPath": _OPEN,
    "isDeltaTable": _IS_TABLE,
    "restoreToTimestamp": _SPARK.format("restoreToTimestamp(moment)") + _RESTORE,
    "restoreToVersion": _SPARK.format("restoreToVersion(version)") + _RESTORE,
    "toDF": _SPARK_FRAME,
    "unsafeVolatileSnapshot": "Use log.snapshot.",
    "upgradeTableProtocol": _SPARK.format("upgradeTableProtocol(reader, writer)"),
    # What frames of Polars, pandas and Spark have.
    "collect": "Use log.to_arrow().",
    "columns": "Use log.schema.names.",
    "head": "Use next(log.snapshot.to_batches()).",
    "scan": "Use log.to_dataset().",
    "show": "Use log.to_pandas().",
    "to_batches": "Use log.snapshot.to_batches().",
    "to_polars": "Use polars.from_arrow(log.to_arrow()), or polars.scan_pyarrow_dataset(log.to_dataset()).",
    "to_spark": _SPARK_FRAME,
}


class KnowsNamesElsewhere(ABCMeta):
    """Answers a name of another library, on the class and on its objects, by what to write here."""

    def __getattr__(cls, name: str) -> Any:
        """Raise ``AttributeError`` for a name that the class lacks."""
        refuse_name(cls.__name__, name)


class CalledVersion(int):
    """A number that says, when it is called as other libraries' method of its name, that it is a property."""

    def __call__(self) -> NoReturn:
        """Raise ``TypeError``."""
        raise TypeError("DeltaLog.version is a property: write log.version, without parentheses.")


def refuse_name(owner: str, name: str) -> NoReturn:
    """Raise ``AttributeError`` for a name that ``owner`` lacks; it says what to write."""
    remedy = INSTEAD.get(name)
    raise AttributeError(f"{owner} has no {name!r}." + (f" {remedy}" if remedy else ""), name=name)
