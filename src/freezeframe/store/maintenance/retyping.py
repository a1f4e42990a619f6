"""Changes a column's type where every stored value converts without loss.

All rows are rewritten in a single commit, batch by batch and without Spark, including the history of a stream
(``history="scd2"``). After a conflicting commit the values are checked again.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from freezeframe import progress
from freezeframe.engine.frames.arrow_columns import rows_without
from freezeframe.errors import FreezeframeError, InvalidOption, MissingColumn, SchemaDriftError
from freezeframe.identifiers import StreamName
from freezeframe.log import Snapshot
from freezeframe.log.format.schema import arrow_to_delta, arrow_type
from freezeframe.log.scan import rows
from freezeframe.store.model.json_fields import JsonFields
from freezeframe.store.model.receipt import Counts
from freezeframe.store.model.update_options import Author
from freezeframe.store.schema.columns import (
    arrow_columns,
    delta_columns,
    read_system_columns,
    stored_key,
    written_columns,
)
from freezeframe.store.schema.schema_evolution import is_undecided, retype_field
from freezeframe.store.schema.type_compatibility import comparison_type, exact_cast
from freezeframe.store.table.commit import CommitIdentity, TableChange, commit_text
from freezeframe.store.table.staging import StagingFolder
from freezeframe.store.tenant_log.roll_forward import require_stream, stream_base
from freezeframe.store.transaction.changes import TenantContext
from freezeframe.store.transaction.transaction import Transaction
from freezeframe.store.updates.update import ChangeResult

_SHOWN_MAX = 3
_ALIASES = {
    "bigint": "long",
    "bool": "boolean",
    "int": "integer",
    "smallint": "short",
    "text": "string",
    "tinyint": "byte",
}
_NAMES = (
    "string, long, integer, short, byte, double, float, decimal(P,S), boolean, date, timestamp, "
    "timestamp_ntz or binary"
)


@dataclass(frozen=True, slots=True)
class Retyping(JsonFields):
    """Result of changing a column's type, or its preview; types by Delta's names.

    ``tenant_version`` is the tenant's version after the call; ``committed`` is false for a preview, and
    where the column had the type already.
    """

    stream: str
    column: str
    type_before: str
    type_after: str
    rows: int
    tenant_version: int
    committed: bool


def retype(
    context: TenantContext,
    name: StreamName,
    column: str,
    kind: str,
    *,
    dry_run: bool = False,
    message: str = "",
    who: str = "",
) -> Retyping:
    """Change the type of a column; see ``Stream.retype``."""
    step = _Retype(name, column, _parse_type(kind))
    state = context.log.current_state()
    require_stream(state, name)
    base = stream_base(context.log, state, name)
    field = step.field(base)
    preview = Retyping(
        str(name), column, _name_of(field.type), _name_of(step.kind), 0, state.version, committed=False
    )
    if dry_run:
        return replace(preview, rows=sum(map(len, step.rows(base, field))))
    author = Author(who, message).for_action(f"retype {name}.{column} as {preview.type_after}")
    with Transaction(context, author) as transaction:
        transaction.apply(name, step)
    done = transaction.done
    # Counted in what the commit was made of: nothing is read after a commit, so nothing can fail there.
    return replace(
        preview,
        rows=rows.count(transaction.table(name).view()),
        tenant_version=done.tenant_version,
        committed=done.committed,
    )


@dataclass(frozen=True, slots=True)
class _Retype:
    stream: StreamName
    column: str
    kind: pa.DataType

    def __call__(self, snapshot: Snapshot, staging: StagingFolder, identity: CommitIdentity) -> ChangeResult:
        field = self.field(snapshot)
        if field.type == self.kind and not is_undecided(field):
            return ChangeResult("", Counts())
        columns = pa.schema(
            [
                retype_field(column, self.kind) if column.name == self.column else column
                for column in arrow_columns(snapshot.delta_schema)
            ]
        )
        schema = delta_columns(columns, snapshot.delta_schema)
        key = stored_key(snapshot.metadata) or ()
        staging.prepare()
        paths: tuple[str, ...] = ()
        if not is_undecided(field):
            paths = staging.write(self.rows(snapshot, field), written_columns(schema), key)
        rewrite = TableChange(
            "CHANGE COLUMN",
            key,
            schema,
            staging.seal(paths, written_columns(schema)),
            replaces_files=not is_undecided(field),
            counts=Counts(),
            plan=f"retype: {self.column} from {_name_of(field.type)} to {_name_of(self.kind)}",
        )
        content = commit_text(snapshot, rewrite, identity)
        return ChangeResult(content, Counts(), rewrite.new_paths)

    def field(self, snapshot: Snapshot) -> pa.Field:
        """Return the stored column's field."""
        columns = arrow_columns(snapshot.delta_schema)
        MissingColumn.refuse(
            [self.column], columns.names, f"The stream {str(self.stream)!r} has no column {{}}."
        )
        field = columns.field(self.column)
        if self.column in read_system_columns(snapshot.metadata).names or pa.types.is_nested(field.type):
            raise InvalidOption(
                f"The type of the column {self.column!r} cannot be changed.",
                cause="It is nested, or belongs to freezeframe.",
                remedy="Update the stream with rows of the wanted type: structs take the fields of both.",
                column=self.column,
            )
        is_key = self.column in (stored_key(snapshot.metadata) or ())
        if is_key and not is_undecided(field) and comparison_type(field.type, self.kind) is None:
            raise InvalidOption(
                f"The key column {self.column!r} cannot become {_name_of(self.kind)}.",
                cause=f"No {_name_of(field.type)} equals such a value, so all keys would change.",
                remedy="Choose a wider type, or replace the stream's content with override=True.",
                column=self.column,
            )
        return field

    def rows(self, snapshot: Snapshot, field: pa.Field) -> Iterator[pa.Table]:
        """Return all rows of the stream with the column in the new type."""
        if is_undecided(field):
            return
        names = [column["name"] for column in written_columns(snapshot.delta_schema)["fields"]]
        index = names.index(self.column)
        progress.begin("rewriting", "rows")
        for batch in rows.read_batches(snapshot, names):
            progress.advance(len(batch))
            table = pa.Table.from_batches([batch])
            cast = exact_cast(table[self.column], self.kind)
            if cast is None:
                raise self._misfit_error(table, field, stored_key(snapshot.metadata) or ())
            yield table.set_column(index, self.column, cast)

    def _misfit_error(self, table: pa.Table, field: pa.Field, key: Sequence[str]) -> FreezeframeError:
        found = [
            {
                **{name: repr(table[name][row].as_py()) for name in key if name in table.column_names},
                "value": repr(table[self.column][row].as_py()),
            }
            for row in rows_without(
                table[self.column], lambda column: exact_cast(column, self.kind) is not None, _SHOWN_MAX
            )
        ]
        shown = "; ".join(", ".join(map(" ".join, item.items())) for item in found)
        return SchemaDriftError(
            f"{self.stream}.{self.column} cannot become {_name_of(self.kind)} without loss.",
            cause=f"Some stored values would change: {shown}.",
            remedy="Correct these rows by an update first, or choose a type that holds them.",
            stream=str(self.stream),
            column=self.column,
            stored=_name_of(field.type),
            wanted=_name_of(self.kind),
            rows=found,
        )


def _parse_type(name: str) -> pa.DataType:
    try:
        kind = arrow_type(_ALIASES.get(name.strip().lower(), name.strip().lower()))
    except FreezeframeError:
        kind = pa.null()
    if pa.types.is_null(kind) or pa.types.is_nested(kind):
        raise InvalidOption(
            f"{name!r} is not the type of a column.",
            cause=f"The types are {_NAMES}.",
            remedy="Name one of them.",
            type=name,
        )
    return kind


def _name_of(kind: pa.DataType) -> str:
    return str(arrow_to_delta(pa.schema([("c", kind)]))["fields"][0]["type"])
