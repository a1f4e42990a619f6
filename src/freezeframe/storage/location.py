"""Opening a storage by its path or URL, and access to S3 buckets."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from freezeframe.errors import InvalidOption
from freezeframe.extras import requires_extra
from freezeframe.storage.base import Storage
from freezeframe.storage.local import LocalStorage

if TYPE_CHECKING:
    from freezeframe.settings import Settings
    from freezeframe.storage.objects import ObjectStorage

# S3 options come from the settings, then AWS's environment variables, then the role of the machine or pod.

_DEFAULT_REGION = "us-east-1"
_ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")
_REGIONS = ("AWS_REGION", "AWS_DEFAULT_REGION")
VARIABLES = frozenset(
    {
        *_ENDPOINTS,
        *_REGIONS,
        "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_SESSION_TOKEN",
        "AWS_ALLOW_HTTP",
    }
)
"""The variables of AWS's tools that count; AWS_ALLOW_HTTP is known and follows from the endpoint."""
# A region or endpoint spares Hadoop a request for the bucket's region.
_KEYS = "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider"
_SESSION_KEYS = "org.apache.hadoop.fs.s3a.TemporaryAWSCredentialsProvider"
_CHAIN = "software.amazon.awssdk.auth.credentials.DefaultCredentialsProvider"


@dataclass(frozen=True, slots=True)
class S3Access:
    """Endpoint (empty: Amazon's), region, bucket addressing style, and keys (empty: a role's)."""

    endpoint: str
    region: str
    is_path_style: bool
    key_id: str
    secret: str = field(repr=False)
    token: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        url = urlsplit(self.endpoint)
        if self.endpoint and (url.scheme not in {"http", "https"} or not url.netloc):
            raise InvalidOption(
                f"{self.endpoint!r} is not an endpoint of an object store.",
                remedy="Set s3_endpoint to https://host or http://host:port.",
            )
        if bool(self.key_id) != bool(self.secret):
            raise InvalidOption(
                "The key of the object store is incomplete.",
                cause="Only one of the access key's id and its secret is set.",
                remedy="Set both s3_access_key_id and s3_secret_access_key, or neither.",
            )

    @classmethod
    def of(cls, settings: Settings, environment: Mapping[str, str]) -> S3Access:
        """Access from the settings, completed by the ``AWS_…`` variables."""
        keys = {
            "AWS_ACCESS_KEY_ID": settings.s3_access_key_id,
            "AWS_SECRET_ACCESS_KEY": settings.s3_secret_access_key,
            "AWS_SESSION_TOKEN": settings.s3_session_token,
        }
        locations = {"AWS_ENDPOINT_URL_S3": settings.s3_endpoint, "AWS_REGION": settings.s3_region}
        if not (settings.s3_access_key_id or settings.s3_secret_access_key):
            keys = {name: value for name, value in keys.items() if value}
        named = {name: value for name, value in locations.items() if value}
        found = cls.of_variables({**environment, **keys, **named})
        is_path_style = settings.s3_path_style == "yes" or (
            settings.s3_path_style == "auto" and found.is_path_style
        )
        return replace(found, is_path_style=is_path_style)

    @classmethod
    def of_variables(cls, environment: Mapping[str, str]) -> S3Access:
        """Access from the ``AWS_…`` variables; an own endpoint implies path-style addressing."""

        def variable(*names: str) -> str:
            return next((found for name in names if (found := environment.get(name, "").strip())), "")

        endpoint = variable(*_ENDPOINTS)
        return cls(
            endpoint=endpoint.rstrip("/"),
            region=variable(*_REGIONS),
            is_path_style=bool(endpoint),
            key_id=variable("AWS_ACCESS_KEY_ID"),
            secret=variable("AWS_SECRET_ACCESS_KEY"),
            token=variable("AWS_SESSION_TOKEN"),
        )

    @property
    def digest(self) -> str:
        """A digest of the access options that reveals no secret."""
        return hashlib.sha256(repr((self.obstore_options(), self.token)).encode()).hexdigest()[:16]

    @property
    def place(self) -> str:
        """The endpoint's name, independent of credentials."""
        return hashlib.sha256(f"{self.endpoint} {self.region}".encode()).hexdigest()[:16]

    def obstore_options(self) -> dict[str, Any]:
        """Return the options for ``obstore.store.from_url``."""
        options: dict[str, Any] = {
            "region": self.region or _DEFAULT_REGION,
            "virtual_hosted_style_request": not self.is_path_style,
        }
        if self.endpoint:
            options["endpoint"] = self.endpoint
        if self.endpoint.startswith("http://"):
            options["client_options"] = {"allow_http": True}
        if self.key_id:
            options |= {"access_key_id": self.key_id, "secret_access_key": self.secret}
        if self.token:
            options["session_token"] = self.token
        return options

    def hadoop_options(self) -> dict[str, str]:
        """Return the options for Hadoop's connector, without secrets."""
        own = _SESSION_KEYS if self.token else _KEYS
        options = {
            "fs.s3a.endpoint.region": self.region or _DEFAULT_REGION,
            "fs.s3a.path.style.access": str(self.is_path_style).lower(),
            "fs.s3a.aws.credentials.provider": own if self.key_id else _CHAIN,
        }
        if self.endpoint:
            options["fs.s3a.endpoint"] = self.endpoint
            options["fs.s3a.connection.ssl.enabled"] = str(self.endpoint.startswith("https://")).lower()
        return options

    def hadoop_secrets(self) -> dict[str, str]:
        """Return the keys for Hadoop's connector; empty under a role."""
        keys = {"fs.s3a.access.key": self.key_id, "fs.s3a.secret.key": self.secret}
        if self.token:
            keys["fs.s3a.session.token"] = self.token
        return keys if self.key_id else {}


