"""Small files that unpack to a lot."""

import json

import pyarrow as pa
import pyarrow.parquet as pq

MEGABYTE = 1024 * 1024


def one_text(rows):
    """A column in which every row is the same megabyte."""
    texts = pa.array(["x" * MEGABYTE])
    return pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int32()), texts)


def parquet_text(file):
    """Two gigabytes of one repeated text."""
    pq.write_table(pa.table({"Id": range(2000), "a": one_text(2000)}), file, compression="zstd")


def parquet_nested(file):
    """The same in lists."""
    lists = pa.ListArray.from_arrays(pa.array(range(2001), pa.int32()), one_text(2000))
    pq.write_table(pa.table({"Id": range(2000), "a": lists}), file, compression="zstd")


def parquet_numbers(file):
    """Ten columns of four million equal numbers."""
    column = pa.array([7] * 1_000_000).dictionary_encode()
    batch = pa.table({f"c{number}": column for number in range(10)})
    schema = pa.schema({name: pa.int64() for name in batch.column_names})
    with pq.ParquetWriter(file, schema) as writer:
        for _ in range(4):
            writer.write_table(batch.cast(schema))


def arrow_zeros(file, kind=pa.ipc.new_stream):
    """Half a gigabyte of zeros, compressed."""
    batch = pa.record_batch({"Id": pa.array([0] * 1_000_000)})
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with kind(str(file), batch.schema, options=options) as writer:
        for _ in range(64):
            writer.write_batch(batch)


def arrow_file_zeros(file):
    """The same as a file with a footer."""
    arrow_zeros(file, pa.ipc.new_file)


def arrow_text(file):
    """Two gigabytes of one repeated text, not compressed."""
    table = pa.table({"Id": range(2000), "a": one_text(2000)})
    with pa.ipc.new_stream(str(file), table.schema) as writer:
        writer.write_table(table)


def arrow_runs(file):
    """One run of a long text."""
    runs = pa.RunEndEncodedArray.from_arrays(pa.array([2000], pa.int32()), ["x" * MEGABYTE])
    table = pa.table({"a": runs})
    with pa.ipc.new_stream(str(file), table.schema) as writer:
        writer.write_table(table)


def arrow_nothing(file):
    """A billion rows of nothing."""
    batch = pa.record_batch({"a": pa.nulls(1_000_000_000)})
    with pa.ipc.new_stream(str(file), batch.schema) as writer:
        writer.write_batch(batch)


def json_names(file):
    """Each line has a column that no other has."""
    file.write_text("".join(json.dumps({f"c{number}": 1}) + "\n" for number in range(9_999)))


BOMBS = {
    parquet_text: ".parquet",
    parquet_nested: ".parquet",
    parquet_numbers: ".parquet",
    arrow_zeros: ".arrow",
    arrow_file_zeros: ".arrow",
    arrow_text: ".arrow",
    arrow_runs: ".arrow",
    arrow_nothing: ".arrow",
    json_names: ".jsonl",
}
