"""A tap's whole output, received before anything is written, as one commit of a tenant."""

import json
import tempfile
import uuid
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, BinaryIO, cast

import pyarrow as pa

from freezeframe.errors import InvalidOption, TooManyDeletions, UnreadableInput
from freezeframe.identifiers import FilePath, StreamName, TenantId
from freezeframe.script import tenants
from freezeframe.script.formats.json_columns import JsonNumber, json_text
from freezeframe.settings import load_settings
from freezeframe.singer.config import TargetConfig
from freezeframe.singer.messages import (
    ActivateVersionMessage,
    Message,
    RecordMessage,
    SchemaMessage,
    StateMessage,
    read_messages,
    unreadable,
)
from freezeframe.singer.record_spool import DELETED_AT, BatchLimits, RecordSpool
from freezeframe.store.model.receipt import JobReceipt
from freezeframe.store.model.update_options import UpdateOptions
from freezeframe.store.tenant import Job, Tenant


@dataclass(slots=True)
class Received:
    """Received output: rows by stream, table versions at the source, and the last STATE as JSON."""

    spools: dict[str, RecordSpool] = field(default_factory=dict)
    versions: dict[str, int] = field(default_factory=dict)
    """The newest version of each stream's records, for streams that have versions."""
    activated: dict[str, int] = field(default_factory=dict)
    state: str | None = None


RUN_KEY = ("_sdc_run_id", "_sdc_row")
"""The key of rows that have none: the run that brought them, and their number in it, from 1."""
_RUN_PROPERTIES = {"_sdc_run_id": {"type": "string"}, "_sdc_row": {"type": "integer"}}


def receive(
    messages: Iterable[Message], file: BinaryIO, limits: BatchLimits, run_id: str | None = None
) -> Received:
    """Take in all messages; rows that are more than ``limits`` go to ``file``.

    With ``run_id`` the rows of streams without a key are given ``RUN_KEY``.
    """
    received = Received()
    for message in messages:
        if isinstance(message, StateMessage):
            received.state = json_text(message.value)
        elif isinstance(message, SchemaMessage):
            if run_id is not None and not message.key:
                properties = {**message.properties, **_RUN_PROPERTIES}
                message = replace(message, properties=properties, key=RUN_KEY)  # noqa: PLW2901 - the same one
            known = received.spools.get(message.stream)
            if known is None:
                received.spools[message.stream] = RecordSpool(file, message, limits)
            else:
                known.declare(message)
        else:
            _take(received, message, run_id)
    return received


def _take(received: Received, message: RecordMessage | ActivateVersionMessage, run_id: str | None) -> None:
    spool = received.spools.get(message.stream)
    if spool is None:
        cause = f"No SCHEMA of the stream {message.stream!r} came before it."
        raise unreadable(message.line, cause, stream=message.stream)
    if message.version is not None:
        received.versions[message.stream] = message.version
    if isinstance(message, RecordMessage):
        if spool.key == RUN_KEY:
            row = JsonNumber(spool.count + 1)
            message = replace(message, record={**message.record, "_sdc_run_id": run_id, "_sdc_row": row})
        spool.add(message)
    else:
        received.activated[message.stream] = message.version


VERSIONS_FILE = "singer/table-versions.json"
"""The tenant's file that keeps which version of its source each stream is of."""


def load(lines: Iterable[bytes], config: TargetConfig) -> tuple[JobReceipt, str | None]:
    """Commit a tap's whole output as one version of the tenant; its receipt, and the last STATE as JSON."""
    settings = load_settings(root=config.root, environment=config.environment)
    TenantId(config.tenant), FilePath(config.state_file)
    store = tenants.open(settings.root, settings.environment, engine=config.engine)
    with tempfile.TemporaryFile() as file:
        limits = BatchLimits(config.batch_size_rows, config.batch_size_bytes)
        is_appended = config.keyless == "append" and config.load_method == "upsert"
        run_id = (config.run_id or uuid.uuid4().hex) if is_appended else None
        received = receive(read_messages(lines), cast("Any", file), limits, run_id)
        names = Counter(StreamName(spool.stream) for spool in received.spools.values())
        for name, count in names.items():
            if count > 1:
                sources = sorted(source for source, spool in received.spools.items() if spool.stream == name)
                raise InvalidOption(
                    f"The streams {sources} would both be stored as {name!r}.",
                    cause='Characters that a name must not contain (< > : " / \\ | ? *) are stored as _.',
                    remedy="Give one of them another name in the tap or its catalog.",
                    streams=sources,
                )
        tenant = store.tenant(config.tenant, create=config.create_tenant)
        return commit(tenant, received, config), received.state


