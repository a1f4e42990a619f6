"""Text that is not UTF-8 is refused before anything is written, by whatever door it comes."""

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests import given
from tests.examples import sampled

from freezeframe.engine.frames.frames import to_pandas
from freezeframe.engine.frames.rows import Rows
from freezeframe.errors import BadInput, CorruptData, UnreadableInput
from freezeframe.script.adoption import FoundSnapshotFile
from freezeframe.script.inputs.transfer import import_stream
from freezeframe.script.reading import read_parquet_folder
from freezeframe.storage import LocalStorage
from freezeframe.store.snapshot_files import file_sha256

BYTES = [b"a", b"b\xff\xfe", b"z"]


def text(kind=None):
    """Three texts of which the second is not UTF-8, which Arrow does not notice by itself."""
    kind = kind or pa.string()
    held = {
        pa.string(): pa.binary(),
        pa.large_string(): pa.large_binary(),
        pa.string_view(): pa.binary_view(),
    }
    return pa.Array.from_buffers(kind, len(BYTES), pa.array(BYTES, held[kind]).buffers())


COLUMNS = {
    "string": text(),
    "large": text(pa.large_string()),
    "view": text(pa.string_view()),
    "dictionary": pa.DictionaryArray.from_arrays(pa.array([0, 1, 2]), text()),
    "list": pa.ListArray.from_arrays([0, 1, 2, 3], text()),
    "large list": pa.LargeListArray.from_arrays([0, 1, 2, 3], text(pa.large_string())),
    "fixed list": pa.FixedSizeListArray.from_arrays(text(), 1),
    "list view": pa.ListViewArray.from_arrays([0, 1, 2], [1, 1, 1], text()),
    "struct": pa.StructArray.from_arrays([text()], ["t"]),
    "map key": pa.MapArray.from_arrays([0, 1, 2, 3], text(), pa.array([1, 2, 3])),
    "map value": pa.MapArray.from_arrays([0, 1, 2, 3], pa.array([1, 2, 3]), text()),
    "deep": pa.ListArray.from_arrays([0, 1, 2, 3], pa.StructArray.from_arrays([text()], ["t"])),
}


@pytest.mark.parametrize("column", COLUMNS.values(), ids=COLUMNS)
def test_an_arrow_column_is_refused_with_its_row(column):
    """In every type that holds text, at any depth; the row is named."""
    with pytest.raises(BadInput, match=r"'z'.*UTF-8.*row 1") as caught:
        Rows(pa.table({"k": [1, 2, 3], "z": column})).to_arrow()
    assert caught.value.details["rows"] == [1]


@pytest.mark.parametrize("column", COLUMNS.values(), ids=COLUMNS)
def test_rows_that_are_not_there_do_not_count(column):
    """Bytes outside of a slice, or below a null, are not values."""
    cut = pa.table({"k": [1, 2, 3], "z": column}).slice(2)
    assert Rows(cut).to_arrow().num_rows == 1


def test_text_below_a_null_does_not_count():
    """What lies below a missing struct is not a value."""
    column = pa.StructArray.from_arrays([text()], ["t"], mask=pa.array([False, True, False]))
    assert Rows(pa.table({"z": column})).to_arrow()["z"].to_pylist() == [{"t": "a"}, None, {"t": "z"}]


def test_a_pandas_frame_of_arrow_columns_is_refused():
    """Pandas may hold Arrow's own columns, or categories of them."""
    series = pd.Series(pd.arrays.ArrowExtensionArray(pa.chunked_array([text()])))
    with pytest.raises(BadInput, match="UTF-8"):
        Rows(pd.DataFrame({"z": series})).to_arrow()


def test_an_arrow_name_is_refused():
    """A column's name is text as well."""
    message = pa.BufferOutputStream()
    with pa.ipc.new_stream(message, pa.schema([("name_xx", pa.int64())])) as writer:
        writer.write_table(pa.table({"name_xx": [1]}))
    damaged = message.getvalue().to_pybytes().replace(b"name_xx", b"name_\xff\xfe")
    with pytest.raises(BadInput, match="UTF-8"):
        Rows(pa.ipc.open_stream(damaged).read_all()).to_arrow()