def open_bucket(url: str, *, is_trusted: bool = False, **options: Any) -> ObjectStorage:
    """Open the objects below a URL such as ``s3://bucket/folder``; ``options`` are those of obstore's store.

    ``is_trusted``: the store is known to create atomically, like Amazon's own S3.
    """
    with requires_extra("s3"):
        from freezeframe.storage.objects import ObjectStorage  # noqa: PLC0415 - an extra
    return ObjectStorage.at(url, is_trusted=is_trusted, **options)


_SCHEMES = ("s3", "s3a")


_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/")


def path_text(path: object) -> str:
    """Return a path that a caller gave as text; ``InvalidOption`` if it can be none."""
    text = os.fspath(path) if isinstance(path, (str, os.PathLike)) else None
    if not isinstance(text, str) or "\0" in text:
        raise InvalidOption(f"{path!r:.80} is not a path.", remedy="Pass a directory as text, or as a Path.")
    return text


def local_directory(location: str | os.PathLike[str], *, may_be_bucket: bool = True) -> Path | None:
    """Return the directory that a path, a ``file:`` URL or a path below ``~`` names; None for a bucket.

    Every door asks here, so that what is a URL to one does not become a folder of that name by another.

    Raises:
        InvalidOption: it is another URL, no path at all, or a bucket where none can be.
    """
    text = path_text(location)
    if text.lower().startswith("file:/"):
        url = urlsplit(text)
        if url.netloc in {"", "localhost"}:
            return Path(unquote(url.path))
    found = _URL.match(text)
    if text and found is None:
        # ``~name`` is a folder's name as well, so only the user's own is understood.
        return Path(text).expanduser() if text == "~" or text.startswith("~/") else Path(text)
    scheme, separator, rest = text.partition("://")
    if may_be_bucket and separator and scheme in _SCHEMES and rest.strip("/"):
        return None
    remedy = "Pass a path or s3://bucket/prefix; for another object store the result of open_bucket."
    if not may_be_bucket:
        remedy = "Pass a directory. A tenant in a bucket is one of a store: open(root).tenant(id)."
    raise InvalidOption(
        f"{text!r} is no directory of this machine" + (" and no bucket." if may_be_bucket else "."),
        cause="Directories, file: URLs and, for a store or a table, s3:// URLs with a bucket are opened.",
        remedy=remedy,
    )


def storage_at(location: str | os.PathLike[str], options: Mapping[str, str] | None = None) -> Storage:
    """Return the storage at a directory, a ``file:`` URL or ``s3://bucket/prefix``.

    ``options`` configure access to a bucket, under the names of AWS's environment variables
    (``AWS_ENDPOINT_URL``, ``AWS_REGION``, ``AWS_ACCESS_KEY_ID``, ...; upper or lower case); the
    environment supplies omitted ones.
    """
    place = local_directory(location)
    text = os.fspath(location)
    named = {name.upper(): value for name, value in (options or {}).items()}
    unknown = sorted(set(named) - VARIABLES)
    if unknown:
        raise InvalidOption(
            f"{unknown[0]!r} is not an option of a storage.",
            cause=f"The options are {', '.join(sorted(VARIABLES))}.",
            remedy="Correct its name, or omit it.",
        )
    if place is not None:
        return LocalStorage(place)
    rest = text.partition("://")[2]
    access = S3Access.of_variables({**os.environ, **named})
    return open_bucket(f"s3://{rest.strip('/')}", **access.obstore_options())
