"""Tenants for tests that move no stored rows, so that no engine is needed."""

import io
import os
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from freezeframe.engine.base import FindTask, MergeResult, MergeTask
from freezeframe.settings import Settings
from freezeframe.storage import LocalStorage, MemoryStorage
from freezeframe.store import Tenant


class NoEngine:
    """Where Spark must not be asked: any call is a failure of the test."""

    def __getattr__(self, name: str) -> Any:
        def refuse(*_: Any) -> NoReturn:
            raise AssertionError(f"the engine was asked to {name}")

        return refuse


class FindingEngine:
    """What Spark does for streams of any size, done here for the few rows of a test: it finds keys."""

    def __init__(self, storage: Any) -> None:
        self._storage = storage

    def require_shared(self, folder: str) -> None:
        """Here all is one process."""

    def find(self, task: FindTask) -> pa.Table:
        """See ``TableEngine.find``."""
        names = [field["name"] for field in task.target_schema["fields"]]
        places = {key: place for place, key in enumerate(self._keys(task.keys[0], names))}
        found = [
            (file, row, places[key])
            for file, path in enumerate(task.stored)
            for row, key in enumerate(self._keys(path, names))
            if key in places
        ]
        types = {"file": pa.int32(), "row": pa.int64(), "place": pa.int64()}
        columns = zip(*found, strict=True) if found else ([], [], [])
        return pa.table({name: pa.array(c, types[name]) for name, c in zip(types, columns, strict=True)})

    def merge(self, task: MergeTask) -> MergeResult:
        """See ``TableEngine.merge``; only the counting of an overwrite is needed."""
        assert (task.mode, task.write) == ("overwrite", False)
        old, new = (
            {tuple(row[name] for name in task.key): row for path in paths for row in self._rows(path)}
            for paths in (task.stored, task.batch)
        )
        both = old.keys() & new.keys()
        updated = sum(old[key] != new[key] for key in both)
        return MergeResult(len(new) - len(both), updated, len(both) - updated, len(old) - len(both))

    def _rows(self, path: str) -> list[dict[str, Any]]:
        content = self._storage.read(path.removeprefix(self._storage.root).lstrip("/"))
        return pq.read_table(io.BytesIO(content)).to_pylist()

    def _keys(self, path: str, names: list[str]) -> list[tuple[Any, ...]]:
        return [tuple(row[name] for name in names) for row in self._rows(path)]


@pytest.fixture
def open_finding():
    """A function that opens a tenant on any storage, with an engine that finds keys without Spark."""
    known: dict[str, Settings] = {}

    def opened(storage: Any, **options: Any) -> Tenant:
        # Settings look through the environment each time, which takes longer than to open a tenant.
        settings = known.get(repr(options)) or known.setdefault(repr(options), Settings(**options))
        return Tenant(storage, FindingEngine(storage), settings)

    return opened


@pytest.fixture
def open_on():
    """A function that opens a tenant on any storage, without an engine."""
    return lambda storage: Tenant(storage, NoEngine(), Settings())


@pytest.fixture
def keyed(tmp_path):
    """Settings with a master key in a file."""
    file = tmp_path / "master.key"
    file.write_bytes(os.urandom(32))
    file.chmod(0o600)
    return Settings(master_key_file=file)


@pytest.fixture
def memory():
    """A storage in memory."""
    return MemoryStorage()


@pytest.fixture
def local(tmp_path):
    """A storage in a temporary directory."""
    return LocalStorage(tmp_path / "snapshots")
