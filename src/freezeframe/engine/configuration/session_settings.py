"""Sets several options of a Spark Connect session in one request."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql.connect import proto
from pyspark.sql.connect.client import SparkConnectClient


def set_configs(client: SparkConnectClient, options: Mapping[str, str]) -> None:
    """Set all options for the client's session; Spark's errors pass through."""
    pairs = [proto.KeyValue(key=name, value=value) for name, value in options.items()]
    client.config(proto.ConfigRequest.Operation(set=proto.ConfigRequest.Set(pairs=pairs)))
