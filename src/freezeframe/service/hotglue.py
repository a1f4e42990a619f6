"""A tenant's snapshots under the names that hotglue's clients know: files, and streams as snapshot files.

A stream appears as ``{stream}.snapshot.csv`` and can be read and written as ``.snapshot.parquet`` too.
Writing it replaces its content and keeps the file, so that scripts that open it and clients that read it
again have what was written. ``snapshot_files.file_with_content`` says which of the two has the content.
"""

import io
from collections.abc import Callable, Mapping
from typing import IO, Any

from freezeframe.errors import FileNotFound, TooLarge, UnreadableRequest
from freezeframe.script.adoption import FoundSnapshotFile
from freezeframe.service.exports import export
from freezeframe.service.files import FOLDER_MARK, delete_file, rewound, write_file
from freezeframe.service.rows import streams
from freezeframe.service.rows.streams import Moment, received_file
from freezeframe.store import Job, Stream, Tenant
from freezeframe.store.blobs.blob_store import from_json_bytes
from freezeframe.store.model.directory import snapshot_paths
from freezeframe.store.model.update_options import Author
from freezeframe.store.snapshot_files import adopted_by, file_of_rows, file_sha256, file_with_content
from freezeframe.store.table.written_rows import FileKind
from freezeframe.store.tenant_log.state import TenantState
from freezeframe.store.transaction.changes import TenantContext
from freezeframe.store.transaction.conditions import Subject, file_subject, stream_subject

CONFIG_FILE = "tenant-config.json"
MAPPING, METADATA = "hotglue_mapping", "hotglue_metadata"


def names(tenant: Tenant, folder: str = "") -> list[str]:
    """Return the names of all files (below a folder, if one is given) and of the streams as files."""
    within = folder.strip("/")
    found = [item.path for item in tenant.files.list(within, recursive=True)]
    shown = [path for path in found if path.rpartition("/")[2] != FOLDER_MARK]
    if not within:
        for name in tenant.streams():
            there = [path for path in snapshot_paths(name) if path in shown]
            shown = [path for path in shown if path not in there]
            shown.append(there[0] if there else streams.snapshot_name(name, "csv"))
    return sorted(shown)


def read(tenant: Tenant, name: str, bytes_max: int, note_unsealing: Callable[[str], None]) -> bytes:
    """Return the bytes of a file, or of a stream as a file; call ``note_unsealing`` before unsealing one."""
    found = _stream_of(tenant, name)
    if found is None:
        return _read_file(tenant, name, note_unsealing, bytes_max)
    stream, kind = tenant.stream(found[0]), found[1]
    path = file_with_content(stream, tenant.files)
    if path is not None:
        whole = _read_file(tenant, path, note_unsealing, bytes_max)
        return whole if path == name else _converted(stream, path, whole, kind)
    content = bytearray()
    for chunk in export(stream, kind, Moment()):
        content += chunk
        _require_size(name, len(content), bytes_max)
    return bytes(content)


def write(
    tenant: Tenant,
    name: str,
    content: IO[bytes],
    author: Author,
    override_bytes_max: int,
) -> None:
    """Keep the bytes as a file, or make the rows in them a stream's whole content."""
    named = streams.stream_of(name)
    if named is None:
        write_file(tenant, name, lambda: rewound(content), author)
        return
    stream, kind = named
    size = content.seek(0, io.SEEK_END)
    content.seek(0)
    if size > override_bytes_max:
        raise TooLarge(
            f"{name} has {size:,} bytes; {override_bytes_max:,} is the most that can be replaced at once.",
            cause="That is the limit within a request (service_override_bytes_max); a job imports more.",
            remedy=f"Send it to POST /api/v1/environments/…/tenants/…/streams/{stream}/import?mode=full.",
        )
    streams.override(tenant, stream, kind, content, author, keeps_file=True)


def delete(tenant: Tenant, name: str, author: Author) -> None:
    """Remove a file, or the stream that a file's name means; the past of both stays."""
    found = _stream_of(tenant, name)
    if found is None:
        delete_file(tenant, name, author)
    else:
        tenant.drop_stream(found[0], message=author.message, who=author.who)


def config(tenant: Tenant, note_unsealing: Callable[[str], None]) -> dict[str, Any]:
    """Return the tenant's configuration; without a file an empty one."""
    try:
        value = from_json_bytes(_read_file(tenant, CONFIG_FILE, note_unsealing), CONFIG_FILE)
    except FileNotFound:
        return {}
    return value if isinstance(value, dict) else {}


def set_config(tenant: Tenant, value: Mapping[str, Any], author: Author) -> dict[str, Any]:
    """Replace the tenant's whole configuration by a value."""
    with tenant.job(who=author.who, message=author.message) as job:
        job.files.write_json(CONFIG_FILE, dict(value))
    return dict(value)


def patch_config(
    tenant: Tenant, patch: Mapping[str, Any], author: Author, note_unsealing: Callable[[str], None]
) -> dict[str, Any]:
    """Change the configuration by a merge patch (RFC 7396); the new one."""
    with tenant.job(who=author.who, message=author.message) as job:
        _note_sealed_config(job, note_unsealing)
        value: dict[str, Any] = job.files.patch_json(CONFIG_FILE, dict(patch))
    return value


def member(tenant: Tenant, name: str, note_unsealing: Callable[[str], None]) -> dict[str, Any]:
    """Return an object of the configuration: ``{"mapping": {flow: ...}}``, or ``{"metadata": {...}}``."""
    value = config(tenant, note_unsealing).get(name)
    return value if isinstance(value, dict) else {}


