"""Models of keys and the audit."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import ConfigDict, Field

from freezeframe.asgi.models.base import RequestModel, ResponseModel, example
from freezeframe.service.identity.principal import Scope

# Keys and sessions.


class NewKey(RequestModel):
    """A key that is to be made; without scopes it has all but `admin`, without tenants it is for all."""

    model_config = ConfigDict(
        json_schema_extra=example(name="sync", scopes=["snapshots:read"], environments=["dev"], days=90)
    )

    name: str = Field(default="", max_length=200)
    scopes: list[Scope] = Field(default_factory=list)
    environments: list[str] | None = Field(default=None, max_length=1000)
    tenants: list[str] | None = Field(default=None, max_length=1000)
    days: float | None = Field(default=None, gt=0, le=36_499)


class Key(ResponseModel):
    """A key without its secret."""

    id: str
    name: str
    scopes: list[Scope]
    environments: list[str] | None
    tenants: list[str] | None
    created: datetime
    created_by: str
    expires: datetime | None
    revoked: datetime | None
    last_used: datetime | None


class KeyWithSecret(Key):
    """A key with what a client sends, `id.secret`; it is told this once."""

    key: str = Field(repr=False)


class KeyPage(ResponseModel):
    """Keys by id."""

    keys: list[Key]
    next_cursor: str | None


class Rotation(RequestModel):
    """How long the secret from before stays good."""

    overlap_hours: float = Field(default=24.0, ge=0, le=8_760)


class KeySignIn(RequestModel):
    """A key that its owner looks at the console with."""

    model_config = ConfigDict(json_schema_extra=example(key="id.secret"))

    key: str = Field(min_length=1, max_length=200, pattern=r"\.", repr=False)


class LinkSignIn(RequestModel):
    """What is behind the `#` of the link that `freezeframe serve` printed; it signs in once."""

    model_config = ConfigDict(json_schema_extra=example(link="from-the-link"))

    link: str = Field(min_length=1, max_length=300, repr=False)


class SignInWays(ResponseModel):
    """How one signs in: with a key always, and with accounts of `provider` if there is one."""

    provider: str | None


class Who(ResponseModel):
    """Who asks, and what they may do."""

    kind: Literal["key", "person"]
    id: str
    name: str
    scopes: list[Scope]
    environments: list[str] | None
    tenants: list[str] | None
    body_bytes_max: int = Field(
        description="The most bytes that a request may bring; larger files are staged as blobs."
    )


# The audit.


class AuditEntry(ResponseModel):
    """One thing that was done; `hash` is of all the rest, with the hash of the entry before."""

    number: int
    moment: datetime
    principal: str
    action: str
    subject: str
    request_id: str
    details: dict[str, Any]
    hash: str


class AuditPage(ResponseModel):
    """Entries, the newest first."""

    entries: list[AuditEntry]
    next_cursor: str | None


class AuditProof(ResponseModel):
    """Whether the audit is whole."""

    is_whole: bool
    broken_at: int | None = Field(description="The first entry that is not as it was written.")
    reason: str = Field(description="What is wrong with it; empty where the audit is whole.")
    entries: int = Field(description="How many entries were looked at.")
    logged: int = Field(description="How many lines of the log were compared; the service compares none.")
    head_number: int | None = Field(description="The newest entry; null where there is none.")
    head_hash: str
