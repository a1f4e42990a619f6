"""What an engine does for a table: its tasks and their results, and engines that delegate to another one.

An engine processes rows and has no notion of tenants, versions or the Delta log: it receives the live
Parquet files and an output folder, and returns counts and file names. ``store`` plans with these values;
``engine.spark`` executes them. This module imports no Spark.

Paths are strings as Hadoop takes them: ``scheme://authority/path`` or an absolute local path, with nothing
percent-encoded. Schemas are Delta schema JSON (a ``struct`` type as a dictionary). A field whose metadata
holds ``delta.columnMapping.physicalName`` is read from and written to the file column of that name.
"""

import contextlib
import itertools
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from freezeframe.errors import EngineUnavailable, FreezeframeError, InvalidOption, StorageNotShared
from freezeframe.storage import Storage

Positions = npt.NDArray[np.int64]
"""Positions of rows in a file, counted from 0, ascending."""

NOTHING: Mapping[str, Positions] = MappingProxyType({})

Calls = Sequence[Callable[[], Any]]
"""Functions of importable modules with their arguments (``functools.partial``)."""

UNIQUE = "unique"
"""Below the folder that a frame was landed in: its rows once more, one for each key."""

NullKeyRule = Literal["error", "match", "drop"]


@dataclass(frozen=True, slots=True)
class WindowTask:
    """Parameters of the search for a window's rows, and of the check that a batch is inside."""

    stored: tuple[str, ...]
    """Parquet files, of which no two have the same name in different folders."""
    stored_schema: Mapping[str, Any]
    batch: tuple[str, ...]
    batch_schema: Mapping[str, Any]
    target_schema: Mapping[str, Any]
    """The columns of the predicate, in their types."""
    where: str
    batch_types: Mapping[str, Any] | None = None
    """``batch_schema`` with ``void`` for the parts of columns that have no value, whatever type files say."""

    def __post_init__(self) -> None:
        _require_names(self.stored)


@dataclass(frozen=True, slots=True)
class WrittenBatch:
    """A frame that was written as Parquet."""

    schema: Mapping[str, Any]
    """Delta schema JSON of the files, every column nullable."""
    files: tuple[str, ...]
    """Names of the Parquet files below the folder."""
    rows: int
    duplicates: int = 0
    """Rows left out: exact repetitions, and with ``order_by`` the earlier rows of a key."""
    null_keys: int = 0
    """Rows left out because their key has a null (``null_keys="drop"``)."""
    table: pa.Table | None = None
    """The rows: few of them in place of files where ``WriteTask.takes_table`` allows it, all of them (and
    their keys unchecked) where no column has a type, else those of the files, in types that files hold, where
    they have at most ``WriteTask.read_bytes_max`` and were read to be checked."""


@dataclass(frozen=True, slots=True)
class WriteTask:
    """Parameters of writing a frame as Parquet: the folder, and the key of a row."""

    output: str
    """The folder to write into: does not exist yet."""
    key: tuple[str, ...] = ()
    order_by: tuple[str, ...] = ()
    """Columns by which rows of one key arrive: the last wins. Without it, rows of one key that differ
    are an error, because a Spark frame has no order of its own."""
    null_keys: NullKeyRule = "error"
    drop_duplicates: bool = True
    """False: a repeated key is an error even if the rows are equal."""
    columns: Mapping[str, str] = field(default_factory=dict)
    """Physical names of the columns that are written under another name than their own."""
    takes_table: bool = False
    """Whether few rows may come as a table, in the types of the schema, and nothing be written."""
    read_bytes_max: int = 0
    """Up to so many bytes in memory the rows that were written may be read and checked by this process."""
    within: str = ""
    """An existing folder above ``output``: the frame's session is asked whether it sees it."""


class TableEngine(ABC):
    """Rows in, rows out. One engine serves many streams and may be used from several threads.

    What a class does not define itself is done by the engine behind it.

    Every method may raise EngineUnavailable, StorageFull, StorageNotShared, JavaNotFound or JavaUnsupported;
    after any error the output folder may hold rubbish, which belongs to the caller's attempt.
    """

    @property
    def session(self) -> Any:
        """The Spark session of this process, classic or Connect; one is made where there is none."""
        return self._behind().session

    def run(self, calls: Calls) -> list[Any] | None:
        """Return the results of the calls, each computed as a task of Spark's Python workers.

        A call is a function of an importable module with its arguments (``functools.partial``). None: it is
        not known whether the workers have this package and see this machine's files; nothing was run.
        """
        return self._behind().run(calls)

    def storage_of_tasks(self, storage: Storage) -> Storage | None:
        """Return a storage as tasks of ``run`` open it; None if its files, or its keys, are not for them."""
        return self._behind().storage_of_tasks(storage)

    def rows_inside(self, task: WindowTask) -> tuple[Positions, ...]:
        """Return, for each file of ``stored``, the positions of its rows, deleted or not, inside a window.

        Raises OutsideWindow for a row of the batch that is not, InvalidOption for what is no predicate.
        """
        return self._behind().rows_inside(task)

    def digests(self, files: Sequence[str]) -> dict[str, str]:
        """Return the SHA-256 of files of one folder by name, in hexadecimal, as Spark's tasks read them."""
        return self._behind().digests(files)

    def write_batch(self, frame: Any, task: WriteTask) -> WrittenBatch:
        """Write a Spark frame as Parquet in the frame's own session, computing it once.

        Rows that are equal collapse if there is a key.
        """
        return self._behind().write_batch(frame, task)

    def numbered_rows(self, frame: Any, name: str) -> Any | None:
        """Add a column ``name`` of growing numbers to a Spark frame whose rows are in the order of files.

        None if their order is unknown.
        """
        return self._behind().numbered_rows(frame, name)

    def read(
        self,
        files: tuple[str, ...],
        schema: Mapping[str, Any],
        deleted: Mapping[str, Positions] = NOTHING,
        *,
        like: Any = None,
    ) -> Any:
        """Return a lazy Spark frame over Parquet files, with the columns and types of ``schema``.

        ``deleted`` names, by file, the positions of rows that are left out. It belongs to the session of
        the frame ``like``, classic or Connect, or to ``session``.
        """
        return self._behind().read(files, schema, deleted, like=like)

    def require_shared(self, folder: str) -> None:
        """Check that engine and process see the same files in an existing folder; cheap once it held."""
        self._behind().require_shared(folder)

    @abstractmethod
    def close(self) -> None:
        """Release the engine; a server started for this process alone stops. Idempotent."""

    def _behind(self) -> "TableEngine":
        """Return the engine that does what this one does not define."""
        raise NotImplementedError


