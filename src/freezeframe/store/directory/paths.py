"""Paths inside a tenant's snapshot directory, all defined here.

    Account.snapshot/        a stream: a plain Delta table
    _freezeframe/format.json   which format this is
    _freezeframe/log/          the tenant log, N.json by put-if-absent
    _freezeframe/staging/      leases of transactions under way, long commits before they are landed
    _freezeframe/blobs/        <writeId>/<name>: the bytes of files, never changed once written
    _freezeframe/keys/         the data key of sealed files, wrapped

and in a store, which holds many tenants:

    tenants/<folder>/            a tenant's snapshot directory, under a name that says nothing
    _freezeframe/registry/       which tenant of which environment has which folder
    _freezeframe/proof.json      the report of the last ``freezeframe prove``
    job-roots/<folder>/          the folders that a tenant's scripts ran in (on a local disk; ``job_folders``)

Names are relative to the tenant's storage (the store's, for the last four). See the design's "On disk".
"""

from __future__ import annotations

import re

from freezeframe.identifiers import StreamName

OURS = "_freezeframe"
FORMAT_FILE = f"{OURS}/format.json"
PROOF_FILE = f"{OURS}/proof.json"
TENANT_LOG_FOLDER = f"{OURS}/log"
STAGING_FOLDER = f"{OURS}/staging"
BLOBS_FOLDER = f"{OURS}/blobs"
KEYS_FOLDER = f"{OURS}/keys"
REGISTRY_FOLDER = f"{OURS}/registry"
TENANTS_FOLDER = "tenants"
JOB_ROOTS_FOLDER = "job-roots"
_TENANT_ROOT = re.compile(rf"(?:^|/){TENANTS_FOLDER}/([0-9a-f]{{32}})$")
_TABLE_SUFFIX = ".snapshot"


def table_folder(stream: StreamName) -> str:
    """The folder of a stream's Delta table."""
    return f"{stream}{_TABLE_SUFFIX}"


def table_name(folder: str) -> str | None:
    """The stream whose table a folder would be; None for any other folder."""
    return folder.removesuffix(_TABLE_SUFFIX) if folder.endswith(_TABLE_SUFFIX) else None


def is_table_folder(name: str) -> bool:
    """Whether a folder of that name, directly in a tenant's directory, is a stream's table."""
    return name.casefold().endswith(_TABLE_SUFFIX)


def lease_file(write_id: str) -> str:
    """The lease file of an open transaction."""
    return f"{STAGING_FOLDER}/{write_id}.json"


def long_commit_file(sha256: str) -> str:
    """A table's commit that is too long for the entry, by the SHA-256 of its bytes."""
    return f"{STAGING_FOLDER}/{sha256}.commit"


def blob_file(blob: str) -> str:
    """The file of a blob, by the blob's name."""
    return f"{BLOBS_FOLDER}/{blob}"


def key_file(number: int) -> str:
    """A record of the tenant's wrapped data key."""
    return f"{KEYS_FOLDER}/{number:020d}.json"


def tenant_folder(folder: str) -> str:
    """The snapshot directory of a tenant in a store, by its folder in the registry."""
    return f"{TENANTS_FOLDER}/{folder}"


def tenant_of(root: str) -> str:
    """The folder name of a store's tenant, from its storage's root; else empty."""
    found = _TENANT_ROOT.search(root)
    return found.group(1) if found else ""
