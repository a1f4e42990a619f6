"""Where a path in the log leads, and files read by ranges."""

import os
from pathlib import Path

import pytest

from freezeframe.errors import CorruptData, CorruptLog, StorageUnavailable, UnsupportedTable
from freezeframe.log.scan.data_files import StoredFile, file_name, open_parquet, read_failure, read_range
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
