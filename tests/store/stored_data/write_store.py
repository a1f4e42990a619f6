"""Writes a small store with all that a store can hold, and what each of its versions reads as.

``store-0.1.tar.gz`` and ``store-0.1.json`` are from commit 65bd332 ("One piece runs a script in a process
of its own for the tests"), so that tests can hold that its data is still read. Written anew:

    git archive 65bd332 | tar x -C OLD
    PYTHONPATH=OLD/src python tests/store/stored_data/write_store.py tests/store/stored_data/store-0.1

Only the public API is used here, so that each version of the package can run it.
"""

import datetime as dt
import hashlib
import json
import os
import sys
import tarfile
import tempfile
from decimal import Decimal
from pathlib import Path

import pyarrow as pa

import freezeframe

# Sealed files of the fixture are sealed with this key; it protects nothing.
MASTER_KEY = bytes(range(32))
SETTINGS = {
    "FREEZEFRAME_CHECKPOINT_INTERVAL": "4",
    "FREEZEFRAME_VECTORS_FROM_BYTES": "1",
    "FREEZEFRAME_SPARK_IDLE_SECONDS": "5",
}


def types():
    """Two rows with a value of each type, and one without values."""
    return pa.table(
        {
            "Id": pa.array(["007", "08", "é"]),
            "whole": pa.array([2**62, -1, None], pa.int64()),
            "small": pa.array([1, -1, None], pa.int16()),
            "float": pa.array([0.1, float("inf"), None], pa.float64()),
            "money": pa.array([Decimal("12.30"), Decimal("-0.01"), None], pa.decimal128(18, 2)),
            "day": pa.array([dt.date(1900, 1, 1), dt.date(2026, 2, 28), None]),
            "moment": pa.array(
                [
                    dt.datetime(2026, 1, 2, 3, 4, 5, 678901, dt.UTC),
                    dt.datetime(1970, 1, 1, tzinfo=dt.UTC),
                    None,
                ],
                pa.timestamp("us", "UTC"),
            ),
            "local": pa.array([1_782_907_200_000_000, None, None], pa.int64()).cast(pa.timestamp("us")),
            "flag": pa.array([True, False, None]),
            "bytes": pa.array([b"\x00\xff", b"", None]),
            "tags": pa.array([["a", None], [], None], pa.list_(pa.string())),
            "address": pa.array([{"city": "Köln", "zip": "01"}, {"city": None, "zip": "2"}, None]),
        }
    )


def accounts(first, last, name):
    """Accounts with these numbers, under one name."""
    numbers = range(first, last)
    return pa.table(
        {
            "Id": [f"{number:04}" for number in numbers],
            "Name": [f"{name} {number}" for number in numbers],
            "N": list(numbers),
        }
    )


def write_acme(tenant):
    """A tenant with each kind of update, of file and of change."""
    account = tenant.stream("Account")
    account.update(accounts(0, 40, "first"), key="Id")
    account.update(accounts(10, 14, "second"), key="Id")
    with tenant.job("job-1", message="two streams and a file", who="ada") as job:
        job.stream("Account").update(accounts(35, 45, "third"), key="Id")
        job.stream("Types").update(types(), key="Id")
        job.files.write("tenant-config.json", b'{"region": "eu"}')
    tenant.tag("before-columns", who="ada")
    account.update(pa.table({"Id": ["0001", "0002"], "City é": ["Rome", "Oslo"]}), key="Id", drop_column="N")
    account.update(accounts(0, 30, "full").drop(["N"]), key="Id", mode="full")
    ledger = pa.table({"Date": ["2026-01-01", "2026-01-01", "2026-02-01"], "Total": [1, 1, 2]})
    tenant.stream("Ledger").update(ledger, override=True)
    tenant.stream("Ledger").update(
        pa.table({"Date": ["2026-02-03"], "Total": [2.5]}), replace_where="Date >= '2026-02-01'"
    )
    contact = tenant.stream("Contact")
    contact.update(pa.table({"Id": [1, 2], "Phone": ["1", "2"]}), key="Id", history="scd2")
    contact.update(pa.table({"Id": [2, 3], "Phone": ["two", "3"]}), key="Id")
    lead = tenant.stream("Lead")
    lead.update(pa.table({"Id": [1, 2, 3]}), key="Id")
    lead.update(pa.table({"Id": [1, 2]}), key="Id", mode="full", deletes="flag")
    tenant.files.write("tenant-config.json", b'{"region": "us"}')
    tenant.files.write("secret.json", b'{"password": "invented"}', sealed=True)
    tenant.files.write("large", b"0123456789" * 10_000)
    tenant.files.move("large", "folder/large é")
    tenant.restore(2, streams=["Account"], message="as it was", who="ada")
    tenant.drop_stream("Lead", who="ada")
    account.update(accounts(5, 7, "last"), key="Id")


def write_globex(tenant):
    """A second tenant with a stream of the same name."""
    tenant.stream("Account").update(pa.table({"Id": ["0001"], "Name": ["of globex"]}), key="Id")
    tenant.set_retention(keep_versions=5, who="bob")
    tenant.stream("Account").update(pa.table({"Id": ["0002"], "Name": ["too"]}), key="Id")


def plain(value):
    """A value as JSON has it."""
    if isinstance(value, dict):
        return {name: plain(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, bytes):
        return {"sha256": hashlib.sha256(value).hexdigest()}
    return value if value is None or isinstance(value, (bool, int, str)) else repr(value)


def read_version(tenant, version):
    """All streams and files of a version: keys, types, rows in order, and digests of bytes."""
    seen = tenant.at(version)
    streams = {}
    for name in seen.streams():
        table = seen.stream(name).read(as_="arrow")
        columns = [name for name in table.column_names if not name.startswith("_valid")]
        rows = sorted((plain(row) for row in table.select(columns).to_pylist()), key=json.dumps)
        types_ = {field.name: str(field.type) for field in table.schema}
        streams[name] = {"key": list(seen.stream(name).key), "types": types_, "rows": rows}
    files = {item.path: plain(seen.files.read(item.path)) for item in seen.files.list(recursive=True)}
    return {"streams": streams, "files": files}


def read_tenant(tenant):
    """All versions of a tenant, its history and its tags."""
    history = [[item.version, item.message, item.who, item.job_id] for item in tenant.history()]
    versions = {str(item[0]): read_version(tenant, item[0]) for item in history}
    return {"version": tenant.version, "history": history, "tags": tenant.tags(), "versions": versions}


def write(target):
    """Write ``TARGET.tar.gz`` and ``TARGET.json``."""
    with tempfile.TemporaryDirectory() as folder:
        key, root = Path(folder, "master.key"), Path(folder, "store")
        key.write_bytes(MASTER_KEY)
        key.chmod(0o600)
        os.environ |= {**SETTINGS, "FREEZEFRAME_MASTER_KEY_FILE": str(key)}
        store = freezeframe.open(root)
        acme, globex = (store.tenant(name, create=True) for name in ("acme", "globex"))
        write_acme(acme)
        write_globex(globex)
        store.tenant("left", create=True).files.write("a", b"1")
        store.delete_tenant("left")
        freezeframe.open(root, "staging").tenant("acme", create=True).files.write("a", b"of staging")
        expected = {"acme": read_tenant(acme), "globex": read_tenant(globex)}
        Path(f"{target}.json").write_text(
            json.dumps(expected, ensure_ascii=False, separators=(",", ":")) + "\n"
        )
        with tarfile.open(f"{target}.tar.gz", "w:gz") as archive:
            archive.add(root, "store")


if __name__ == "__main__":
    write(sys.argv[1])
