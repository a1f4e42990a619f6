"""Small rows for tests of stores, and what a tenant or a storage holds, as plain values."""

import pyarrow as pa

from freezeframe.settings import Settings
from freezeframe.store import Tenant
from freezeframe.store.diff.counts import ArrowEngine


def table(*ids):
    """Rows with these numbers as key and as value."""
    return pa.table({"Id": [str(id_) for id_ in ids], "v": list(ids)})


def tenant_on(storage):
    """A tenant that needs no Spark."""
    return Tenant(storage, ArrowEngine(), Settings())


def content(reader):
    """All that a tenant, a job or a view holds."""
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
