"""Routers and their parameters."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, cast

from fastapi import APIRouter, Depends, Path, Query, Request
from pydantic import BeforeValidator

from freezeframe.asgi.dependencies.checked_route import CheckedRoute, StrictRoute
from freezeframe.asgi.media_type import media_type
from freezeframe.asgi.problems import to_openapi
from freezeframe.errors import InvalidOption, UnreadableRequest
from freezeframe.identifiers import FilePath, StreamName
from freezeframe.script.types.known_types import CsvOptions, types_of_words
from freezeframe.service.jobs.jobs import IMPORT_KINDS
from freezeframe.service.rows.streams import Moment
from freezeframe.store.model.update_options import (
    Deletes,
    History,
    ModeOption,
    NullKeys,
    Nulls,
    OnDrift,
    SchemaRule,
    UpdateOptions,
)
from freezeframe.store.tenant_log.history import require_one_version

# Router factory: strict bodies, and the problem responses that every route declares.

TENANT = "/environments/{environment}/tenants/{tenant}"
_ANY = (400, 401, 403, 409, 413, 422, 429, 431, 500, 503)


def api_router(tag: str, route_class: type[CheckedRoute] = StrictRoute) -> APIRouter:
    """A router of ``/api/v1``; another ``route_class`` may accept unknown parameters."""
    return APIRouter(
        prefix="/api/v1",
        tags=[tag],
        route_class=route_class,
        responses=to_openapi(*_ANY),
        redirect_slashes=False,
    )


def tenant_router(tag: str) -> APIRouter:
    """A router of what belongs to one tenant; each of its routes may answer 404."""
    return APIRouter(
        prefix=f"/api/v1{TENANT}",
        tags=[tag],
        route_class=StrictRoute,
        responses=to_openapi(*_ANY, 404),
        redirect_slashes=False,
    )


# Parameters that several routes share.

VERSION_MAX = 2**53
Limit = Annotated[int, Query(ge=1, le=1000, description="How many at most.")]
CursorText = Annotated[
    str | None, Query(alias="cursor", max_length=4000, description="`next_cursor` of the page before.")
]
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}([Tt ][0-9].{0,50})?", re.ASCII)


def read_moment(text: object) -> datetime:
    """Read a moment in UTC; text without a zone is UTC, and a number is no moment."""
    if isinstance(text, str) and _DATE.fullmatch(text):
        try:
            found = datetime.fromisoformat(text)
            return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)
        except (ValueError, OverflowError):
            pass
    raise ValueError("a moment is text of RFC 3339, such as 2026-11-20T14:05:00Z")


MomentText = Annotated[datetime, BeforeValidator(read_moment)]
AsOf = Annotated[MomentText | None, Query(description="A moment (RFC 3339); UTC without a zone.")]
Message = Annotated[str, Query(max_length=1000, description="Why, for the history.")]


async def named_stream(
    stream: Annotated[
        str, Path(min_length=1, max_length=200, description="The stream's name.", examples=["Account"])
    ],
) -> StreamName:
    """The stream that a path names, in its normal spelling (Unicode NFC)."""
    return StreamName(stream)


async def named_file(
    path: Annotated[
        str, Path(min_length=1, max_length=800, description="The file's path.", examples=["mappings/a.csv"])
    ],
) -> FilePath:
    """The file that a path names, in its normal spelling (Unicode NFC)."""
    return FilePath(path)


StreamPath = Annotated[StreamName, Depends(named_stream)]
FilePathText = Annotated[FilePath, Depends(named_file)]


def tenant_version(
    version: Annotated[
        int | None, Query(ge=0, le=VERSION_MAX, description="A version of the tenant; the newest without it.")
    ] = None,
    tenant_version: Annotated[
        int | None, Query(ge=0, le=VERSION_MAX, deprecated=True, description="The same as `version`.")
    ] = None,
) -> int | None:
    """The version of the tenant that is asked for, under its name or its old one."""
    require_one_version({"version": version, "tenant_version": tenant_version})
    return tenant_version if version is None else version


TenantVersion = Annotated[int | None, Depends(tenant_version)]


def moment(
    version: TenantVersion,
    stream_version: Annotated[
        int | None, Query(ge=0, le=VERSION_MAX, description="A version of the stream's own, in its place.")
    ] = None,
    as_of: AsOf = None,
) -> Moment:
    """When rows are to be read."""
    return Moment(version, as_of, stream_version)


def update_options(
    mode: Annotated[
        ModeOption | None, Query(description="`full`: what the file lacks is deleted; `upsert` without it.")
    ] = None,
    override: Annotated[
        bool | None, Query(description="Replace all rows, columns and types; needs no key.")
    ] = None,
    replace_where: Annotated[
        str | None,
        Query(max_length=4000, description="SQL: the stored rows for which it is true are replaced; no key."),
    ] = None,
    deletes: Annotated[
        Deletes | None, Query(description="With `mode=full`: deleted rows are removed, or flagged.")
    ] = None,
    max_delete_ratio: Annotated[
        float | None,
        Query(ge=0, le=1, description="With `mode=full`: the share to delete at most; 0.5 without it."),
    ] = None,
    nulls: Annotated[
        Nulls | None,
        Query(description="A missing value keeps the stored cell, or overwrites it."),
    ] = None,
    null_keys: Annotated[
        NullKeys | None, Query(description="Rows without a key are an error (without it), match, or drop.")
    ] = None,
    order_by: Annotated[
        list[str] | None, Query(max_length=50, description="Columns by which rows of one key arrive.")
    ] = None,
    drop_duplicates: Annotated[
        bool | None, Query(description="Of rows that share a key the last counts; false: they are an error.")
    ] = None,
    drop_column: Annotated[
        list[str] | None, Query(max_length=1000, description="Columns to leave out and to remove.")
    ] = None,
    schema: Annotated[
        SchemaRule | None, Query(description="`frozen`: new columns and types are refused.")
    ] = None,
    on_drift: Annotated[
        OnDrift | None, Query(description="Types that do not fit are an error (without it), or kept as text.")
    ] = None,
    history: Annotated[
        History | None, Query(description="`scd2` keeps changed and deleted rows; `none` ends that.")
    ] = None,
) -> UpdateOptions:
    """The options of an update, those of ``UpdateOptions``."""
    return cast("UpdateOptions", {name: value for name, value in locals().items() if value is not None})


def csv_options(
    types: Annotated[
        list[str] | None,
        Query(max_length=1000, description="Types that CSV columns must be of: `Phone=string`."),
    ] = None,
    parse_dates: Annotated[
        list[str] | None,
        Query(max_length=1000, description="CSV columns of dates or times, which are text without it."),
    ] = None,
    escape: Annotated[
        str, Query(max_length=1, description="What stands before a quote in CSV, if not a quote.")
    ] = "",
) -> CsvOptions:
    """How CSV is read."""
    return CsvOptions(types_of_words(types or ()), parse_dates, escape)


_OCTETS = "application/octet-stream"
BINARY: dict[str, Any] = {"schema": {"type": "string", "format": "binary"}}
# Clients that know no other type of bytes send octets, and say by `kind` what they are.
ROWS_CONTENT: dict[str, Any] = {**dict.fromkeys(IMPORT_KINDS, BINARY), _OCTETS: BINARY}
RowsKind = Annotated[
    Literal["csv", "parquet", "jsonl", "arrow"] | None,
    Query(description=f"How the rows are written, for a body that is sent as `{_OCTETS}`."),
]


def rows_kind(request: Request, kind: str | None) -> str:
    """Return how the rows of a body are written, by its ``Content-Type`` or the query's ``kind``."""
    given = media_type(request)
    if (given == _OCTETS) != (kind is not None):
        raise InvalidOption(
            f"kind is needed with {_OCTETS}."
            if kind is None
            else f"kind cannot be used with {given or 'no type'}.",
            cause="Either the Content-Type says how the rows are written, or kind does.",
            remedy=f"Send kind with Content-Type: {_OCTETS}, and with no other one.",
            code="INVALID_REQUEST",
        )
    if kind is not None:
        return kind
    if given not in IMPORT_KINDS:
        raise UnreadableRequest(
            f"Rows cannot be imported from {given or 'a body without a Content-Type'}.",
            cause="The Content-Type says how the rows are written.",
            remedy=f"Send one of {', '.join(ROWS_CONTENT)}.",
        )
    return IMPORT_KINDS[given]


GivenCsv = Annotated[CsvOptions, Depends(csv_options)]
GivenUpdate = Annotated[UpdateOptions, Depends(update_options)]
When = Annotated[Moment, Depends(moment)]
