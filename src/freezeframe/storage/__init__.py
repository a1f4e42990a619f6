"""Bytes under names: the seam between freezeframe and a disk or an object store."""

from freezeframe.storage.base import FileStatus, Storage
from freezeframe.storage.below import PrefixStorage
from freezeframe.storage.local import LocalStorage
from freezeframe.storage.memory import MemoryStorage
from freezeframe.storage.objects import ObjectStorage

__all__ = ["FileStatus", "LocalStorage", "MemoryStorage", "ObjectStorage", "PrefixStorage", "Storage"]
