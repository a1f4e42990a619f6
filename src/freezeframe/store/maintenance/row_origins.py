"""Where each cell of a row comes from: the version that gave it its value, its job, and the job's input.

Nothing is stored for it: versions and kept inputs are looked through when it is asked. A value that the input
has in the row of the same key, in the column of the same name, comes from that file; any other one does not.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa

from freezeframe.engine.frames.equality import cells_differ
from freezeframe.errors import FreezeframeError, NotFound, SetupError, TryAgain
from freezeframe.identifiers import StreamName
from freezeframe.store.blobs.kept_inputs import KeptFile, KeptInputs, kept_files, open_inputs
from freezeframe.store.diff.row_changes import DELETE, INSERT, in_one_type
from freezeframe.store.maintenance.row_history import RowVersion, row_history
from freezeframe.store.schema.columns import DELETED
from freezeframe.store.tenant_log.history import HistoryEntry
from freezeframe.store.tenant_log.state import TenantState
from freezeframe.store.transaction.changes import TenantContext
from freezeframe.store.transaction.scope import Scope

_PAGE = 50

Source = Literal["file", "script", "no_row", "unset", "not_kept", "unreadable", "no_job", "hidden", "unknown"]
"""Where a value comes from: a file, or the script, whose input has another value there or no row of the key;
a null without a column in the input is ``unset``. Or why that is not known: the input is not kept, or cannot
be read; no job made the version; the caller may not see the input; the version is no longer kept."""

_SAID: Mapping[Source, str] = {
    "no_row": "computed by the script: no row of its input has the key",
    "unset": "no value, and no such column in the job's input",
    "not_kept": "the job's input is not kept",
    "no_job": "no job made the version",
    "hidden": "the job's input is for those who may read jobs",
    "unknown": "the version is no longer kept",
}


@dataclass(frozen=True, slots=True)
class InputRow:
    """The last row of a job's input that has a key, in the order in which readers of folders read.

    ``file`` is its name in the job's folder; ``row`` and ``line`` count from 1, and a file of Parquet has no
    lines. So many rows have the key: ``count``.
    """

    file: str
    row: int
    line: int | None
    count: int
    cells: pa.Table

    def __str__(self) -> str:
        """The place, for people."""
        place = f"{self.file}, " + (f"row {self.row}" if self.line is None else f"line {self.line}")
        return place if self.count == 1 else f"{place}, the last of {self.count} with the key"


InputReader = Callable[
    [KeptInputs, str, Mapping[str, KeptFile], StreamName, pa.Schema, pa.Table], InputRow | None
]
"""Finds the row of a key in the files of a job (by name, in a folder of what is kept) for a stream of these
types; None: no row has it. Raises what readers of files raise."""


def _no_reader(*_: Any) -> InputRow | None:
    raise SetupError("No reader of input files is loaded.", remedy="Import freezeframe.script.tenants.")


INPUT_READERS: list[InputReader] = [_no_reader]
"""Who reads input files: a package above this one, which puts itself here; the first one is asked."""


@dataclass(frozen=True, slots=True)
class CellOrigin:
    """A cell, and where it comes from. ``entry`` is the version that gave it its value, if it is kept.

    ``script_sha256`` is the hash of the script of that version's job, empty where it was not recorded. Of a
    ``source`` in a file, and of a value that the script computed from a row of one, that row is at ``line``
    (of Parquet: ``row``) of ``file``. ``text`` says the source in words.
    """

    value: Any
    entry: HistoryEntry | None
    script_sha256: str
    source: Source
    text: str
    file: str | None = None
    line: int | None = None
    row: int | None = None


@dataclass(frozen=True, slots=True)
class RowOrigin:
    """Where each cell of a row comes from, by column; no cells: there is no such row."""

    stream: str
    key: Mapping[str, Any]
    cells: Mapping[str, CellOrigin]


def row_origin(
    scope: Scope, name: StreamName, keys: pa.Table, until: TenantState, *, shows_inputs: bool = True
) -> RowOrigin:
    """Return where each cell of the row comes from whose key is the row of ``keys``, seen from a state.

    A cell without a value, or of the key, comes from the version that inserted the row, unless a later one
    took its value away. No older version is read than the answer needs, and the input of each of these jobs
    once; without ``shows_inputs`` none.
    """
    found, row, key = dict[str, RowVersion](), dict[str, Any](), dict[str, Any]()
    following: int | None = until.version
    while following is not None and not (row and found.keys() >= row.keys()):
        page = row_history(scope, name, keys, scope.state(following) if row else until, _PAGE)
        row, key, following = row or {**(page.row or {})}, {**page.key}, page.following
        if not row:
            break
        for version in page.versions:
            # A row that is there and was deleted was flagged as such.
            given = {INSERT: [*row], DELETE: [DELETED]}.get(version.change, version.changed)
            for column in given:
                found.setdefault(column, version)
    inputs = _Inputs(scope.context, name, keys) if shows_inputs else None
    cells = {column: _origin(column, value, found.get(column), inputs) for column, value in row.items()}
    return RowOrigin(str(name), key, cells)


@dataclass(frozen=True, slots=True)
class _Looked:
    """What the input of a version's job says: its row of the key, or why there is none."""

    source: Source
    script_sha256: str = ""
    row: InputRow | None = None
    text: str = ""