def commit(tenant: Tenant, received: Received, config: TargetConfig) -> JobReceipt:
    """Bring what was received into the tenant's streams and files, as one job; errors as of ``load``."""
    with tenant.job(config.run_id, message="target-freezeframe") as job:
        loaded = _loaded_versions(job)
        upserts: dict[str, RecordSpool] = {}
        for name, spool in received.spools.items():
            version = received.activated.get(name)
            is_new_version = version is not None and loaded.get(name) != version
            if config.load_method == "overwrite":
                _overwrite(job, spool, None, config)
            elif is_new_version:
                _replace(job, spool, version, config)
            elif spool.key:
                upserts[spool.stream] = spool
            elif spool.has_rows():
                raise InvalidOption(
                    f"The stream {name!r} has no key.",
                    cause="Its SCHEMA has no key_properties, so new rows cannot be distinguished from "
                    "changed ones.",
                    remedy="Set table-key-properties in the tap's catalog; or set keyless to append, or "
                    "load_method to overwrite, if each run brings all rows.",
                    stream=name,
                )
        rows = {name: _rows(job, spool) for name, spool in upserts.items()}
        if rows:
            keys = {name: spool.key for name, spool in upserts.items()}
            job.update(rows, keys, nulls=config.nulls, on_drift=config.on_drift)
        for spool in received.spools.values() if config.hard_delete else ():
            _remove_deleted(job, spool)
        if received.versions:
            versions = {**loaded, **received.versions}
            _write(job, VERSIONS_FILE, json.dumps(versions, ensure_ascii=False, sort_keys=True))
        if received.state is not None:
            _write(job, config.state_file, received.state)
    return job.receipt


def _replace(job: Job, spool: RecordSpool, version: int | None, config: TargetConfig) -> None:
    """Make the records of the activated version all that the stream has."""
    if not spool.key:
        _overwrite(job, spool, version, config)
        return
    deletes = {None: None, True: "remove", False: "flag"}[config.hard_delete]
    options = {"mode": "full", "deletes": deletes, "max_delete_ratio": config.max_delete_ratio}
    _update(job, spool, version, **options, nulls=config.nulls, on_drift=config.on_drift)


def _remove_deleted(job: Job, spool: RecordSpool) -> None:
    """Remove the rows of which a record said that they are deleted at the source."""
    if spool.has_deleted:
        stream = job.stream(spool.stream)
        stream.update(stream.schema.empty_table(), replace_where=f"{DELETED_AT} IS NOT NULL")


def _overwrite(job: Job, spool: RecordSpool, version: int | None, config: TargetConfig) -> None:
    """Make the rows that came the whole content of the stream; none at all must be allowed."""
    stream = job.stream(spool.stream)
    is_filled = stream.stream_version >= 0 and stream.count() > 0
    if is_filled and not spool.has_rows(version) and config.max_delete_ratio != 1:
        raise TooManyDeletions(
            f"The run brought no row of the stream {spool.stream!r}, which would become empty.",
            cause="Its rows are to replace the whole content.",
            remedy="If that is meant, set max_delete_ratio to 1; nothing was written.",
            stream=spool.stream,
        )
    _update(job, spool, version, override=True)


def _update(job: Job, spool: RecordSpool, version: int | None, **options: Any) -> None:
    rows = _rows(job, spool, version)
    job.stream(spool.stream).update(rows, spool.key, **cast("UpdateOptions", options))


def _rows(job: Job, spool: RecordSpool, version: int | None = None) -> pa.RecordBatchReader:
    stream = job.stream(spool.stream)
    return spool.reader(stream.schema if stream.stream_version >= 0 else None, version)


def _loaded_versions(job: Job) -> dict[str, int]:
    """Return the version of its source that each stream is of."""
    found = job.files.read_json(VERSIONS_FILE) if job.files.exists(VERSIONS_FILE) else {}
    if not isinstance(found, dict):
        raise UnreadableInput(
            f"The tenant's file {VERSIONS_FILE} is not valid.",
            cause="It must be a JSON object of numbers by stream.",
            remedy="Restore an earlier version of it, or delete it before a run that brings all rows.",
            path=VERSIONS_FILE,
        )
    return found


def _write(job: Job, path: str, line: str) -> None:
    """Keep a file of one line; one that has it already is not changed."""
    text = line + "\n"
    if not (job.files.exists(path) and job.files.read(path) == text.encode()):
        job.files.write_text(path, text)
