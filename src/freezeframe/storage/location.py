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

    ``options`` say how a bucket is reached, by the names of the variables of AWS's own tools
    (``AWS_ENDPOINT_URL``, ``AWS_REGION``, ``AWS_ACCESS_KEY_ID``, ...; upper or lower case); those
    variables count for what is left out.

    Raises:
        InvalidOption: a URL of another kind, or an option that does not exist.
        MissingExtra: a bucket, and the extra ``s3`` is not installed.
    """
    text = os.fspath(location)
    named = {name.upper(): value for name, value in (options or {}).items()}
    unknown = sorted(set(named) - VARIABLES)
    if unknown:
        raise InvalidOption(
            f"{unknown[0]!r} is no option of a storage.",
            cause=f"The options are {', '.join(sorted(VARIABLES))}.",
            remedy="Correct its name, or leave it out.",
        )
    if text.startswith("file:"):
        text = unquote(urlsplit(text).path)
    scheme, separator, rest = text.partition("://")
    if not separator:
        return LocalStorage(Path(text))
    if scheme not in _SCHEMES or not rest.strip("/"):
        raise InvalidOption(
            f"{text!r} is neither a directory of this machine nor a bucket.",
            cause="Directories, file: and s3:// URLs are opened.",
            remedy="Pass a path or s3://bucket/prefix; for another object store what open_bucket gives.",
        )
    access = S3Access.of_variables({**os.environ, **named})
    return open_bucket(f"s3://{rest.strip('/')}", **access.obstore_options())
