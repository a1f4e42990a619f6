"""Operations on tenants, their versions and streams: lists, history, differences, tags, the policy."""

from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import Field

from freezeframe.errors import InvalidOption, TryAgain
from freezeframe.identifiers import EnvironmentName, FilePath, StreamName
from freezeframe.service.operations.files import Dropped
from freezeframe.service.operations.operation import (
    VERSION_MAX,
    Cursor,
    Limit,
    Message,
    NamedStream,
    SeenVersion,
    about,
    example,
    operation,
)
from freezeframe.store.model.receipt import Counts

if TYPE_CHECKING:
    from freezeframe.service.operations.caller import Caller, TenantCaller
    from freezeframe.store import Tenant
    from freezeframe.store.tenant_log.state import TenantState

of_tenants = partial(operation, tag="tenants")
of_versions = partial(operation, tag="versions")
of_streams = partial(operation, tag="streams")


@dataclass(frozen=True, slots=True)
class EnvironmentList:
    """The environments that have tenants."""

    __pydantic_config__: ClassVar = example(environments=["default", "staging"])
    environments: list[str]


@dataclass(frozen=True, slots=True)
class TenantPage:
    """A page of tenants' ids, in order."""

    __pydantic_config__: ClassVar = example(tenants=["acme", "globex"], next_cursor=None)
    tenants: list[str]
    next_cursor: Annotated[str | None, Field(description="Where the next page begins; null: there is none.")]


@dataclass(frozen=True, slots=True)
class TenantDetail:
    """A tenant now."""

    __pydantic_config__: ClassVar = example(
        environment="default", tenant="acme", version=12, streams=["Account"], files=3, size_bytes=4711
    )
    environment: str
    tenant: str
    version: Annotated[int, Field(description="The newest tenant version; -1 before the first change.")]
    streams: list[str]
    files: int
    size_bytes: Annotated[int, Field(description="Bytes of the files, as they are stored.")]

    @classmethod
    def of(cls, environment: str, tenant_id: str, state: "TenantState") -> Self:
        """Return a tenant as it is in that state."""
        size = sum(file.size for file in state.files.values())
        return cls(environment, tenant_id, state.version, sorted(state.streams), len(state.files), size)


@of_tenants("GET /environments", "tenants:read", place="service")
def list_environments(caller: "Caller") -> EnvironmentList:
    """List the environments that have tenants."""
    return EnvironmentList(list(caller.access.environments()))


@of_tenants(
    "GET /tenants",
    "tenants:read",
    command="tenant list",
    place="environment",
    empty="There are no such tenants: freezeframe tenant create makes them.",
)
def list_tenants(
    caller: "Caller",
    environment: EnvironmentName,
    prefix: Annotated[str, about("Only ids that begin so.", max_length=200)] = "",
    limit: Limit = 100,
    cursor: Annotated[
        str | None, about("`next_cursor` of the page before.", flag="--after", max_length=4000)
    ] = None,
) -> TenantPage:
    """List tenants by id, a page at a time."""
    listing = f"tenants\n{environment}\n{prefix}"
    found, following = caller.tenants(environment, prefix, caller.cursors.read(listing, cursor), limit)
    return TenantPage(list(found), caller.cursors.encode(listing, following))


@dataclass(frozen=True, slots=True)
class TenantVersion:
    """One version of a tenant: when, by whom and which job, and what it changed."""

    version: int
    timestamp: datetime
    kind: Annotated[
        str, Field(description="What made it: commit, restore, policy, external, revoke or erase.")
    ]
    restored: Annotated[int | None, Field(description="Of a restoration, the version that it brought back.")]
    who: str
    job_id: str | None
    message: str
    streams: dict[str, Counts]
    streams_dropped: tuple[str, ...]
    files_written: tuple[str, ...]
    files_deleted: tuple[str, ...]
    is_idle: Annotated[
        bool,
        Field(
            description="Whether a job ran and changed nothing; its id must not run again, so it has a "
            "version."
        ),
    ]
    tags: tuple[str, ...]
    request_id: str

    @classmethod
    def of(cls, entry: Any) -> Self:
        """Return the version of an entry of the tenant's history."""
        return cls(**{name: getattr(entry, name) for name in cls.__dataclass_fields__})


