"""Object storage through obstore: S3 and compatible ones, Google, Azure, memory.

Create-if-absent is the store's conditional put (``If-None-Match: *``); ``probe`` detects a store
without it. A request may have succeeded although its response was lost, so a failed put reads the
object back before it reports an outcome.
"""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import obstore
from obstore.exceptions import (
    AlreadyExistsError,
    BaseError,
    PermissionDeniedError,
    PreconditionError,
    UnauthenticatedError,
)
from obstore.store import ObjectStore, from_url

from freezeframe.errors import OutcomeUnknown, StorageUnavailable
from freezeframe.storage.base import FileStatus, check_name

# Responses of a store that did not execute the request.
_REFUSED = (PermissionDeniedError, UnauthenticatedError)
# Spark opens the same objects through Hadoop's connector, under another scheme.
_SPARK_SCHEMES = {"s3": "s3a"}


class ObjectStorage:
    """The objects below ``prefix`` of an obstore store; ``url`` is its location in messages and for Spark.

    A new object is sent in one request, because a multipart upload cannot be conditional; S3 limits
    it to 5 GB.
    """

    def __init__(
        self, store: ObjectStore, url: str, prefix: str = "", access: str = "", *, is_trusted: bool = True
    ) -> None:
        self._store = store
        self.access = access
        """Which endpoint and key it is reached by, as a digest; empty where a store was given."""
        self.is_trusted = is_trusted
        """Whether the store is known to create atomically: its probe is short, no commit is read back."""
        self._url = url.rstrip("/")
        self._prefix = prefix.strip("/")

    @classmethod
    def at(cls, url: str, *, is_trusted: bool = False, **options: Any) -> ObjectStorage:
        """Return the objects below a URL such as ``s3://bucket/folder``; ``options`` are passed to obstore.

        Amazon's own S3 is trusted, any other store if ``is_trusted``.
        """
        access = hashlib.sha256(repr(sorted(options.items())).encode()).hexdigest()
        host = urlsplit(options.get("endpoint", "")).hostname or ""
        is_amazon = not host or host.endswith((".amazonaws.com", ".amazonaws.com.cn"))
        return cls(from_url(url, **options), url, access=access, is_trusted=is_trusted or is_amazon)

    def sendable(self) -> ObjectStorage | None:
        """Return the same objects, if another process can reach them: the store has its keys with it."""
        return self if self.access else None

    @property
    def root(self) -> str:
        """The URL."""
        return self._url

    def __repr__(self) -> str:
        return f"ObjectStorage({self.root!r})"

    def list_from(self, folder: str, start: str = "") -> Iterator[FileStatus]:
        """See ``Storage.list_from``."""
        base = self._path(folder) if folder.strip("/") else self._prefix
        below = f"{base}/" if base else ""
        found = self._statuses(folder, base, below, start)
        if start and self._url.startswith("s3://"):
            return found  # lazy: S3 lists in order, so a reader that stops early saves further pages
        return iter(sorted(found, key=lambda status: status.name.encode()))

    def _statuses(self, folder: str, base: str, below: str, start: str) -> Iterator[FileStatus]:
        try:
            for meta in self._list(base, below, start):
                # An object at the base path itself is Hadoop's marker of an empty folder.
                name = meta["path"].removeprefix(below)
                if meta["path"] != base and "/" not in name and name.encode() >= start.encode():
                    yield FileStatus(name, meta["size"], int(meta["last_modified"].timestamp() * 1000))
        except BaseError as error:
            raise _unavailable("list", folder, error) from error

    def _list(self, base: str, below: str, start: str) -> Iterator[Any]:
        if not start:
            yield from obstore.list_with_delimiter(self._store, prefix=base or None)["objects"]
            return
        # The store's start offset is exclusive, so a shorter one includes the name itself.
        for chunk in obstore.list(self._store, prefix=base or None, offset=below + start[:-1]):
            yield from chunk

    def list_below(self, folder: str) -> Iterator[FileStatus]:
        """See ``Storage.list_below``."""
        base = self._path(folder) if folder.strip("/") else self._prefix
        below = f"{base}/" if base else ""
        try:
            found = [
                FileStatus(
                    meta["path"].removeprefix(below),
                    meta["size"],
                    int(meta["last_modified"].timestamp() * 1000),
                )
                for chunk in obstore.list(self._store, prefix=base or None)
                for meta in chunk
                if meta["path"] != base
            ]
        except BaseError as error:
            raise _unavailable("list", folder, error) from error
        return iter(found)

    def read(self, name: str, offset: int = 0, length: int | None = None) -> bytes:
        """See ``Storage.read``."""
        path = self._path(name)
        try:
            if not offset and length is None:
                return bytes(obstore.get(self._store, path).bytes())
            if length == 0:
                obstore.head(self._store, path)
                return b""
            wanted: Any = {"offset": offset} if length is None else (offset, offset + length)
            try:
                # One request: a store truncates a range at the end of the object.
                return bytes(obstore.get(self._store, path, options={"range": wanted}).bytes())
            except BaseError:
                if offset < obstore.head(self._store, path)["size"]:
                    raise
                return b""  # the range starts beyond the end, which a store refuses
        except FileNotFoundError:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name) from None
        except BaseError as error:
            raise _unavailable("read", name, error) from error

    def put_if_absent(self, name: str, content: bytes | Iterable[bytes]) -> None:
        """See ``Storage.put_if_absent``.

        A client that repeats a request may find the name taken by its own first request. After
        ``FileExistsError`` a caller with unique content compares it to find out.
        """
        whole = content if isinstance(content, bytes) else b"".join(content)
        try:
            obstore.put(self._store, self._path(name), whole, mode="create", use_multipart=False)
        except (AlreadyExistsError, PreconditionError):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), name) from None
        except _REFUSED as error:
            raise _unavailable("create", name, error) from error
        except (BaseError, OSError) as error:
            try:
                found = self.read(name)
            except (FileNotFoundError, StorageUnavailable):
                # A missing object proves nothing: the request may still be in progress.
                raise OutcomeUnknown(
                    f"It is not known whether {name!r} was created.",
                    cause=_first_line(error),
                    remedy="Read it back before deciding; do not delete what it refers to.",
                ) from error
            if found != whole:
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), name) from error

    def replace(
        self,
        name: str,
        content: bytes | Iterable[bytes],
        *,
        durable: bool = True,  # noqa: ARG002 - the protocol's signature
    ) -> None:
        """See ``Storage.replace``."""
        whole = content if isinstance(content, bytes) else b"".join(content)
        try:
            obstore.put(self._store, self._path(name), whole, mode="overwrite", use_multipart=False)
        except (BaseError, OSError) as error:
            raise _unavailable("replace", name, error) from error

    def delete(self, name: str, *, durable: bool = True) -> None:  # noqa: ARG002 - the protocol's signature
        """See ``Storage.delete``."""
        try:
            obstore.delete(self._store, self._path(name))
        except FileNotFoundError:
            return
        except (BaseError, OSError) as error:
            raise _unavailable("delete", name, error) from error

    def prune(self, folder: str) -> None:
        """See ``Storage.prune``: folders are only parts of names here."""

    def local_path(self, name: str) -> Path | None:  # noqa: ARG002 - the protocol's signature
        """None: the files are remote."""
        return None

    def uri(self, name: str) -> str:
        """Return the object's URL under Spark's scheme for the store."""
        scheme, _, rest = self._url.partition("://")
        return f"{_SPARK_SCHEMES.get(scheme, scheme)}://{rest}/{name}"

    def _path(self, name: str) -> str:
        clean = check_name(name, self.root).strip("/")
        return f"{self._prefix}/{clean}" if self._prefix else clean


def _unavailable(verb: str, name: str, error: Exception) -> StorageUnavailable:
    return StorageUnavailable(
        f"The storage could not {verb} {name!r}.",
        cause=_first_line(error),
        remedy="Check the address, the credentials and the network, then run the same call again.",
    )


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
