"""Where a path in the log leads, and files read by ranges."""

import os
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap64
from tests.log.tables import inline_vector

from freezeframe.errors import CorruptData, CorruptLog, StorageUnavailable, UnsupportedTable
from freezeframe.log.format.actions import DeletionVector
from freezeframe.log.scan.data_files import (
    StoredFile,
    bitmap_bytes,
    file_name,
    inline_rows,
    open_parquet,
    read_failure,
    read_range,
    require_file_version,
    stored_rows,
    vector_file,
    vector_files,
    vector_name,
    z85_decode,
    z85_encode,
)
from freezeframe.log.scan.file_rows import deleted_rows
from freezeframe.storage import LocalStorage, MemoryStorage


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("a.parquet", "t/a.parquet"),
        ("p=1/a%20b.parquet", "t/p=1/a b.parquet"),
        ("100%2525.parquet", "t/100%25.parquet"),
        ("file:/data/t/a.parquet", "t/a.parquet"),
        ("file:///data/other/a%25b.parquet", "other/a%b.parquet"),
        ("/data/t/a.parquet", "t/a.parquet"),
        ("file:///elsewhere/a.parquet", Path("/elsewhere/a.parquet")),
        ("./p/../a.parquet", "t/a.parquet"),
        ("../t/a.parquet", "t/a.parquet"),
        ("file:///data/./x/..//t/a.parquet", "t/a.parquet"),
        ("x%3Ay/a.parquet", "t/x:y/a.parquet"),
        ("3A:b.parquet", "t/3A:b.parquet"),  # a scheme begins with a letter
    ],
)
def test_paths_are_uris(path, name):
    """Relative paths are below the table, absolute ones are found wherever they are."""
    assert name == file_name(LocalStorage("/data"), "t", path)


def test_a_table_may_be_the_root_itself():
    """A table in the storage's own folder has names without a prefix."""
    assert file_name(LocalStorage("/data"), "", "a.parquet") == "a.parquet"


def test_other_storages_are_refused():
    """A file on a storage that is not this one is named, not guessed at."""
    with pytest.raises(UnsupportedTable, match="s3://bucket"):
        file_name(LocalStorage("/data"), "t", "s3://bucket/a.parquet")


@pytest.mark.parametrize("path", ["../x", "a/../../x", "%2e%2e/x", "../t2/x", ".."])
def test_paths_stay_in_the_table(path):
    """Climbing is damage, spelled plainly or escaped."""
    with pytest.raises(CorruptLog):
        file_name(LocalStorage("/data"), "t", path)


def test_a_stored_file_reads_like_one_on_disk():
    """Reading from any position gives what is there, and nothing beyond the end."""
    storage = MemoryStorage()
    storage.put_if_absent("x", b"0123456789")
    file = StoredFile(storage, "x", 10)
    assert (file.readable(), file.seekable()) == (True, True)
    assert file.read(4) == b"0123"
    assert (file.tell(), file.read()) == (4, b"456789")
    assert (file.read(1), file.seek(-3, os.SEEK_END), file.read(9)) == (b"", 7, b"789")
    assert (file.seek(2), file.seek(3, os.SEEK_CUR), file.read(2)) == (2, 5, b"56")


def test_missing_files_are_damage_that_names_them(tmp_path):
    """A file that the log names and that is not there is ``CorruptData``, by name and by absolute path."""
    for name in ("t/gone.parquet", tmp_path / "gone.parquet"):
        with pytest.raises(CorruptData, match=r"gone\.parquet") as caught:
            open_parquet(LocalStorage(tmp_path), name, 10)
        assert caught.value.error_code == "FAILED_READ_FILE.FILE_NOT_EXIST"
        with pytest.raises(CorruptData):
            read_range(LocalStorage(tmp_path), name, 0, 4)


def test_a_failing_disk_is_no_damage():
    """An error of the operating system may pass; it is not said to be damage."""
    assert isinstance(read_failure("x", OSError(5, "Input/output error")), StorageUnavailable)
    assert isinstance(read_failure("x", OSError("Corrupt snappy compressed data.")), CorruptData)


@pytest.mark.parametrize("scheme", ["s3", "s3a", "s3n", "S3A"])
@pytest.mark.parametrize("root", ["s3", "s3a"])
def test_hadoops_names_of_a_bucket_are_the_bucket(scheme, root):
    """Spark writes s3a:// where others say s3://; another bucket is refused under every name."""

    class Bucket(MemoryStorage):
        @property
        def root(self):
            return f"{root}://bucket/tables"

    assert file_name(Bucket(), "t", f"{scheme}://bucket/tables/t/a%20b.parquet") == "t/a b.parquet"
    with pytest.raises(UnsupportedTable):
        file_name(Bucket(), "t", f"{scheme}://bucket/tables2/t/a.parquet")


