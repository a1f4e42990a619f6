"""Chooses the engine of a key search (Spark or this process) and runs it."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from freezeframe.engine.protocol.table_engine import INLINE_KEYS_MAX, FindTask
from freezeframe.log.schema.column_mapping import every_field
from freezeframe.observation import observe
from freezeframe.storage.concurrency import is_local
from freezeframe.store.keys.key_scan import scan, scan_tasks
from freezeframe.store.table.data_files import live_files
from freezeframe.store.updates.plan import NO_COLUMNS
from freezeframe.store.updates.result import EngineName, UpdateContext


@observe("find")
def search(context: UpdateContext, files: pa.Table, keys: pa.Table) -> tuple[pa.Table, EngineName]:
    """Locate the keys in ``files`` (rows of ``snapshot.files``) as ``TableEngine.find``; and the engine used.

    Raises:
        CorruptData: a stored file is missing or damaged.
    """
    if sum(file.rows for file in live_files(files)) <= context.place.rule.searched_rows_max:
        return scan(context.snapshot, files, keys), "process"
    engine = context.place.engine
    engine.require_shared(context.place.storage.uri(""))
    paths = files["path"].to_pylist()
    if len(keys) <= INLINE_KEYS_MAX:
        return engine.find(find_task(context, paths, keys, len(keys))), "spark"
    written = context.staging.write_keys(keys)
    if is_local(context.place.storage):
        calls = scan_tasks(context.snapshot, files, keys.column_names, context.staging.uri(written))
        found = engine.run(calls)
        if found is not None:
            return pa.concat_tables(found), "spark"
    return engine.find(find_task(context, paths, [written], len(keys))), "spark"


def find_task(
    context: UpdateContext, paths: Sequence[str], keys: pa.Table | Sequence[str], rows: int
) -> FindTask:
    """The search for ``rows`` keys in the stream's files ``paths`` (paths of the log)."""
    plan = context.plan
    return FindTask(
        stored=context.uris(paths),
        stored_schema=_key_columns(plan.stored_schema or NO_COLUMNS, plan.filled_key),
        target_schema=_to_logical_schema(_key_columns(plan.schema, plan.filled_key)),
        keys=keys if isinstance(keys, pa.Table) else tuple(map(context.staging.uri, keys)),
        null_keys=plan.update.kept_null_keys,
        rows=rows,
        size_bytes=context.bytes_of(paths),
    )


def _key_columns(schema: Mapping[str, Any], key: Sequence[str]) -> dict[str, Any]:
    """The key's columns of a Delta schema, in key order."""
    fields = {field["name"]: field for field in schema["fields"]}
    return {"type": "struct", "fields": [fields[name] for name in key]}


def _to_logical_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The columns under logical names at any depth, as in files of keys and of landed rows."""
    own: dict[str, Any] = copy.deepcopy(dict(schema))
    for field in every_field(own):
        field["metadata"] = {}
    return own