def _require_names(files: Sequence[str]) -> None:
    names = [path.rpartition("/")[2] for path in files]
    _require(len(set(names)) == len(names), "Two of the files to be searched have the same name.")


def _require(holds: bool, problem: str) -> None:  # noqa: FBT001 - a claim and the sentence for its failure
    if not holds:
        raise InvalidOption(problem)


def require_found(names: Sequence[str], rows: int, expected: int) -> None:
    """Check that the files, which have so many rows, are all that Spark wrote.

    Spark writes a file even for no rows: where there is none, Spark wrote into another folder.
    """
    if rows == expected and names:
        return
    raise StorageNotShared(
        f"Spark wrote {expected} rows, and {rows} of them are in the {len(names)} files that are here.",
        cause="Spark, or one of its executors, writes to another disk than this process reads under"
        " the same path; or another process removed a file. Nothing was committed.",
        remedy="Use a folder that all of them see under the same path, or an object store.",
        written=expected,
        found=rows,
    )


# Loading Spark's Python side costs a second and a server costs more, so neither happens before an
# update really has rows to move.


class DeferredEngine(TableEngine):
    """Creates the engine on first use by ``make``, once."""

    def __init__(self, make: Callable[[], TableEngine]) -> None:
        self._make = make
        self._engine: TableEngine | None = None
        self._lock = threading.Lock()

    def close(self) -> None:
        """Close the engine if it was created; a later call creates a new one."""
        with self._lock:
            engine, self._engine = self._engine, None
        if engine is not None:
            engine.close()

    def _behind(self) -> TableEngine:
        with self._lock:
            if self._engine is None:
                self._engine = self._make()
            return self._engine


@dataclass(slots=True, eq=False)
class _Question:
    """Calls that wait for those of other threads; and the answer or error."""

    calls: Calls
    is_over: bool = False
    answer: list[Any] | None = None
    failure: EngineUnavailable | None = None


class QueryBatcher(TableEngine):
    """Collects the calls of ``parties`` threads into one query; each thread is a ``party`` meanwhile."""

    def __init__(self, engine: TableEngine, parties: int) -> None:
        self._engine = engine
        self._parties = parties
        self._waiting: list[_Question] = []
        self._changed = threading.Condition()
        self._sharing = threading.Lock()

    @contextlib.contextmanager
    def party(self) -> Iterator[None]:
        """Count as a party during the block; afterwards the others no longer wait for this thread."""
        try:
            yield
        finally:
            with self._changed:
                self._parties -= 1
                self._changed.notify_all()

    def run(self, calls: Calls) -> list[Any] | None:
        """See ``TableEngine.run``; waits until every party waits here, or has left.

        If nobody else asked, or the common query failed, such as over a damaged file, each asks alone. Once
        all parties have left, as when an update is repeated, nobody waits.
        """
        question = _Question(calls)
        with self._changed:
            self._waiting.append(question)
            self._changed.notify_all()
            self._changed.wait_for(lambda: question.is_over or self._is_complete())
            # The first thread to wake asks for all.
            together = [] if question.is_over else self._waiting
            if together:
                self._waiting = []
        if len(together) > 1:
            self._ask(together)
        if question.failure is not None:
            raise question.failure
        return self._engine.run(calls) if question.answer is None else question.answer

    def require_shared(self, folder: str) -> None:
        """See ``TableEngine.require_shared``; of concurrent calls only the first one queries Spark."""
        with self._sharing:
            super().require_shared(folder)

    def close(self) -> None:
        """Do nothing: the engine belongs to its owner."""

    def _behind(self) -> TableEngine:
        return self._engine

    def _is_complete(self) -> bool:
        return len(self._waiting) >= max(self._parties, 1)

    def _ask(self, questions: Sequence[_Question]) -> None:
        try:
            found = iter(self._engine.run([call for item in questions for call in item.calls]) or ())
            for question in questions:
                question.answer = list(itertools.islice(found, len(question.calls))) or None
        except EngineUnavailable as error:
            for question in questions:
                question.failure = error
        except FreezeframeError:
            pass  # each asks alone
        finally:
            with self._changed:
                for question in questions:
                    question.is_over = True
                self._changed.notify_all()