def test_a_file_is_found_through_another_name_of_the_folder(tmp_path):
    """A path may name the folder itself where the storage was opened through a link, and the other way."""
    (tmp_path / "data").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "data")
    for one, other in (("data", "link"), ("link", "data")):
        storage = LocalStorage(tmp_path / one)
        assert file_name(storage, "t", f"file:{tmp_path}/{other}/t/a.parquet") == "t/a.parquet"


# Deletion vectors: the protocol's bytes in both directions, and nothing that fails a check.


positions = st.sets(st.integers(0, 2**40), max_size=50)


def test_the_protocols_own_examples():
    """The example descriptors of the protocol: an inline vector of six rows, and a relative path's name."""
    inline = DeletionVector("i", "^Bg9^0rr910000000000iXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L", 44, 6)
    assert inline_rows(inline).tolist() == [3, 4, 7, 11, 18, 29]
    stored = DeletionVector("u", "ab^-aqEH.-t@S}K{vb[*k^", 36, 2, 1)
    assert vector_name(stored) == "ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"


@given(positions)
def test_inline_vectors_come_back(rows):
    """What fits into the log comes back from it."""
    vector = inline_vector(BitMap64(rows))
    if vector is not None:
        assert sorted(rows) == inline_rows(vector).tolist()
        assert len(rows) == vector.cardinality


@given(st.lists(positions, min_size=1, max_size=4))
def test_vectors_of_one_file_come_back(many):
    """Several vectors in one file are each found at their own offset."""
    files = vector_files([BitMap64(rows) for rows in many])
    assert {files[0].content} == {file.content for file in files}
    for rows, file in zip(many, files, strict=True):
        vector = file.vector
        require_file_version(file.content[:1], file.name)
        block = file.content[vector.offset : vector.offset + vector.size_in_bytes + 8]
        assert sorted(rows) == stored_rows(vector, block, file.name).tolist()
        assert vector_name(vector) == file.name


def test_a_file_may_lie_in_a_folder():
    """A prefix becomes a folder of the table and part of the descriptor."""
    file = vector_file(BitMap64([1]), prefix="ab")
    assert file.name.startswith("ab/deletion_vector_")
    assert vector_name(file.vector) == file.name


@given(st.binary(max_size=40).map(lambda raw: raw[: len(raw) // 4 * 4]))
def test_z85_comes_back(raw):
    """Bytes turned into text and back are the same."""
    assert raw == z85_decode(z85_encode(raw), len(raw))


def test_z85_is_the_published_one():
    """The reference string of the Z85 specification."""
    assert z85_encode(bytes.fromhex("864fd26fb559f75b")) == "HelloWorld"


@pytest.mark.parametrize("text", ["abcd", 'ab"cd', "#####", "ab cd"])
def test_text_that_is_no_z85_is_damage(text):
    """Another length, a foreign letter, or a number beyond four bytes."""
    with pytest.raises(CorruptData):
        z85_decode(text, 4)


@given(st.integers(0, 10_000), st.integers(0, 7))
def test_a_flip_in_a_stored_vector_is_found(at, bit):
    """Length and checksum leave no flip of a stored vector unseen."""
    file = vector_file(BitMap64([1, 5, 2**33]))
    block = bytearray(file.content[1:])
    block[at % len(block)] ^= 1 << bit
    with pytest.raises(CorruptData):
        stored_rows(file.vector, bytes(block), file.name)


def test_other_formats_and_sizes_are_damage():
    """Another file version, magic number or count, a cut block, an unknown kind: each is refused."""
    file = vector_file(BitMap64([1, 2]))
    with pytest.raises(CorruptData, match="version"):
        require_file_version(b"\x02", file.name)
    with pytest.raises(CorruptData):
        stored_rows(file.vector, file.content[1:-1], file.name)
    other = struct.pack("<i", 1) + bitmap_bytes(BitMap64([1]))[4:]
    padded = other + bytes(-len(other) % 4)
    with pytest.raises(CorruptData, match="number"):
        inline_rows(DeletionVector("i", z85_encode(padded), len(other), 1))
    good = inline_vector(BitMap64([1, 2]))
    with pytest.raises(CorruptData, match="names 2 rows"):
        inline_rows(DeletionVector("i", good.path_or_inline_dv, good.size_in_bytes, 3))
    with pytest.raises(CorruptData, match="kind"):
        deleted_rows(MemoryStorage(), "t", DeletionVector("z", "", 1, 1))
