"""Resolves a path or URL to a storage."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import unquote, urlsplit

from freezeframe.errors import InvalidOption
from freezeframe.storage.base import Storage
from freezeframe.storage.bucket import open_bucket
from freezeframe.storage.local import LocalStorage
from freezeframe.storage.s3_access import VARIABLES, S3Access

_SCHEMES = ("s3", "s3a")


def storage_at(location: str | os.PathLike[str], options: Mapping[str, str] | None = None) -> Storage:
    """The storage at a directory, a ``file:`` URL or ``s3://bucket/prefix``.

    ``options`` configure access to a bucket, under the names of AWS's environment variables
    (``AWS_ENDPOINT_URL``, ``AWS_REGION``, ``AWS_ACCESS_KEY_ID``, ...; upper or lower case); the
    environment supplies omitted ones.
    """
    if not isinstance(location, (str, os.PathLike)):
        raise InvalidOption(
            f"{location!r:.80} is not a path.", remedy="Pass a directory, a file: URL or s3://bucket/folder."
        )
    text = os.fspath(location)
    named = {name.upper(): value for name, value in (options or {}).items()}
    unknown = sorted(set(named) - VARIABLES)
    if unknown:
        raise InvalidOption(
            f"{unknown[0]!r} is not an option of a storage.",
            cause=f"The options are {', '.join(sorted(VARIABLES))}.",
            remedy="Correct its name, or omit it.",
        )
    if text.startswith("file:"):
        text = unquote(urlsplit(text).path)
    scheme, separator, rest = text.partition("://")
    if not separator and text:
        return LocalStorage(Path(text))
    if scheme not in _SCHEMES or not rest.strip("/"):
        raise InvalidOption(
            f"{text!r} is neither a directory of this machine nor a bucket.",
            cause="Directories, file: URLs and s3:// URLs with a bucket are opened.",
            remedy="Pass a path or s3://bucket/prefix; for another object store what open_bucket gives.",
        )
    access = S3Access.of_variables({**os.environ, **named})
    return open_bucket(f"s3://{rest.strip('/')}", **access.obstore_options())