def _note_sealed_config(job: Job, note_unsealing: Callable[[str], None]) -> None:
    """Note that the configuration is opened, in the version that the job reads."""
    if job.files.exists(CONFIG_FILE) and job.files.entry(CONFIG_FILE).sealed:
        note_unsealing(CONFIG_FILE)


def flow_mappings(mapping: Any, flow: Any) -> dict[str, Any]:
    """Return the mappings of a request by flow, or by connector for version 1.0.

    Only a mapping whose first level is ``SOURCE/TARGET`` is that of one flow, which must be named.
    """
    if isinstance(mapping, dict):
        if mapping and not any("/" in name for name in mapping):
            return mapping
        if isinstance(flow, str) and flow:
            return {flow: mapping}
    raise UnreadableRequest(
        "The body holds no mapping of a flow.",
        cause="A mapping by SOURCE/TARGET alone does not say whose it is." if mapping else "",
        remedy='Send {"config": {"mapping": {FLOW: {"SOURCE/TARGET": {…}}}}}, or name the flow: '
        '{"config": {"mapping": {"SOURCE/TARGET": {…}}}, "flow": FLOW}.',
    )


def merge_mapping(
    tenant: Tenant, mapping: Mapping[str, Any], author: Author, note_unsealing: Callable[[str], None]
) -> dict[str, Any]:
    """Merge mappings by flow into the configuration's; readers take one form of them, so forms do not mix."""

    def change(held: Any) -> dict[str, Any]:
        member = held if isinstance(held, dict) else {}
        before = member.get("mapping")
        if not isinstance(before, dict) or before.get("version") != mapping.get("version"):
            before = {}
        return {**member, "mapping": {**before, **mapping}}

    return _change_member(tenant, MAPPING, change, author, note_unsealing)


def set_metadata(
    tenant: Tenant, value: Mapping[str, Any], author: Author, note_unsealing: Callable[[str], None]
) -> dict[str, Any]:
    """Replace the tenant's metadata in the configuration."""

    def change(held: Any) -> dict[str, Any]:
        return {**(held if isinstance(held, dict) else {}), "metadata": dict(value)}

    return _change_member(tenant, METADATA, change, author, note_unsealing)


def _change_member(
    tenant: Tenant,
    name: str,
    change: Callable[[Any], dict[str, Any]],
    author: Author,
    note_unsealing: Callable[[str], None],
) -> dict[str, Any]:
    """Change one member of the configuration, and leave all others; return it."""
    with tenant.job(who=author.who, message=author.message) as job:
        _note_sealed_config(job, note_unsealing)
        try:
            whole = job.files.read_json(CONFIG_FILE)
        except FileNotFound:
            whole = {}
        whole = whole if isinstance(whole, dict) else {}
        whole[name] = change(whole.get(name))
        job.files.write_json(CONFIG_FILE, whole)
    found: dict[str, Any] = whole[name]
    return found


def subject_of(tenant: Tenant, name: str) -> Subject:
    """Return the subject of conditions on a name: the stream or the file that it means.

    A file counts that was written since the stream adopted one, and is adopted next; so does one that a
    script writes between this call and the commit.
    """
    named = streams.stream_of(name)
    if named is None:
        return file_subject(name)
    before = tenant.context.log.current_state()
    subject = _present_subject(tenant, name)
    files = [file_subject(path) for path in snapshot_paths(named[0])]
    tags = [file.tag(tenant.context, before) for file in files]

    def current(context: TenantContext, state: TenantState) -> Subject:
        for file, tag in zip(files, tags, strict=True):
            if file.tag(context, state) not in {None, tag}:
                return file
        return stream_subject(named[0]) if subject.tag(context, state) is None else subject

    return Subject(
        lambda context, state: current(context, state).tag(context, state),
        lambda context, state: current(context, state).made_by(context, state),
    )


def _present_subject(tenant: Tenant, name: str) -> Subject:
    found = _stream_of(tenant, name)
    if found is None:
        return file_subject(name)
    stream = tenant.stream(found[0])
    path = file_with_content(stream, tenant.files)
    is_adopted = path is None or adopted_by(stream, tenant.files, path) is not None
    return stream_subject(found[0]) if is_adopted else file_subject(str(path))


def _read_file(
    tenant: Tenant, name: str, note_unsealing: Callable[[str], None], bytes_max: int | None = None
) -> bytes:
    """Return the bytes of a file in one version, so that a file sealed meanwhile is read as it was."""
    version = tenant.version if tenant.version >= 0 else None
    entry = tenant.files.entry(name, tenant_version=version)
    if bytes_max is not None:
        _require_size(name, entry.size, bytes_max)
    if entry.sealed:
        note_unsealing(name)
    return tenant.files.read(name, tenant_version=version)


def _stream_of(tenant: Tenant, name: str) -> tuple[str, FileKind] | None:
    """Return the stream that a name means, and the kind of file; None: the name means a file alone."""
    found = streams.stream_of(name)
    return None if found is None or found[0] not in tenant.streams() else found


def _converted(stream: Stream, path: str, content: bytes, kind: FileKind) -> bytes:
    """Return the rows of a stream's snapshot file as a file of the other kind."""
    with received_file(io.BytesIO(content), path.rpartition(".")[2], path) as file:
        rows = FoundSnapshotFile(file, file_sha256(file)).read(stream.schema)
        return file_of_rows(file.with_suffix(f".{kind}"), rows)


def _require_size(name: str, size: int, bytes_max: int) -> None:
    if size > bytes_max:
        raise TooLarge(
            f"{name} has more than {bytes_max:,} bytes, the most for a base64 response.",
            remedy="Download it from /api/v1, where it is streamed.",
        )