@pytest.mark.parametrize("name", ["k", "z"])
def test_an_update_is_refused_before_anything_is_written(account, name):
    """As a key and as a value; the stream is as it was."""
    account.update(pa.table({"k": ["a"], "z": ["b"]}), key="k")
    rows = {"k": pa.array(["1", "2", "3"]), "z": pa.array(["1", "2", "3"]), name: text()}
    with pytest.raises(BadInput, match="UTF-8"):
        account.update(pa.table(rows))
    assert (account.version, account.read(as_="arrow").to_pylist()) == (0, [{"k": "a", "z": "b"}])


@pytest.fixture
def account(tmp_path):
    """A stream that is not there yet, of a tenant without Spark."""
    return given.tenant(LocalStorage(tmp_path / "snapshots")).stream("Account")


@pytest.fixture
def parquet(tmp_path):
    """A Parquet file with text that is not UTF-8, as other writers let it pass."""
    folder = tmp_path / "sync-output"
    folder.mkdir()
    pq.write_table(pa.table({"k": ["1", "2", "3"], "z": text()}), folder / "Account-20260101.parquet")
    return folder / "Account-20260101.parquet"


@pytest.mark.parametrize("kind", ["arrow", "pandas"])
def test_a_parquet_folder_is_refused(parquet, kind):
    """The file is named."""
    with pytest.raises(BadInput, match="UTF-8") as caught:
        read_parquet_folder(parquet.parent, as_=kind)
    assert str(parquet) in str(caught.value.details)


@pytest.mark.parametrize("bytes_max", [1, 2**30], ids=["streamed", "in memory"])
def test_an_import_is_refused(account, parquet, bytes_max):
    """Whether the file is streamed or read at once."""
    with pytest.raises(BadInput, match="UTF-8"):
        import_stream(account, parquet, "k", memory_bytes_max=bytes_max)
    assert account.version == -1


def test_an_adopted_snapshot_file_is_refused(tmp_path, parquet):
    """A snapshot file of another tool is read by the same rule."""
    file = tmp_path / "Account.snapshot.parquet"
    parquet.rename(file)
    with pytest.raises(BadInput, match="UTF-8"):
        FoundSnapshotFile(file, file_sha256(file)).read(None)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", b"k,z\n1,b\xff\xfe\n"),
        ("a.jsonl", b'{"k": "1", "z": "b\xff\xfe"}\n'),
        ("b.jsonl", b'{"k": "1", "z": "\\ud800"}\n'),
        ("c.jsonl", b'{"k": "1", "\\ud800": "z"}\n'),
        ("d.jsonl", b'{"k": "1", "z": {"\\ud800": "z"}}\n'),
    ],
)
@pytest.mark.parametrize("bytes_max", [1, 2**30], ids=["streamed", "in memory"])
def test_text_files_are_refused(account, tmp_path, name, content, bytes_max):
    """Bytes that are not UTF-8, and halves of a pair of UTF-16 which JSON can spell, in values and names."""
    file = tmp_path / name
    file.write_bytes(content)
    with pytest.raises(UnreadableInput):
        import_stream(account, file, "k", memory_bytes_max=bytes_max)
    assert account.version == -1


def test_stored_text_of_another_writer_is_damage():
    """Rows that another writer stored are told by name, never by an error of the frame library."""
    with pytest.raises(CorruptData, match=r"'z'.*UTF-8"):
        to_pandas(pa.table({"z": text()}))


@pytest.mark.spark
@pytest.mark.sampled
@pytest.mark.parametrize(
    "expression",
    sampled(
        [
            "cast(X'62FFFE' as string)",
            "array(cast(X'62FFFE' as string))",
            "named_struct('t', cast(X'62FFFE' as string))",
            "map('a', cast(X'62FFFE' as string))",
            "map(cast(X'62FFFE' as string), 1)",
            "array(map('a', named_struct('t', cast(X'62FFFE' as string))))",
        ],
        every=6,
    ),
)
def test_a_spark_frame_is_refused(spark_engine, spark_session, tmp_path, expression):
    """Spark takes any bytes for text; what it lands is looked at before a commit names it."""
    stream = given.tenant(LocalStorage(tmp_path), spark_engine).stream("Account")
    frame = spark_session.range(2).selectExpr("cast(id as string) k", f"if(id = 1, {expression}, null) z")
    with pytest.raises(BadInput, match=r"'z'.*UTF-8"):
        stream.update(frame, key="k")
    with pytest.raises(BadInput, match=r"'z'.*UTF-8"):
        stream.update(frame, override=True)
    assert stream.version == -1