@dataclass(frozen=True, slots=True)
class HistoryPage:
    """Versions, the newest first."""

    versions: list[TenantVersion]
    next_cursor: str | None


@dataclass(frozen=True, slots=True)
class StreamDifference:
    """How a stream differs."""

    fate: Literal["added", "changed", "removed"]
    inserted: int
    updated: int
    unchanged: int
    deleted: int


@dataclass(frozen=True, slots=True)
class FileDifference:
    """How a file differs; `text` is a unified diff, null where there is none to show."""

    fate: Literal["added", "changed", "removed"]
    sealed: bool
    text: str | None = None


@dataclass(frozen=True, slots=True)
class Difference:
    """What differs between two versions of a tenant."""

    before: int
    after: int
    streams: dict[str, StreamDifference]
    files: dict[str, FileDifference]


@dataclass(frozen=True, slots=True)
class StreamList:
    """A tenant's streams at one version of it."""

    __pydantic_config__: ClassVar = example(version=12, streams=["Account", "Invoice"])
    version: int
    streams: list[str]


@of_versions("GET /history", "snapshots:read", command="tenant history")
def list_history(
    tenant: "Tenant",
    caller: "TenantCaller",
    limit: Limit = 100,
    cursor: Cursor = None,
    stream: Annotated[StreamName | None, about("Only versions that changed it.", max_length=200)] = None,
    path: Annotated[
        FilePath | None, about("Only versions that changed the file.", flag="--file", max_length=800)
    ] = None,
    job_id: Annotated[
        str | None, about("Only the version of that job.", flag="--job", max_length=500)
    ] = None,
) -> HistoryPage:
    """List a tenant's versions, the newest first; every one of them can be read and restored."""
    filters = {"stream": stream, "path": path, "job_id": job_id}
    return _history(tenant, caller, limit, cursor, **filters)


@of_streams("GET /streams/{stream}/history", "snapshots:read")
def stream_history(
    tenant: "Tenant", caller: "TenantCaller", stream: NamedStream, limit: Limit = 100, cursor: Cursor = None
) -> HistoryPage:
    """List the tenant's versions that changed the stream, the newest first."""
    return _history(tenant, caller, limit, cursor, stream=tenant.stream(stream).name)


def _history(
    tenant: "Tenant", caller: "TenantCaller", limit: int, cursor: str | None, **filters: Any
) -> HistoryPage:
    listing = caller.list_name("history", *sorted(filters.items()))
    until = caller.cursors.read_as(int, listing, cursor)
    entries = list(tenant.history(limit + 1, until=until, **filters))
    following = entries[limit].version if len(entries) > limit else None
    shown = list(map(TenantVersion.of, entries[:limit]))
    return HistoryPage(shown, caller.cursors.encode(listing, following))


@of_versions("GET /diff", "snapshots:read", command="tenant diff")
def show_difference(
    tenant: "Tenant",
    _caller: "TenantCaller",
    before: Annotated[
        int | None,
        about(
            "A version of the tenant; without it the one before the newest.",
            is_point=True,
            ge=0,
            le=VERSION_MAX,
        ),
    ] = None,
    after: Annotated[
        int | None,
        about("A later one; without it the newest.", is_point=True, flag="LATER", ge=0, le=VERSION_MAX),
    ] = None,
    texts: Annotated[bool, about("With the differences of files as text.", flag="--text")] = False,  # noqa: FBT002 - a query
) -> Difference:
    """What differs between two versions of the tenant; without any, what the newest one changed."""
    found = tenant.diff(max(tenant.version - 1, 0) if before is None else before, after)
    streams = {
        name: StreamDifference(item.fate, *(getattr(item.counts, one) for one in Counts.__dataclass_fields__))
        for name, item in found.streams.items()
    }
    files = {
        path: FileDifference(item.fate, item.is_sealed, item.text() if texts else None)
        for path, item in found.files.items()
    }
    return Difference(found.before, found.after, streams, files)


@dataclass(frozen=True, slots=True)
class Released:
    """A stream whose table other programs may write."""

    stream: str
    tenant_version: int


@dataclass(frozen=True, slots=True)
class Adopted:
    """A table that is a stream now; the key is null where it could not be read at once."""

    stream: str
    tenant_version: int
    key: list[str] | None


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


