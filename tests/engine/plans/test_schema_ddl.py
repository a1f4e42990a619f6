"""Arrow types in Spark's own words, and the rows that Spark then gives back."""

import subprocess
import sys

import pyarrow as pa
import pytest

from freezeframe.engine.configuration import cores
from freezeframe.engine.plans.python_tasks import spark_ddl
from freezeframe.engine.server.server import attach


def test_every_type_that_a_stream_keeps_has_a_name():
    """Timestamps with and without a zone differ; names are quoted, nested types spelled out."""
    schema = pa.schema(
        [
            ("a`b c", pa.timestamp("us")),
            ("t", pa.timestamp("us", tz="UTC")),
            ("d", pa.decimal128(20, 2)),
            ("l", pa.list_(pa.struct([("x", pa.int8()), ("y", pa.null())]))),
            ("m", pa.map_(pa.string(), pa.date32())),
        ]
    )

    expected = (
        "`a``b c` timestamp_ntz, `t` timestamp, `d` decimal(20,2), "
        "`l` array<struct<`x`: tinyint, `y`: void>>, `m` map<string,date>"
    )
    assert spark_ddl(schema) == expected


SCRIPT = """
import sys
from pyspark.sql import SparkSession
from freezeframe.engine.frames.rows import Rows
from freezeframe.gluestick import read_csv_folder

session = SparkSession.builder.remote(sys.argv[2]).getOrCreate()
frame = read_csv_folder(sys.argv[1], as_="spark", session=session)["A"]
expected = read_csv_folder(sys.argv[1], as_="arrow")["A"]
same = Rows(frame.toArrow()).to_arrow().equals(expected)
print(Rows(frame).library, same)
session.stop()
"""


@pytest.mark.spark
def test_spark_has_the_very_rows_that_arrow_has(tmp_path, spark_settings):
    """Types and values read from a folder are the same in a Spark frame, over Spark Connect."""
    (tmp_path / "A-1.csv").write_text(
        "i,s,t,n,d,b,e,f,l\n"
        '9007199254740993,007,2020-01-01T00:00:00Z,2020-01-01 00:00:00,2020-01-01,True,,1.5,"x\ny"\n'
        ',"",,,,,,,\n'
    )
    attachment = attach(spark_settings, f"local[{cores()}]", lambda _: None)
    # A process of its own: the session must not meet those of other tests.
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT, tmp_path, attachment.address.url],
        capture_output=True,
        text=True,
        check=False,
    )
    attachment.close()

    assert run.stdout.strip() == "spark True", run.stderr[-2000:]
