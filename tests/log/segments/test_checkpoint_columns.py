"""Statistics kept as columns come back as the JSON that commits have, value for value."""

import io
import json
from datetime import UTC, datetime
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from tests.log.tables import TableBuilder, parquet
from tests.old_calendar import NEW, OLD

from freezeframe.log.primitives.paths import checkpoint_name
from freezeframe.log.scan.rows import files_matching
from freezeframe.log.segments.checkpoint_columns import statistics_texts
from freezeframe.log.table.upkeep import write_checkpoint

SPARK_2 = {"org.apache.spark.version": "2.4.8"}
FAR = pa.scalar(2_932_897, pa.int32()).cast(pa.date32())  # +10000-01-01


def table_of(kind, bounds, said=None, **parquet_options):
    """A table of one file whose statistics are in its checkpoint only, as a struct."""
    table = TableBuilder()
    schema = {"name": "v", "type": kind, "nullable": True, "metadata": {}}
    table.create()
    metadata = table.accounts[0]["metaData", ""]
    from dataclasses import replace

    text = json.dumps({"type": "struct", "fields": [schema, {**schema, "name": "p", "type": "string"}]})
    table.commit(replace(metadata, schema_string=text))
    table.commits(3)
    values = pa.StructArray.from_arrays([bounds], names=["v"])
    parsed = pa.StructArray.from_arrays(
        [pa.array([1]), values, values], names=["numRecords", "minValues", "maxValues"]
    )
    add = pa.StructArray.from_arrays(
        [
            pa.array(["f2"]),
            pa.array([[("p", "a")]], pa.map_(pa.string(), pa.string())),
            pa.array([1]),
            pa.array([1]),
            pa.array([False]),
            parsed,
        ],
        names=["path", "partitionValues", "size", "modificationTime", "dataChange", "stats_parsed"],
    )
    heads = [one for key, one in table.accounts[2].items() if key[0] in ("protocol", "metaData")]
    small = pq.read_table(io.BytesIO(parquet(heads))).select(["protocol", "metaData"])
    whole = pa.concat_tables([small, pa.table({"add": add})], promote_options="default")
    sink = io.BytesIO()
    pq.write_table(whole.replace_schema_metadata(said), sink, **parquet_options)
    return table.raw(checkpoint_name(2), sink.getvalue())


def is_kept(table, where):
    return bool(files_matching(table.log().current_snapshot, where).num_rows)


LAST = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)


@pytest.mark.parametrize(
    ("kind", "bounds", "value", "options"),
    [
        (
            "timestamp",
            pa.array([LAST], pa.timestamp("us", "UTC")),
            pa.scalar(LAST, pa.timestamp("us", "UTC")),
            {"use_deprecated_int96_timestamps": True},
        ),
        (
            "decimal(38,2)",
            pa.array([Decimal("12345678901234567.89")], pa.decimal128(38, 2)),
            Decimal("12345678901234567.89"),
            {},
        ),
        ("date", pa.array([FAR.value], pa.int32()).cast(pa.date32()), FAR, {}),
        (
            "timestamp_ntz",
            pa.array([253_402_300_800_000_000], pa.timestamp("us")),
            pa.scalar(253_402_300_800_000_000, pa.timestamp("us")),
            {},
        ),
        ("date", OLD["d"][:1], NEW["d"][0], {"said": SPARK_2}),
        ("timestamp", OLD["t"][:1], pa.scalar(NEW["t"][0], pa.timestamp("us", "UTC")), {"said": SPARK_2}),
        (
            "timestamp",
            OLD["t"][:1].cast(pa.timestamp("us")),
            pa.scalar(NEW["t"][0], pa.timestamp("us", "UTC")),
            {"said": SPARK_2, "use_deprecated_int96_timestamps": True},
        ),
    ],
    ids=["INT96", "decimal", "far date", "far time", "old date", "old time", "old INT96"],
)
def test_b036_bounds_kept_as_columns_are_exact(kind, bounds, value, options):
    """A value that is a file's only one is found by it, also after our own checkpoint, and no other is."""
    table = table_of(kind, bounds, **options)
    below = value
    if isinstance(value, pa.TimestampScalar) and value.value < 0:
        # A writer may have cut the seconds of such a time's offset: its bounds reach a minute further.
        below = pa.scalar(value.value - 60_000_000, value.type)
    for again in (False, True):
        if again:
            write_checkpoint(table.commits(4).log().current_snapshot)
        assert is_kept(table, pc.field("v") == pc.scalar(value)), again
        assert again or not is_kept(table, pc.field("v") < pc.scalar(below))


def texts(values):
    return statistics_texts(pa.chunked_array([values])).to_pylist()


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (pa.array([0.1], pa.float32()), "0.1"),
        (pa.array([float("nan")]), '"NaN"'),
        (pa.array([float("-inf")]), '"-Infinity"'),
        (pa.array([1e300]), "1e+300"),
        (pa.array([Decimal("1e-30")], pa.decimal128(38, 30)), "1E-30"),
        (pa.array([Decimal("9" * 38)], pa.decimal128(38, 0)), "9" * 38),
        (pa.array(['a"\\\n\u2028\U0001f600']), json.dumps('a"\\\n\u2028\U0001f600')),
        (pa.array(["\U0001f600\u00fc"]), '"\U0001f600\u00fc"'),
        (pa.array([True]), "true"),
        (pa.array([-1_000_000], pa.int32()).cast(pa.date32()), '"-0768-02-04"'),
        (pa.array([-1], pa.timestamp("us", "UTC")), '"1969-12-31T23:59:59.999Z"'),
        (pa.array([-1], pa.timestamp("us")), '"1969-12-31T23:59:59.999"'),
    ],
)
def test_values_are_written_as_delta_writes_them(value, text):
    """Each type has the JSON form of commits; what JSON has no number for is quoted."""
    assert ['{"minValues":{"a.b":' + text + "}}"] == texts(
        pa.StructArray.from_arrays([pa.StructArray.from_arrays([value], names=["a.b"])], names=["minValues"])
    )


def test_nulls_are_left_out_at_every_depth():
    """A null struct gives no text, a null field no entry."""
    values = pa.array([{"n": 1, "s": {"a": None}}, None, {"n": None, "s": None}])
    assert texts(values) == ['{"n":1,"s":{}}', None, "{}"]
