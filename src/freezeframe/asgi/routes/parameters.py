"""Parameters that several routes share: pages, versions, names, options of updates, kinds of rows."""

import inspect
import re
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, cast

from fastapi import Depends, Path, Query, Request
from pydantic import BeforeValidator

from freezeframe.asgi.problems import media_type
from freezeframe.errors import InvalidOption, UnreadableRequest
from freezeframe.identifiers import FilePath, StreamName
from freezeframe.script.types.known_types import CsvOptions, types_of_words
from freezeframe.service.jobs import IMPORT_KINDS
from freezeframe.service.operations.operation import VERSION_MAX
from freezeframe.service.rows.streams import Moment
from freezeframe.store.model.update_options import OPTION_HELP, UpdateOptions, option_kinds
from freezeframe.store.tenant_log.history import require_one_version

BINARY: dict[str, Any] = {"schema": {"type": "string", "format": "binary"}}
OCTETS = "application/octet-stream"
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
Columns = Annotated[list[str] | None, Query(max_length=1000, description="Only these columns.")]
Where = Annotated[
    list[str] | None,
    Query(
        max_length=20,
        description="SQL such as `City = 'Bern' AND Amount > 3`: comparisons, `IN`, `BETWEEN`, `LIKE`, "
        "`IS NULL`, `NOT`, `OR`. Of several all must hold.",
    ),
]
KeyColumns = Annotated[list[str] | None, Query(max_length=50, description="The key's columns.")]


def request_content(content: dict[str, Any]) -> dict[str, Any]:
    """Return the required body of an operation, by media type, as OpenAPI declares it."""
    return {"requestBody": {"required": True, "content": content}}


async def named_stream(
    stream: Annotated[
        str, Path(min_length=1, max_length=200, description="The stream's name.", examples=["Account"])
    ],
) -> StreamName:
    """Return the stream that a path names, in its normal spelling (Unicode NFC)."""
    return StreamName(stream)


async def named_file(
    path: Annotated[
        str, Path(min_length=1, max_length=800, description="The file's path.", examples=["mappings/a.csv"])
    ],
) -> FilePath:
    """Return the file that a path names, in its normal spelling (Unicode NFC)."""
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
    """Return the requested version of the tenant, by the parameter's name or its deprecated name."""
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
    """Return the moment whose rows the request reads."""
    return Moment(version, as_of, stream_version)


_LIMITS: dict[str, dict[str, Any]] = {
    "replace_where": {"max_length": 4000},
    "max_delete_ratio": {"ge": 0, "le": 1},
    "order_by": {"max_length": 50},
    "drop_column": {"max_length": 1000},
}


def update_options(**options: Any) -> UpdateOptions:
    """Return the options of an update, those of ``UpdateOptions``."""
    return cast("UpdateOptions", {name: value for name, value in options.items() if value is not None})


# FastAPI reads the parameters of the query from this.
update_options.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
    [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=None,
            annotation=Annotated[kind | None, Query(description=OPTION_HELP[name], **_LIMITS.get(name, {}))],
        )
        for name, kind in option_kinds().items()
    ]
)


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
    """Return the options of reading CSV."""
    return CsvOptions(types_of_words(types or ()), parse_dates, escape)


# Clients that know no other type of bytes send octets, and say by `kind` what they are.
ROWS_CONTENT: dict[str, Any] = {**dict.fromkeys(IMPORT_KINDS, BINARY), OCTETS: BINARY}
RowsKind = Annotated[
    Literal["csv", "parquet", "jsonl", "arrow"] | None,
    Query(description=f"How the rows are written, for a body that is sent as `{OCTETS}`."),
]


def rows_kind(request: Request, kind: str | None) -> str:
    """Return how the rows of a body are written, by its ``Content-Type`` or the query's ``kind``."""
    sent = media_type(request)
    if (sent == OCTETS) != (kind is not None):
        raise InvalidOption(
            f"kind is needed with {OCTETS}."
            if kind is None
            else f"kind cannot be used with {sent or 'no type'}.",
            cause="Either the Content-Type says how the rows are written, or kind does.",
            remedy=f"Send kind with Content-Type: {OCTETS}, and with no other one.",
            code="INVALID_REQUEST",
        )
    if kind is not None:
        return kind
    if sent not in IMPORT_KINDS:
        raise UnreadableRequest(
            f"Rows cannot be imported from {sent or 'a body without a Content-Type'}.",
            cause="The Content-Type says how the rows are written.",
            remedy=f"Send one of {', '.join(ROWS_CONTENT)}.",
        )
    return IMPORT_KINDS[sent]


CsvQuery = Annotated[CsvOptions, Depends(csv_options)]
UpdateQuery = Annotated[UpdateOptions, Depends(update_options)]
When = Annotated[Moment, Depends(moment)]