class _Inputs:
    """The kept inputs of the jobs that changed a row, each looked through once."""

    def __init__(self, context: TenantContext, stream: StreamName, keys: pa.Table) -> None:
        self._stream, self._keys = stream, keys
        self._kept = open_inputs(context.storage, context.settings, context.log.current_state().erased)
        self._names: list[str] | None = None
        self._looked: dict[int, _Looked] = {}

    def of(self, version: RowVersion) -> _Looked:
        if version.version not in self._looked:
            self._looked[version.version] = self._look(version)
        return self._looked[version.version]

    def _look(self, version: RowVersion) -> _Looked:
        job_id, script = version.entry.job_id, version.entry.script_sha256
        if job_id is None or version.entry.kind != "commit":
            return _Looked("no_job")
        self._names = self._kept.names() if self._names is None else self._names
        try:
            folder, record = self._kept.find(job_id, self._names)
            files = kept_files(record)
            if record["script"] in files:
                script = script or files[record["script"]].sha256
            types = version.change_of_row.after.schema
            row = INPUT_READERS[0](self._kept, folder, files, self._stream, types, self._keys)
        except NotFound:
            return _Looked("not_kept", script)
        except TryAgain:
            raise
        except FreezeframeError as error:
            try:
                self._kept.find(job_id)
            except NotFound:  # it was deleted meanwhile
                return _Looked("not_kept", script)
            return _Looked("unreadable", script, text=f"the job's input cannot be read: {error.problem}")
        return _Looked("no_row" if row is None else "file", script, row)


def _origin(column: str, value: Any, version: RowVersion | None, inputs: _Inputs | None) -> CellOrigin:
    if version is None:
        return CellOrigin(value, None, "", "unknown", _SAID["unknown"])
    entry = version.entry
    looked = _Looked("hidden", entry.script_sha256) if inputs is None else inputs.of(version)
    row = looked.row
    if row is None:
        return CellOrigin(
            value, entry, looked.script_sha256, looked.source, looked.text or _SAID[looked.source]
        )
    after, source, text = version.change_of_row.after, looked.source, str(row)
    computed = f"computed by the script; its input has the row in {row}"
    if column not in after.column_names or column not in row.cells.column_names:
        source, text = ("unset", _SAID["unset"]) if value is None else ("script", computed)
    elif cells_differ(*in_one_type(row.cells[column], after[column]))[0].as_py():
        source, text = "script", computed
    return CellOrigin(value, entry, looked.script_sha256, source, text, row.file, row.line, row.row)
