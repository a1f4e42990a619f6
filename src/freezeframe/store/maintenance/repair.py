"""Release, adoption and repair of a stream's table.

A table in custody lists a writer feature of freezeframe, which other writers must refuse. Releasing removes
it and the stream; adopting adds it again. A table that another writer changed nevertheless is repaired: its
commits are adopted if possible, else undone by a new version.
Source: ``docs/reference/tenant-log.md``, "Protection against other writers".
"""

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Literal

import pyarrow as pa

from freezeframe.engine.frames.arrow_columns import may_hold_text, require_valid
from freezeframe.engine.frames.equality import are_distinct
from freezeframe.errors import (
    ConflictError,
    FreezeframeError,
    InvalidOption,
    StorageUnavailable,
    StreamNotFound,
    UnsupportedTable,
)
from freezeframe.identifiers import StreamName
from freezeframe.log import Snapshot
from freezeframe.log.format.actions import Action, CommitInfo
from freezeframe.log.primitives.listing import sort_listing
from freezeframe.log.scan import rows
from freezeframe.log.segments.commit_content import sign_content
from freezeframe.log.table.transaction import require_writable
from freezeframe.store.model.directory import table_folder
from freezeframe.store.model.json_fields import JsonFields
from freezeframe.store.model.receipt import Counts
from freezeframe.store.model.update_options import Author
from freezeframe.store.schema.columns import (
    TENANT_LOG_FEATURE,
    arrow_columns,
    guarded_protocol,
    join_protocols,
    stored_key,
    table_metadata,
)
from freezeframe.store.table.commit import CommitIdentity, commit_info, net_commit
from freezeframe.store.table.reader import read_rows
from freezeframe.store.table.staging import StagingFolder
from freezeframe.store.tenant_log.entry import StreamChange, TenantChange
from freezeframe.store.tenant_log.roll_forward import (
    is_rolled_forward,
    require_no_case_twin,
    require_stream,
    table_log,
    table_snapshot,
)
from freezeframe.store.tenant_log.state import NO_VERSION, TenantState
from freezeframe.store.transaction.changes import Check, TenantContext
from freezeframe.store.transaction.transaction import Transaction
from freezeframe.store.updates.update import ChangeResult

_TIMES = "delta.enableInCommitTimestamps"


@dataclass(frozen=True, slots=True)
class Repair(JsonFields):
    """Result of a repair: ``adopted`` or ``undone`` commits of others, or ``nothing``.

    ``versions`` are the table's foreign versions; ``version`` and ``stream_version`` are the tenant's and the
    stream's versions now.
    """

    stream: str
    action: Literal["nothing", "adopted", "undone"]
    versions: tuple[int, ...]
    version: int
    stream_version: int
    reason: str = ""


def release(context: TenantContext, name: StreamName, who: str = "") -> int:
    """Release a stream's table; see ``Stream.release``."""
    require_stream(context.log.current_state(), name)
    with Transaction(context, Author(who, f"release {name}")) as transaction:
        transaction.apply(name, _without_guard)
        transaction.stage_tenant(TenantChange(released=(str(name),)), "external")
    # Others may write now, and what they do to erase rows leaves these files, of which they do not know.
    with suppress(StorageUnavailable):  # the table is released
        folder = table_log(context.log, name).folder
        for file in sort_listing(context.storage.list_from(folder)).states:
            context.storage.delete(f"{folder}/{file.name}")
    return transaction.done.tenant_version


def adopt(context: TenantContext, name: StreamName, key: tuple[str, ...] | None, who: str = "") -> int:
    """Adopt a table; see ``Tenant.adopt``."""
    state = context.log.current_state()
    if state.base_version(name) != NO_VERSION:
        raise InvalidOption(f"The stream {str(name)!r} already belongs to the tenant.", remedy="Just use it.")
    require_no_case_twin(state.streams, name)
    table = table_log(context.log, name).update()
    if table.version < 0:
        raise StreamNotFound(
            f"There is no Delta table at {table_folder(name)} to adopt.",
            remedy="Check the name, or create the stream by a first update.",
            stream=str(name),
        )
    _require_ours_to_write(table)
    chosen = (stored_key(table.metadata) or ()) if key is None else key
    _require_key(table, chosen)
    _require_text(table)
    with Transaction(context, Author(who, f"adopt {name}")) as transaction:
        content = _adoption_commit(table, chosen, transaction.identity)
        change = StreamChange(name, table.version + 1, content, Counts(), is_external=True)
        transaction.take_over(change, "external", _require_unchanged(name, NO_VERSION))
    return transaction.done.tenant_version


def repair(context: TenantContext, name: StreamName, *, undo: bool = False, who: str = "") -> Repair:
    """Reconcile a table with the tenant log; see ``Stream.repair``."""
    state = context.log.current_state()
    expected = require_stream(state, name)
    table = table_log(context.log, name).update()
    is_replaced = _is_head_replaced(context, state, name, table)
    first = expected if is_replaced else expected + 1
    foreign = tuple(range(first, table.version + 1))
    if not foreign:
        return Repair(str(name), "nothing", (), state.version, expected)
    reason = "asked for" if undo else "they took a version of ours" if is_replaced else _obstacle(table)
    with Transaction(context, Author(who, f"repair {name}")) as transaction:
        if reason:
            info = commit_info("REPAIR", {"undone": f"{first}-{table.version}"}, transaction.identity)
            content = net_commit(table, table_snapshot(context.log, state, name), info, transaction.identity)
        elif TENANT_LOG_FEATURE in (table.protocol.writer_features or ()):
            content = ""  # the table is intact: only the log needs an entry
        else:
            content = _adoption_commit(table, stored_key(table.metadata) or (), transaction.identity)
        version = table.version + (1 if content else 0)
        change = StreamChange(name, version, content, Counts(), is_external=True)
        transaction.take_over(change, "external", _require_unchanged(name, expected))
    done = transaction.done.tenant_version
    return Repair(str(name), "undone" if reason else "adopted", foreign, done, version, reason)


