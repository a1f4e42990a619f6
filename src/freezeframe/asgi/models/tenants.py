"""Environments and tenants."""

from __future__ import annotations

from pydantic import ConfigDict, Field

from freezeframe.asgi.models.base import RequestModel, ResponseModel, example


class EnvironmentList(ResponseModel):
    """The environments that have tenants."""

    model_config = ConfigDict(json_schema_extra=example(environments=["default", "staging"]))

    environments: list[str]


class TenantPage(ResponseModel):
    """A page of tenants' ids, in order."""

    model_config = ConfigDict(json_schema_extra=example(tenants=["acme", "globex"], next_cursor=None))

    tenants: list[str]
    next_cursor: str | None = Field(description="Where the next page begins; null: there is none.")


class NewTenant(RequestModel):
    """A tenant that is to be made."""

    model_config = ConfigDict(json_schema_extra=example(tenant="acme"))

    tenant: str = Field(min_length=1, max_length=200, description="The tenant's id, as its owner writes it.")


class TenantDetail(ResponseModel):
    """A tenant now."""

    model_config = ConfigDict(
        json_schema_extra=example(
            environment="default", tenant="acme", version=12, streams=["Account"], files=3, size_bytes=4711
        )
    )

    environment: str
    tenant: str
    version: int = Field(description="The newest tenant version; -1 before the first change.")
    streams: list[str]
    files: int
    size_bytes: int = Field(description="Bytes of the files, as they are stored.")


class Deletion(ResponseModel):
    """What was removed with a tenant; nothing is left of it."""

    environment: str
    tenant: str
    versions: int
    streams: int
    files: int
    objects: int
    size_bytes: int
    keys: int
