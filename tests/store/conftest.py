"""Tenants for tests that move no stored rows, so that no engine is needed."""

import os
from functools import partial

import pytest
from tests.given import tenant

from freezeframe.engine.protocol import TableEngine
from freezeframe.settings import Settings
from freezeframe.storage import LocalStorage, MemoryStorage


class NoEngine(TableEngine):
    """Where Spark must not be asked: any call is a failure of the test."""

    def _behind(self):
        raise AssertionError("the engine was asked")

    def close(self):
        """Nothing to close."""


@pytest.fixture
def open_finding():
    """A function that opens a tenant on any storage, for upserts and overrides, which need no Spark."""
    return tenant


@pytest.fixture
def open_on():
    """A function that opens a tenant on any storage, without an engine."""
    return partial(tenant, by=NoEngine())


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
