"""The Spark engine: searches, calls of workers, landed batches and reads, in lazily opened sessions."""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from freezeframe.engine.configuration import cores, session_options
from freezeframe.engine.connect import require_shared, requiring_sight
from freezeframe.engine.daemon import state_folder
from freezeframe.engine.plans.columns import struct_type, written_fields
from freezeframe.engine.plans.parquet_files import digests, live_rows, local_folder
from freezeframe.engine.plans.python_tasks import answers, numbered_rows
from freezeframe.engine.plans.window import rows_inside
from freezeframe.engine.plans.write_batch import (
    batch_schema,
    collect_small,
    read_back,
    rows_to_write,
    settle,
    write_frame,
)
from freezeframe.engine.process_session import (
    SparkLink,
    is_of_this_machine,
    process_session,
    run_on_session,
)
from freezeframe.engine.protocol import (
    NOTHING,
    Positions,
    TableEngine,
    WindowTask,
    WriteTask,
    WrittenBatch,
)
from freezeframe.engine.spark_errors import spark_errors
from freezeframe.settings import Settings
from freezeframe.storage import Storage
from freezeframe.storage.base import sendable
from freezeframe.storage.read_ahead import is_local
from freezeframe.version import __version__


class SparkEngine(TableEngine):
    """`TableEngine` on Spark Connect. Nothing is started or connected before the first use.

    Work goes through the session that all processes of the server share. Frames that leave the engine belong
    to the session of the process, or of the caller's frame. A server of ours that died between two calls is
    started again, once per call; every step is written so that doing it again has the same effect.
    """

    def __init__(self, settings: Settings, progress: Callable[[str], None] | None = None) -> None:
        self._settings = settings
        self._tell = progress or (lambda _text: None)
        self._work = SparkLink(settings, self._tell)
        self._shared: set[Path] = set()

    @property
    def session(self) -> Any:
        """The session of this process; see `TableEngine.session`."""
        return process_session(self._settings, self._tell)

    def write_batch(self, frame: Any, task: WriteTask) -> WrittenBatch:
        """Write a Spark frame as Parquet; see `TableEngine.write_batch`."""
        self._require_seen(frame.sparkSession, task.within)
        with spark_errors():
            schema = batch_schema(frame.schema, task)
            if not written_fields(schema):
                count = frame.count()
                nothing = pa.table({name: pa.nulls(count) for name in schema.names})
                return WrittenBatch(json.loads(schema.json()), (), count, table=nothing)
            small = collect_small(frame, schema) if task.takes_table else None
            rows = None if small is None else rows_to_write(small, task, schema)
            if rows is not None:
                return WrittenBatch(json.loads(schema.json()), (), len(rows), table=rows)
            written = write_frame(frame, task, schema, self._storage_options(task.output))
        here = read_back(task, written.rows) if written.is_as_stored else None
        if here is not None:
            return WrittenBatch(json.loads(schema.json()), here[0], written.rows, table=here[1])
        return self._work.run(lambda session: settle(session, task, written))

    def numbered_rows(self, frame: Any, name: str) -> Any | None:
        """Return a frame with its rows numbered in the order of files; see `TableEngine.numbered_rows`."""
        with spark_errors():
            return numbered_rows(frame, name)

    def _require_seen(self, session: Any, folder: str) -> None:
        """Check that the session of a caller's frame sees the folder, where it is none of our server."""
        path = local_folder(folder) if folder else None
        if path is None or self._work.connection().is_of_same_server(session):
            return
        with spark_errors():
            require_shared(session, path, self._memory())

    def _storage_options(self, path: str) -> Mapping[str, str]:
        """Storage options for a session that another process configured."""
        return {} if local_folder(path) else session_options(self._settings, self._settings.spark)

    def run(self, calls: Sequence[Callable[[], Any]]) -> list[Any] | None:
        """Return the calls' results, each computed by a Python worker; see `TableEngine.run`."""
        if self._workers()[0] != __version__:
            return None
        return self._work.run(lambda session: answers(session, calls, cores()))

    def storage_of_tasks(self, storage: Storage) -> Storage | None:
        """Return the storage for Python workers; see `TableEngine.storage_of_tasks`.

        What another user's workers write in a directory cannot be read here, and a server elsewhere has keys
        of its own for a bucket.
        """
        found = sendable(storage)
        if found is None:
            return None
        is_theirs = (
            self._workers()[1] == os.getuid() if is_local(found) else self._work.connection().takes_keys()
        )
        return found if is_theirs else None

    def _workers(self) -> tuple[str, int]:
        return self._work.run(lambda _: self._work.connection().workers())

    def rows_inside(self, task: WindowTask) -> tuple[Positions, ...]:
        """Return the rows inside a window by file; see `TableEngine.rows_inside`."""
        return self._work.run(lambda session: rows_inside(session, task))

    def digests(self, files: Sequence[str]) -> dict[str, str]:
        """Return the SHA-256 of files; see `TableEngine.digests`."""
        return self._work.run(lambda session: digests(session, files))

    def read(
        self,
        files: tuple[str, ...],
        schema: Mapping[str, Any],
        deleted: Mapping[str, Positions] = NOTHING,
        *,
        like: Any = None,
    ) -> Any:
        """Return a lazy Spark frame over Parquet files; see `TableEngine.read`."""
        kinds = struct_type(schema)
        options = self._storage_options(files[0]) if files else {}
        if like is not None:
            with spark_errors():
                return live_rows(like.sparkSession, files, kinds, deleted, options)

        def read(session: Any) -> Any:
            if is_of_this_machine(session):
                return live_rows(session, files, kinds, deleted, options)
            with requiring_sight(files):
                frame = live_rows(session, files, kinds, deleted, options)
                frame.schema  # noqa: B018 - asks Spark whether the files are there
                return frame

        return run_on_session(self._settings, self._tell, read)

    def require_shared(self, folder: str) -> None:
        """Check that Spark and this process see the same files; see `TableEngine.require_shared`."""
        path = local_folder(folder)
        if path is None or path in self._shared:
            return
        if not self._work.connection().sees_our_files():
            self._work.run(lambda session: require_shared(session, path, self._memory()))
        self._shared.add(path)

    def _memory(self) -> Path:
        return state_folder(self._settings.state_dir, "shared")

    def close(self) -> None:
        """Release the server; the process's session stays. Idempotent: a later call connects again."""
        self._work.close()
