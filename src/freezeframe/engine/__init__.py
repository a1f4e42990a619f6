"""Rows in, rows out: the one package that knows Spark, which is loaded with ``SparkEngine``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from freezeframe.lazy_names import lazy_names

if TYPE_CHECKING:
    from freezeframe.engine.spark import SparkEngine

__all__ = [
    "SparkEngine",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "SparkEngine": ".spark",
        },
    )

from freezeframe.engine.pyspark_4_3 import keep_quiet_about_pandas

keep_quiet_about_pandas()
