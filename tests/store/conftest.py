"""Tenants for tests that move no stored rows, so that no engine is needed."""

from typing import Any, NoReturn

import pytest

from freezeframe.settings import Settings
from freezeframe.storage import LocalStorage, MemoryStorage
from freezeframe.store import Tenant


class NoEngine:
    """Where Spark must not be asked: any call is a failure of the test."""

    def __getattr__(self, name: str) -> Any:
        def refuse(*_: Any) -> NoReturn:
            raise AssertionError(f"the engine was asked to {name}")

        return refuse


@pytest.fixture
def open_on():
    """A function that opens a tenant on any storage, without an engine."""
    return lambda storage: Tenant(storage, NoEngine(), Settings())


@pytest.fixture
def memory():
    """A storage in memory."""
    return MemoryStorage()


@pytest.fixture
def local(tmp_path):
    """A storage in a temporary directory."""
    return LocalStorage(tmp_path / "snapshots")