@of_versions("GET /tags", "snapshots:read")
def list_tags(tenant: "Tenant", _caller: "TenantCaller") -> TagList:
    """List a tenant's tags, and the versions that they keep."""
    return TagList(tenant.tags())


@of_versions(
    "PUT /tags/{tag}", "snapshots:write", "tag.set", "tenant tag", details=("version",), body="NewTag"
)
def set_tag(tenant: "Tenant", caller: "TenantCaller", tag: TagName, version: TaggedVersion = None) -> Tag:
    """Name a version of the tenant, which is then kept whatever the policy says.

    An erasure ends all history, tags too.
    """
    return Tag(tag, tenant.tag(tag, version, who=caller.who))


@of_versions("DELETE /tags/{tag}", "snapshots:delete", "tag.remove", "tenant untag", status=204)
def remove_tag(tenant: "Tenant", caller: "TenantCaller", tag: TagName) -> None:
    """Take a tag off; the version is then kept as long as the policy says."""
    tenant.untag(tag, who=caller.who)


@of_versions("GET /policy", "snapshots:read")
def show_policy(tenant: "Tenant", _caller: "TenantCaller") -> Policy:
    """How long a tenant's versions are kept; without limits for ever."""
    found = tenant.retention()
    return Policy(found.keep_versions, found.keep_days)


@of_versions(
    "PUT /policy",
    "admin",
    "policy.set",
    "tenant retention",
    details=("keep_versions", "keep_days"),
    body="NewPolicy",
)
def set_policy(
    tenant: "Tenant", caller: "TenantCaller", keep_versions: KeepVersions = None, keep_days: KeepDays = None
) -> Policy:
    """Say how long a tenant's versions are kept, with both limits a version that either keeps.

    `gc` deletes the others.
    """
    tenant.set_retention(keep_versions, keep_days, who=caller.who)
    return Policy(keep_versions, keep_days)


@of_streams("DELETE /streams/{stream}", "snapshots:delete", "stream.drop", "stream drop", noun="stream")
def drop_stream(
    tenant: "Tenant", caller: "TenantCaller", stream: NamedStream, message: Message = ""
) -> Dropped:
    """Remove a stream in a new version; its past can be read and restored."""
    return Dropped(tenant.drop_stream(stream, message=message, who=caller.who))


@of_streams("GET /streams", "snapshots:read")
def list_streams(tenant: "Tenant", _caller: "TenantCaller", version: SeenVersion = None) -> StreamList:
    """List a tenant's streams, now or at a version of the tenant."""
    return StreamList(tenant.version if version is None else version, list(tenant.streams(version)))


@of_versions("", "admin", "stream.release", "stream release", noun="stream")
def release_stream(tenant: "Tenant", caller: "TenantCaller", stream: NamedStream) -> Released:
    """Release a stream, so that other programs may write its table.

    The table stays where it is; adopt takes it back.
    """
    return Released(stream, tenant.stream(stream).release(who=caller.who))


@of_streams("", "admin", "stream.adopt", "stream adopt", noun="stream")
def adopt_stream(
    tenant: "Tenant",
    caller: "TenantCaller",
    stream: NamedStream,
    key: Annotated[list[str] | None, about("A column of the key; none: as stored with the table.")] = None,
    no_key: Annotated[bool, about("The stream has no key.", flag="--no-key")] = False,  # noqa: FBT002 - a flag
) -> Adopted:
    """Take a Delta table in as a stream.

    It is the one in the folder NAME.snapshot; other writers must then refuse it.
    """
    if key and no_key:
        raise InvalidOption("--key and --no-key cannot be used together.", remedy="Give one of them.")
    version = tenant.adopt(stream, () if no_key else (key or None), who=caller.who)
    with suppress(TryAgain):  # it is adopted
        return Adopted(stream, version, list(tenant.stream(stream).key))
    return Adopted(stream, version, None)


OPERATIONS = (
    *(list_environments, list_tenants),
    *(list_history, stream_history, show_difference, list_tags, set_tag, remove_tag, show_policy, set_policy),
    *(list_streams, drop_stream, release_stream, adopt_stream),
)
