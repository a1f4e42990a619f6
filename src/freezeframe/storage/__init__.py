"""Storage: the interface to local disks, object stores and memory, and its implementations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from freezeframe.lazy_names import lazy_names

if TYPE_CHECKING:
    from freezeframe.storage.base import FileStatus, PrefixStorage, Storage
    from freezeframe.storage.local import LocalStorage
    from freezeframe.storage.location import open_bucket
    from freezeframe.storage.memory import MemoryStorage
    from freezeframe.storage.objects import ObjectStorage

__all__ = [
    "FileStatus",
    "LocalStorage",
    "MemoryStorage",
    "ObjectStorage",
    "PrefixStorage",
    "Storage",
    "open_bucket",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "FileStatus": ".base",
            "LocalStorage": ".local",
            "MemoryStorage": ".memory",
            "ObjectStorage": ".objects",
            "PrefixStorage": ".base",
            "Storage": ".base",
            "open_bucket": ".location",
        },
    )
