"""The rows of a frame in this process.

Python workers load this module: it imports nothing of PySpark.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa


def collect(frame: Any) -> pa.Table:
    """All rows of a frame; of a Connect frame by one request.

    ``toArrow`` and ``toPandas`` ask for the schema or for settings before it.
    """
    plan = getattr(frame, "_plan", None)  # a classic frame has none
    if plan is None:
        table: pa.Table = frame.toArrow()
        return table
    client = frame.sparkSession.client
    return client.to_table(plan.to_proto(client), {})[0]