def _without_guard(snapshot: Snapshot, _: StagingFolder, identity: CommitIdentity) -> ChangeResult:
    features = set(snapshot.protocol.writer_features or ()) - {TENANT_LOG_FEATURE}
    protocol = replace(snapshot.protocol, writer_features=tuple(sorted(features)))
    return ChangeResult(_text("RELEASE", (protocol,), identity), Counts())


def _adoption_commit(table: Snapshot, key: tuple[str, ...], identity: CommitIdentity) -> str:
    """Return the commit that adds the writer feature, the key and in-commit timestamps to a table."""
    needed = guarded_protocol(table.delta_schema)
    protocol = join_protocols(_with_named_features(table), needed)
    times: dict[str, str | None] = {}
    if table.metadata.configuration.get(_TIMES) != "true":
        times = {
            _TIMES: "true",
            "delta.inCommitTimestampEnablementVersion": str(table.version + 1),
            "delta.inCommitTimestampEnablementTimestamp": str(identity.timestamp_ms),
        }
    lasting = {"delta.enableExpiredLogCleanup": "false"}
    metadata = table_metadata(
        table.delta_schema, key, table.metadata, identity.timestamp_ms, properties={**lasting, **times}
    )
    return _text("ADOPT", (protocol, metadata), identity)


def _text(operation: str, actions: tuple[Action, ...], identity: CommitIdentity) -> str:
    return sign_content(CommitInfo(commit_info(operation, {}, identity)), actions).decode()


# Features implied by older writer versions, by the version that introduced them (Delta's protocol).
_IMPLIED = (
    (2, "appendOnly"),
    (2, "invariants"),
    (3, "checkConstraints"),
    (4, "changeDataFeed"),
    (4, "generatedColumns"),
    (5, "columnMapping"),
    (6, "identityColumns"),
)
_NAMED_FEATURES = 7


def _with_named_features(table: Snapshot) -> Any:
    """Return the table's protocol with an explicit feature list, which listing any feature requires."""
    protocol = table.protocol
    if protocol.min_writer_version >= _NAMED_FEATURES:
        return protocol
    implied = [name for version, name in _IMPLIED if version <= protocol.min_writer_version]
    return replace(protocol, writer_features=tuple(sorted(implied)))


def _is_head_replaced(context: TenantContext, state: TenantState, name: StreamName, table: Snapshot) -> bool:
    """Return whether a foreign commit has the newest entry's version."""
    for change in state.head.streams if state.head else ():
        if change.stream == name and change.lands:
            return table.version >= change.table_version and not is_rolled_forward(context.log, change)
    return False


def _obstacle(table: Snapshot) -> str:
    """Return the reason against taking over foreign commits; empty if there is none."""
    try:
        _require_ours_to_write(table)
        _require_key(table, stored_key(table.metadata) or ())
        _require_text(table)
    except FreezeframeError as error:
        return str(error)
    return ""


def _require_ours_to_write(table: Snapshot) -> None:
    own = (TENANT_LOG_FEATURE,)
    require_writable(table.protocol, table.metadata, table.delta_schema, table.path, own_features=own)
    append_only = table.metadata.configuration.get("delta.appendOnly") == "true"
    if append_only or table.metadata.partition_columns:
        partitions = list(table.metadata.partition_columns)
        raise UnsupportedTable(
            "The table cannot be a stream.",
            cause="Its rows may only be added." if append_only else f"It has the partitions {partitions}.",
            remedy="Copy its rows into a stream with update(..., override=True).",
        )


def _require_key(table: Snapshot, key: tuple[str, ...]) -> None:
    if not key:
        return
    names = [field["name"] for field in table.delta_schema["fields"]]
    if not set(key) <= set(names):
        raise InvalidOption(
            f"The key {list(key)} is not among the table's columns.",
            cause=f"They are {names}.",
            remedy="Adopt it with a key that it has, or with key=().",
        )
    if not are_distinct(read_rows(table, list(key))):
        raise InvalidOption(
            f"Rows of the table share a key {list(key)}.",
            cause="A stream has one row for a key.",
            remedy="Remove the duplicates first, or adopt it with another key.",
        )


def _require_text(table: Snapshot) -> None:
    """Check that the texts of a foreign table are UTF-8; BadInput if not."""
    names = [field.name for field in arrow_columns(table.delta_schema) if may_hold_text(field.type)]
    if not names:
        return
    for batch in rows.read_batches(table, names):
        for name, column in zip(names, batch.columns, strict=True):
            require_valid(name, pa.chunked_array([column]))


def _require_unchanged(name: StreamName, expected: int) -> Check:
    def check(state: TenantState) -> None:
        if state.base_version(name) != expected:
            raise ConflictError(
                f"The stream {str(name)!r} was changed by another process meanwhile.",
                cause="It was adopted, repaired or updated.",
                remedy="Look at it again; run the call again if it is still needed.",
                stream=str(name),
            )

    return check
