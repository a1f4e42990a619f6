"""The catalogue of operations, from which both doors are made, and what the audit calls each change."""

from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any, Self

from freezeframe.errors import FileNotFound
from freezeframe.identifiers import FilePath
from freezeframe.service.operations.operation import (
    VERSION_MAX,
    Message,
    NamedFile,
    NamedStream,
    Operation,
    about,
    operation,
)
from freezeframe.store.model.json_fields import FileRevision
from freezeframe.store.model.update_options import Author

if TYPE_CHECKING:
    from freezeframe.store import Tenant

NewPath = Annotated[FilePath, about("The new path, which must not exist.", min_length=1, max_length=800)]
NamedFolder = Annotated[FilePath, about("The folder's path.", min_length=1, max_length=800)]


@dataclass(frozen=True, slots=True)
class File:
    """A file; size and SHA-256 are of what is stored, which for a sealed file is its ciphertext.

    `version` is the tenant's version that brought these bytes.
    """

    path: str
    size: int
    modified: datetime
    sha256: str
    sealed: bool
    version: int

    @classmethod
    def of(cls, entry: Any) -> Self:
        """Return the file of an entry of the tenant's log."""
        return cls(**{name: getattr(entry, name) for name in cls.__dataclass_fields__})


@dataclass(frozen=True, slots=True)
class Dropped:
    """A stream or file that was removed; its past can be read and restored."""

    tenant_version: int


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder."""

    path: str


@dataclass(frozen=True, slots=True)
class FolderMoved:
    """The folder's new path, and how many files are below it, the marks of empty folders included."""

    path: str
    files: int


@dataclass(frozen=True, slots=True)
class FileHistory:
    """A file's versions, the newest first."""

    path: str
    revisions: list[FileRevision]


def _files() -> Any:
    from freezeframe.service import files

    return files


@operation(*("DELETE", "/files/{path}", "file.delete", "file delete"), scope="snapshots:delete", noun="file")
def delete_file(tenant: "Tenant", who: str, path: NamedFile, message: Message = "") -> Dropped:
    """Remove a file; its older versions can still be read and brought back."""
    return Dropped(_files().delete_file(tenant, path, Author(who, message)))


@operation(
    *("POST", "/file-moves", "file.move", "file move"),
    scope="snapshots:write",
    noun="file",
    details=("target",),
    body="FileMove",
)
def move_file(tenant: "Tenant", who: str, path: NamedFile, target: NewPath, message: Message = "") -> File:
    """Give a file another path, in one change; a request's conditions are of the file that is moved."""
    return File.of(_files().move_file(tenant, path, target, Author(who, message)))


@operation("GET", "/file-history", command="file history", scope="snapshots:read")
def file_history(
    tenant: "Tenant",
    _who: str,
    path: NamedFile,
    limit: Annotated[int, about("How many at most.", ge=1, le=1000)] = 100,
) -> FileHistory:
    """List a file's versions, the newest first, deletions included."""
    found = list(islice(tenant.files.history(path), limit))
    if not found:
        raise FileNotFound(
            f"There is and was no file {path!r}.", remedy="Check the path; a list of the files shows all."
        )
    return FileHistory(path, found)


@operation("POST", "/folders", "folder.create", scope="snapshots:write", status=201, body="NewFolder")
def create_folder(tenant: "Tenant", who: str, path: NamedFolder) -> Folder:
    """Make a folder that holds nothing yet."""
    return Folder(_files().create_folder(tenant, path, Author(who)))


@operation(
    *("POST", "/folder-moves", "folder.move"),
    scope="snapshots:write",
    details=("target",),
    body="FolderMove",
)
def move_folder(
    tenant: "Tenant", who: str, path: NamedFolder, target: NewPath, message: Message = ""
) -> FolderMoved:
    """Give a folder another path with all that is below it, in one version of the tenant.

    `If-Match` is the tenant's `ETag`.
    """
    move = _files().FolderMove(path, target)
    return FolderMoved(target, _files().move_folder(tenant, move, Author(who, message)))


TagName = Annotated[str, about("The tag's name.", min_length=1, max_length=200, examples=["go-live"])]
TaggedVersion = Annotated[
    int | None, about("The version that it names.", is_point=True, ge=0, le=VERSION_MAX)
]
KeepVersions = Annotated[int | None, about("Keep this many of the newest versions.", ge=1, le=VERSION_MAX)]
KeepDays = Annotated[float | None, about("Keep the versions of this many days.", ge=0, le=365_000)]


@dataclass(frozen=True, slots=True)
class TagList:
    """A tenant's tags, and the versions that they keep."""

    tags: dict[str, int]


@dataclass(frozen=True, slots=True)
class Tag:
    """A tag."""

    name: str
    version: int


@dataclass(frozen=True, slots=True)
class Policy:
    """How long versions are kept; null is no limit."""

    keep_versions: int | None
    keep_days: float | None


