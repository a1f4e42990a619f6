"""Storage: the interface to local disks, object stores and memory, and its implementations."""

from freezeframe.storage.base import FileStatus, Storage
from freezeframe.storage.bucket import open_bucket
from freezeframe.storage.local import LocalStorage
from freezeframe.storage.memory import MemoryStorage
from freezeframe.storage.prefix import PrefixStorage

__all__ = ["FileStatus", "LocalStorage", "MemoryStorage", "PrefixStorage", "Storage", "open_bucket"]
