"""Where things are in a tenant's snapshot directory: the one place that makes such names.

    Account.snapshot/        a stream: a plain Delta table
    _freezeframe/format.json   which format this is
    _freezeframe/log/          the tenant log, N.json by put-if-absent
    _freezeframe/staging/      leases of transactions under way, long commits before they are landed
    _freezeframe/blobs/        <writeId>/<name>: the bytes of files, never changed once written

Names are relative to the tenant's storage. See the design's "On disk".
"""

from __future__ import annotations

from freezeframe.identifiers import StreamName

OURS = "_freezeframe"
FORMAT_FILE = f"{OURS}/format.json"
TENANT_LOG_FOLDER = f"{OURS}/log"
STAGING_FOLDER = f"{OURS}/staging"
BLOBS_FOLDER = f"{OURS}/blobs"
_TABLE_SUFFIX = ".snapshot"


def table_folder(stream: StreamName) -> str:
    """The folder of a stream's Delta table."""
    return f"{stream}{_TABLE_SUFFIX}"


def lease_file(write_id: str) -> str:
    """The file that says that a transaction is under way."""
    return f"{STAGING_FOLDER}/{write_id}.json"


def long_commit_file(sha256: str) -> str:
    """A table's commit that is too long for the entry, by the SHA-256 of its bytes."""
    return f"{STAGING_FOLDER}/{sha256}.commit"


def blob_file(blob: str) -> str:
    """The bytes of a file, by the blob that its change names."""
    return f"{BLOBS_FOLDER}/{blob}"
