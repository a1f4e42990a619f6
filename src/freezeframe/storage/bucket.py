"""Opens a storage by URL; its packages are an extra, loaded on use."""

from __future__ import annotations

from typing import Any

from freezeframe.extras import requires_extra
from freezeframe.storage.base import Storage


def open_bucket(url: str, *, is_trusted: bool = False, **options: Any) -> Storage:
    """The objects below a URL such as ``s3://bucket/folder``; ``options`` are those of obstore's store.

    ``is_trusted`` says that the store is known to create atomically, as Amazon's own S3 is.

    Raises:
        MissingExtra: the extra ``s3`` is not installed.
    """
    with requires_extra("s3"):
        from freezeframe.storage.objects import ObjectStorage  # noqa: PLC0415 - an extra
    return ObjectStorage.at(url, is_trusted=is_trusted, **options)
