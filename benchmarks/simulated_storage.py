"""An object store in memory whose requests take time on a clock of its own: nobody waits for it.

It keeps the real bytes under the real names, so all that is above the storage's seam runs as it is.
Each thread has a clock of its own: the main thread, at its next request, has waited for the slowest of
the threads that worked meanwhile. While something is measured these rest some milliseconds at each request,
for real, so that work is shared out among them as it would be.
"""

from __future__ import annotations

import bisect
import itertools
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from freezeframe.storage import FileStatus

REST_SECONDS = 0.01
_numbers = itertools.count()


@dataclass(frozen=True)
class Prices:
    """What a request takes and costs. The defaults are Amazon's own words for S3 Standard.

    Times: "consistent small object latencies (and first-byte-out latencies for larger objects) of roughly
    100-200 milliseconds", of which the lower end is taken, and 85 MB/s for each request: the pages
    "Best practices design patterns: optimizing Amazon S3 performance" and "Performance guidelines for
    Amazon S3" of its user guide. A listing gives 1,000 names a request (ListObjectsV2). Money: the
    price list of us-east-1, 0.005 dollars for 1,000 PUT and LIST, 0.0004 for 1,000 GET; DELETE is free.
    """

    request_seconds: float = 0.1
    bytes_per_second: float = 85e6
    names_per_listing: int = 1_000
    write_dollars: float = 0.005 / 1000
    read_dollars: float = 0.0004 / 1000


class SimulatedStorage:
    """Files in this process, with the waiting and the bill of an object store."""

    def __init__(self, prices: Prices | None = None) -> None:
        self.prices = prices or Prices()
        self.seconds = 0.0
        self.dollars = 0.0
        self.requests: Counter[str] = Counter()
        self.bytes: Counter[str] = Counter()
        self._files: dict[str, tuple[bytes, int]] = {}
        self._folders: dict[str, list[str]] = {}
        self._start_ms = time.time_ns() // 1_000_000
        self._beside: dict[int, float] = {}
        self._rest_seconds = 0.0
        self._lock = threading.RLock()
        self._root = f"simulated://{next(_numbers)}"

    @property
    def root(self) -> str:
        """A name that no other instance of this process has."""
        return self._root

    @contextmanager
    def measured(self) -> Iterator[dict[str, float]]:
        """What happens inside: the dictionary is filled at the end."""
        found: dict[str, float] = {}
        before = (self.seconds, self.dollars, self.requests.copy(), self.bytes.copy())
        self._rest_seconds = REST_SECONDS
        started = time.process_time()
        yield found
        self._rest_seconds = 0.0
        self._wait_for_others()
        found["cpu_seconds"] = round(time.process_time() - started, 4)
        found["waiting_seconds"] = round(self.seconds - before[0], 4)
        found["dollars"] = round(self.dollars - before[1], 8)
        found |= {
            verb: count - before[2][verb] for verb, count in self.requests.items() if count - before[2][verb]
        }
        found["requests"] = self.requests.total() - before[2].total()
        found["read_mib"] = round((self.bytes["read"] - before[3]["read"]) / 2**20, 3)
        found["written_mib"] = round((self.bytes["put"] - before[3]["put"]) / 2**20, 3)

    def list_from(self, folder: str, start: str = "") -> Iterator[FileStatus]:
        """See ``Storage.list_from``."""
        self._rest()
        with self._lock:
            names = self._folders.get(folder.strip("/"), [])
            found = names[bisect.bisect_left(names, start) :]
            self._listed(len(found))
            prefix = f"{folder.strip('/')}/" if folder.strip("/") else ""
            return iter([self._status(prefix, name) for name in found])

    def list_below(self, folder: str) -> Iterator[FileStatus]:
        """See ``Storage.list_below``."""
        prefix = f"{folder.strip('/')}/" if folder.strip("/") else ""
        with self._lock:
            found = [
                self._status(prefix, name[len(prefix) :]) for name in self._files if name.startswith(prefix)
            ]
            self._listed(len(found))
        return iter(found)

    def read(self, name: str, offset: int = 0, length: int | None = None) -> bytes:
        """See ``Storage.read``."""
        self._rest()
        with self._lock:
            whole = self._files.get(name)
            found = b"" if whole is None else whole[0][offset:][:length]
            self._spend("read", len(found), self.prices.read_dollars)
        if whole is None:
            raise FileNotFoundError(name)
        return found

    def put_if_absent(self, name: str, content: bytes | Iterable[bytes]) -> None:
        """See ``Storage.put_if_absent``."""
        self._rest()
        whole = content if isinstance(content, bytes) else b"".join(content)
        with self._lock:
            self._spend("put", len(whole), self.prices.write_dollars)
            if name in self._files:
                raise FileExistsError(name)
            self._keep(name, whole)

    def replace(self, name: str, content: bytes | Iterable[bytes], *, durable: bool = True) -> None:  # noqa: ARG002
        """See ``Storage.replace``."""
        whole = content if isinstance(content, bytes) else b"".join(content)
        with self._lock:
            self._spend("put", len(whole), self.prices.write_dollars)
            self._keep(name, whole)

    def delete(self, name: str, *, durable: bool = True) -> None:  # noqa: ARG002 - the protocol's signature
        """See ``Storage.delete``."""
        with self._lock:
            self._spend("delete", 0, 0.0)
            if self._files.pop(name, None) is not None:
                folder, _, own = name.rpartition("/")
                names = self._folders[folder]
                del names[bisect.bisect_left(names, own)]

    def prune(self, folder: str) -> None:
        """See ``Storage.prune``: there are no folders."""

    def local_path(self, name: str) -> Path | None:  # noqa: ARG002 - the protocol's signature
        """There is none."""
        return None

    def uri(self, name: str) -> str:
        """A name for messages; no engine can open it."""
        return f"{self.root}/{name}"

    def _keep(self, name: str, whole: bytes) -> None:
        if name not in self._files:
            folder, _, own = name.rpartition("/")
            bisect.insort(self._folders.setdefault(folder, []), own)
        self._files[name] = (whole, self._start_ms + int(self.seconds * 1000))

    def _status(self, prefix: str, name: str) -> FileStatus:
        content, modified_ms = self._files[prefix + name]
        return FileStatus(name, len(content), modified_ms)

    def _listed(self, names: int) -> None:
        for _ in range(max(1, -(-names // self.prices.names_per_listing))):
            self._spend("list", 0, self.prices.write_dollars)

    def _spend(self, verb: str, size: int, dollars: float) -> None:
        self.requests[verb] += 1
        self.bytes[verb] += size
        self.dollars += dollars
        seconds = self.prices.request_seconds + size / self.prices.bytes_per_second
        if threading.current_thread() is threading.main_thread():
            self._wait_for_others()
            self.seconds += seconds
        else:
            own = threading.get_ident()
            self._beside[own] = self._beside.get(own, 0.0) + seconds

    def _wait_for_others(self) -> None:
        self.seconds += max(self._beside.values(), default=0.0)
        self._beside.clear()

    def _rest(self) -> None:
        if threading.current_thread() is not threading.main_thread():
            time.sleep(self._rest_seconds)
