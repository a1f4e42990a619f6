"""Where things are in a tenant's snapshot directory: the one place that makes such names.

    Account.snapshot/        a stream: a plain Delta table
    _freezeframe/format.json   which format this is
    _freezeframe/log/          the tenant log, N.json by put-if-absent

Names are relative to the tenant's storage. See the design's "On disk".
"""

from __future__ import annotations

from freezeframe.identifiers import StreamName

OURS = "_freezeframe"
FORMAT_FILE = f"{OURS}/format.json"
TENANT_LOG_FOLDER = f"{OURS}/log"
_TABLE_SUFFIX = ".snapshot"


def table_folder(stream: StreamName) -> str:
    """The folder of a stream's Delta table."""
    return f"{stream}{_TABLE_SUFFIX}"
