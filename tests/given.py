"""What tests are given, and what they find: tenants with rows and files, counts, and what errors say."""

import os
from contextlib import contextmanager

import pyarrow as pa
import pytest

from freezeframe.settings import Settings
from freezeframe.storage import MemoryStorage
from freezeframe.store import Tenant
from freezeframe.store.diff.counts import ArrowEngine

_known = {}


def settings_with(**options):
    """Settings, made once for the same options and variables: that takes longer than to open a tenant."""
    variables = [item for item in os.environ.items() if item[0].startswith("FREEZEFRAME_")]
    key = repr((options, variables))
    return _known.get(key) or _known.setdefault(key, Settings(**options))


def tenant(storage=None, by=None, streams=None, files=None, key="Id", **options):
    """A tenant, in memory and without Spark if nothing else is named, with rows and files, by settings."""
    storage = MemoryStorage() if storage is None else storage
    opened = Tenant(storage, by or ArrowEngine(), settings_with(**options))
    if streams or files:
        with opened.job() as job:
            for name, rows in (streams or {}).items():
                job.stream(name).update(table_of(rows), key=key)
            for path, content in (files or {}).items():
                job.files.write(path, content)
    return opened


def table_of(rows):
    """The rows: those of a frame, or columns by name."""
    return pa.table(rows) if isinstance(rows, dict) else rows


def table(*ids):
    """Rows with these numbers as key and as value."""
    return pa.table({"Id": [str(id_) for id_ in ids], "v": list(ids)})


def rows_of(reader, name=None, at=None, **options):
    """All rows of a stream, or of that stream of a tenant, now or at a version, a tag or a moment."""
    reader = reader if at is None else reader.at(at)
    stream = reader if name is None else reader.stream(name)
    return stream.read(as_="arrow", **options).to_pylist()


def content(reader):
    """All that a tenant, a job or a view holds: the values of each stream, and the bytes of each file."""
    streams = {
        name: sorted(reader.stream(name).read(as_="arrow")["v"].to_pylist()) for name in reader.streams()
    }
    return streams, {entry.path: reader.files.read(entry.path) for entry in reader.files.list(recursive=True)}


def files_of(storage):
    """Every file of a storage with its bytes."""
    return {status.name: storage.read(status.name) for status in storage.list_below("")}


def counts(receipt):
    """What an update did: rows inserted, updated, unchanged and deleted."""
    return receipt.inserted, receipt.updated, receipt.unchanged, receipt.deleted


@contextmanager
def fails(error, problem=None, *, cause="", remedy=""):
    """What runs in the block fails; a pattern matches the error's text, and its parts have these words."""
    with pytest.raises(error, match=problem) as caught:
        yield caught
    assert cause in caught.value.cause
    assert remedy in caught.value.remedy
