"""Sets several options of a Spark Connect session by one request."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql.connect import proto
from pyspark.sql.connect.client import SparkConnectClient


def set_configs(client: SparkConnectClient, options: Mapping[str, str]) -> None:
    """Set all of them for the client's session; raises what Spark raises."""
    pairs = [proto.KeyValue(key=name, value=value) for name, value in options.items()]
    client.config(proto.ConfigRequest.Operation(set=proto.ConfigRequest.Set(pairs=pairs)))
