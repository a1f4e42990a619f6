"""Storages that break one promise each, on a real disk: what the proofs have to find."""

import contextlib
import os
import re
import threading
import time
from dataclasses import replace

from freezeframe.errors import StorageUnavailable
from freezeframe.storage import FileStatus, LocalStorage
from freezeframe.storage.local import make_folder, write_durably
from freezeframe.store.tenant_log.entry import from_signed_line, to_signed_line


class RenamingStorage(LocalStorage):
    """No atomic create: looks whether the name is free, then renames. As stock local writers do."""

    def put_if_absent(self, name, content):
        path = self.local_path(name)
        make_folder(path.parent)
        if path.exists():
            raise FileExistsError(name)
        temporary = path.with_name(f".{os.getpid()}.{os.urandom(6).hex()}.tmp")
        write_durably(temporary, content)
        temporary.rename(path)


class TearingStorage(LocalStorage):
    """A file shows under its name while it is written."""

    def put_if_absent(self, name, content):
        whole = content if isinstance(content, bytes) else b"".join(content)
        path = self.local_path(name)
        make_folder(path.parent)
        with path.open("xb", buffering=0) as file:
            file.write(whole[: len(whole) // 2])
            time.sleep(0.002)
            file.write(whole[len(whole) // 2 :])


class BufferingStorage(LocalStorage):
    """Acknowledges a create and writes it a second later, as a disk does that ignores fsync."""

    def __init__(self, root):
        super().__init__(root)
        self._pending = {}

    def put_if_absent(self, name, content):
        if "/log/0" not in name:
            super().put_if_absent(name, content)
            return
        if name in self._pending or self.local_path(name).exists():
            raise FileExistsError(name)
        self._pending[name] = content if isinstance(content, bytes) else b"".join(content)
        timer = threading.Timer(1, self._write, [name])
        timer.daemon = True
        timer.start()

    def _write(self, name):
        # The folder may be gone meanwhile, and the process as well.
        with contextlib.suppress(FileExistsError):
            super().put_if_absent(name, self._pending[name])
        del self._pending[name]

    def read(self, name, offset=0, length=None):
        content = self._pending.get(name)
        if content is None:
            return super().read(name, offset, length)
        return content[offset:] if length is None else content[offset : offset + length]

    def list_from(self, folder, start=""):
        found = {item.name: item for item in super().list_from(folder, start)}
        for path, content in list(self._pending.items()):
            above, _, name = path.rpartition("/")
            if above == folder.strip("/") and name >= start:
                found.setdefault(name, FileStatus(name, len(content), time.time_ns() // 1_000_000))
        return iter(sorted(found.values(), key=lambda item: item.name.encode()))


class WaveringStorage(LocalStorage):
    """No broken promise: some answers are lost, and for a moment nothing is answered."""

    def __init__(self, root):
        super().__init__(root)
        self._silent_until = 0.0

    def _answer(self):
        if time.monotonic() < self._silent_until:
            raise StorageUnavailable("The storage does not answer.", remedy="Try again.")

    def put_if_absent(self, name, content):
        self._answer()
        super().put_if_absent(name, content)
        if "/log/0" in name and os.urandom(1)[0] % 4 == 0:
            self._silent_until = time.monotonic() + 0.05
            self._answer()

    def read(self, name, offset=0, length=None):
        self._answer()
        return super().read(name, offset, length)

    def list_from(self, folder, start=""):
        self._answer()
        return super().list_from(folder, start)


class StaleStorage(LocalStorage):
    """A listing does not show what was created in the last second."""

    def list_from(self, folder, start=""):
        oldest = time.time() * 1000 - 1000
        return (item for item in super().list_from(folder, start) if item.modified_ms < oldest)


class KeepingStorage(LocalStorage):
    """What is deleted stays."""

    def delete(self, name, *, durable=True):
        pass


class GreedyStorage(LocalStorage):
    """With each data file that is deleted the newest one of the same stream goes as well."""

    def delete(self, name, *, durable=True):
        super().delete(name, durable=durable)
        above = name.rpartition("/")[0].rpartition("/")[0]
        if name.endswith(".parquet") and above.endswith(".snapshot"):
            data = [item for item in self.list_below(above) if not item.name.startswith("_")]
            if data:
                newest = max(data, key=lambda item: item.modified_ms)
                super().delete(f"{above}/{newest.name}", durable=durable)


class LateClockStorage(LocalStorage):
    """Its clock is a day late."""

    def list_from(self, folder, start=""):
        for item in super().list_from(folder, start):
            yield replace(item, modified_ms=item.modified_ms - 86_400_000)


class ExpiringStorage(LocalStorage):
    """Each folder keeps its six newest files only, as under a bucket's lifecycle rule."""

    def put_if_absent(self, name, content):
        super().put_if_absent(name, content)
        folder = name.rpartition("/")[0]
        kept = sorted(self.list_from(folder), key=lambda item: item.modified_ms)
        for one in kept[:-6]:
            super().delete(f"{folder}/{one.name}", durable=False)


class SharingStorage(LocalStorage):
    """All tenants have one folder."""

    def _check_name(self, name):
        return super()._check_name(re.sub("tenants/[0-9a-f]{32}", "tenants/shared", name))


class HalvingStorage(LocalStorage):
    """Of every second commit it publishes the streams without the files, and nothing looks damaged."""

    def __init__(self, root):
        super().__init__(root)
        self._written_as = {}

    def put_if_absent(self, name, content):
        if re.search(r"_freezeframe/log/\d{20}\.json$", name):
            content = self._half(content if isinstance(content, bytes) else b"".join(content))
        super().put_if_absent(name, content)

    def _half(self, content):
        record, sha256 = from_signed_line(content)
        record["previous"] = self._written_as.get(record["previous"], record["previous"])
        if record["version"] % 2:
            record["changes"] = [change for change in record["changes"] if "file" not in change]
        half = to_signed_line(record)
        self._written_as[sha256] = from_signed_line(half)[1]
        return half


class LyingStorage(LocalStorage):
    """Every fourth entry of a tenant is created, and reported as refused."""

    def put_if_absent(self, name, content):
        super().put_if_absent(name, content)
        entry = re.search(r"_freezeframe/log/(\d{20})\.json$", name)
        if entry and int(entry[1]) % 4 == 3:
            raise StorageUnavailable("The storage refused it.", remedy="Try again.")