@operation("GET", "/tags", scope="snapshots:read")
def list_tags(tenant: "Tenant", _who: str) -> TagList:
    """List a tenant's tags, and the versions that they keep."""
    return TagList(tenant.tags())


@operation(
    *("PUT", "/tags/{tag}", "tag.set", "tenant tag"),
    scope="snapshots:write",
    details=("version",),
    body="NewTag",
)
def set_tag(tenant: "Tenant", who: str, tag: TagName, version: TaggedVersion = None) -> Tag:
    """Name a version of the tenant, which is then kept whatever the policy says.

    An erasure ends all history, tags too.
    """
    return Tag(tag, tenant.tag(tag, version, who=who))


@operation("DELETE", "/tags/{tag}", "tag.remove", "tenant untag", scope="snapshots:delete", status=204)
def remove_tag(tenant: "Tenant", who: str, tag: TagName) -> None:
    """Take a tag off; the version is then kept as long as the policy says."""
    tenant.untag(tag, who=who)


@operation("GET", "/policy", scope="snapshots:read")
def show_policy(tenant: "Tenant", _who: str) -> Policy:
    """How long a tenant's versions are kept; without limits for ever."""
    found = tenant.retention()
    return Policy(found.keep_versions, found.keep_days)


@operation(
    *("PUT", "/policy", "policy.set", "tenant retention"),
    scope="admin",
    details=("keep_versions", "keep_days"),
    body="NewPolicy",
)
def set_policy(
    tenant: "Tenant", who: str, keep_versions: KeepVersions = None, keep_days: KeepDays = None
) -> Policy:
    """Say how long a tenant's versions are kept, with both limits a version that either keeps.

    `gc` deletes the others.
    """
    tenant.set_retention(keep_versions, keep_days, who=who)
    return Policy(keep_versions, keep_days)


@operation(
    *("DELETE", "/streams/{stream}", "stream.drop", "stream drop"), scope="snapshots:delete", noun="stream"
)
def drop_stream(tenant: "Tenant", who: str, stream: NamedStream, message: Message = "") -> Dropped:
    """Remove a stream in a new version; its past can be read and restored."""
    return Dropped(tenant.drop_stream(stream, message=message, who=who))


# Their routes and commands do more than call and print: they stream, wait, ask, or select many tenants.
_BY_HAND = (
    Operation(
        "file.write",
        (
            *("write_file", "write_batch", "hotglue_write"),
            *("hotglue_set_config", "hotglue_patch_config", "hotglue_set_mapping", "hotglue_set_metadata"),
        ),
        ("file write", "file patch"),
    ),
    Operation("file.delete", ("delete_many", "hotglue_delete")),
    Operation("file.return", ("return_file",)),
    Operation("tenant.restore", ("restore_tenant",), ("tenant restore",)),
    Operation("tenant.gc", (), ("gc", "tenant gc")),
    Operation("tenant.create", ("create_tenant",), ("tenant create",)),
    Operation("tenant.clone", ("clone_tenant",), ("tenant clone",)),
    Operation("tenant.delete", ("delete_tenant",), ("tenant delete",)),
    Operation("tenant.migrate", (), ("migrate",)),
    Operation("stream.restore", ("restore_stream",), ("stream restore",)),
    Operation("stream.import", ("import_stream",), ("stream import", "import")),
    Operation("stream.retype", (), ("stream retype",)),
    Operation("stream.release", (), ("stream release",)),
    Operation("stream.adopt", (), ("stream adopt",)),
    Operation("stream.repair", (), ("stream repair",)),
    Operation("rows.restore", ("restore_rows",)),
    Operation("rows.change", ("change_row",)),
    Operation("rows.erase", (), ("tenant erase",)),
    Operation(
        "job.run",
        ("run_job", "repeat_job", "dry_run_job", "run_schedule", "run_group"),
        ("job submit", "job retry"),
    ),
    Operation("job.cancel", ("cancel_job",), ("job cancel",)),
    Operation("schedule.create", ("create_schedule",), ("schedule create",)),
    Operation("schedule.change", ("change_schedule",), ("schedule enable", "schedule disable")),
    Operation("schedule.delete", ("delete_schedule",), ("schedule delete",)),
    Operation("key.create", ("create_key",), ("key create",)),
    Operation("key.rotate", ("rotate_key",), ("key rotate",)),
    Operation("key.revoke", ("revoke_key",), ("key revoke",)),
    Operation("session.end", ("sign_out",), ("key sign-out",)),
    Operation("master_key.rotate", (), ("key rotate-master",)),
)

FILE_OPERATIONS = (delete_file, move_file, file_history, create_folder, move_folder)
VERSION_OPERATIONS = (list_tags, set_tag, remove_tag, show_policy, set_policy)
STREAM_OPERATIONS = (drop_stream,)
OPERATIONS = (*FILE_OPERATIONS, *VERSION_OPERATIONS, *STREAM_OPERATIONS, *_BY_HAND)
