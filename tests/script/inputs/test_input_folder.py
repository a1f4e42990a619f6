"""Files of a folder by stream, oldest first."""

import pytest

from freezeframe.errors import InputNotFound
from freezeframe.script.inputs.input_folder import stream_files


def test_a_stream_is_the_name_up_to_the_last_dash(tmp_path):
    """Files of one stream come in the order of their stamps, whatever their case or neighbours."""
    for name in [
        "Account-20200812T000000.csv",
        "Account-20200811T121507.CSV",
        "Order-Line-20200811T121507.csv",
        "plain.csv",
        "-odd.csv",
        ".hidden-1.csv",
        "Account-1.parquet",
        "Skipped-1.csv",
    ]:
        (tmp_path / name).touch()
    (tmp_path / "Folder-1.csv").mkdir()

    found = stream_files(tmp_path, [".csv"], ignore=["Skipped"])

    assert {stream: [file.name for file in files] for stream, files in found.items()} == {
        "-odd": ["-odd.csv"],
        "Account": ["Account-20200811T121507.CSV", "Account-20200812T000000.csv"],
        "Order-Line": ["Order-Line-20200811T121507.csv"],
        "plain": ["plain.csv"],
    }


def test_a_single_file_is_a_folder_of_one(tmp_path):
    """A path to a file is read as that file, as gluestick does."""
    file = tmp_path / "Account-1.csv"
    file.touch()

    assert {"Account": [file]} == stream_files(str(file), [".csv"])


def test_a_missing_folder_is_named(tmp_path):
    """A wrong INPUT_DIR is said at once, not taken for a sync without rows."""
    with pytest.raises(InputNotFound, match="nowhere"):
        stream_files(tmp_path / "nowhere", [".csv"])
