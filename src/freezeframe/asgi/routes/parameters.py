"""Parameters that many routes take, so that they read the same everywhere."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Path, Query

from freezeframe.identifiers import FilePath, StreamName
from freezeframe.service.streams import Moment

VERSION_MAX = 2**53
Limit = Annotated[int, Query(ge=1, le=1000, description="How many at most.")]
CursorText = Annotated[
    str | None, Query(alias="cursor", max_length=4000, description="`next_cursor` of the page before.")
]
TenantVersion = Annotated[
    int | None, Query(ge=0, le=VERSION_MAX, description="A version of the tenant; the newest without it.")
]
AsOf = Annotated[str | None, Query(max_length=60, description="A moment (RFC 3339); UTC without a zone.")]
Message = Annotated[str, Query(max_length=1000, description="Why, for the history.")]


async def named_stream(
    stream: Annotated[
        str, Path(min_length=1, max_length=200, description="The stream's name.", examples=["Account"])
    ],
) -> StreamName:
    """The stream that a path names, in the one spelling of its name."""
    return StreamName(stream)


async def named_file(
    path: Annotated[
        str, Path(min_length=1, max_length=800, description="The file's path.", examples=["mappings/a.csv"])
    ],
) -> FilePath:
    """The file that a path names, in the one spelling of its name."""
    return FilePath(path)


StreamPath = Annotated[StreamName, Depends(named_stream)]
FilePathText = Annotated[FilePath, Depends(named_file)]


def moment(
    version: Annotated[
        int | None, Query(ge=0, le=VERSION_MAX, description="A version of the stream; the newest without it.")
    ] = None,
    tenant_version: TenantVersion = None,
    as_of: AsOf = None,
) -> Moment:
    """When rows are to be read."""
    return Moment(version, tenant_version, as_of)


When = Annotated[Moment, Depends(moment)]
