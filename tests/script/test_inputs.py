"""Files of a folder by stream, oldest first."""

import pytest

from freezeframe.errors import InputNotFound
from freezeframe.script.inputs.stream_files import CSV_EXTENSIONS, JSON_EXTENSIONS, stream_files


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


def test_only_a_stamp_is_cut_from_a_name(tmp_path):
    """Digits, T, Z and _ are one; two streams whose names have a dash stay two."""
    names = ["sales-orders.csv", "sales-leads-1.csv", "A-20250101T000000Z.tsv", "A-2026_01_02.csv.gz"]
    for name in [*names, "B-T.csv", "Ä-1.CSV.GZ", "no-dash-", "C-1b.csv"]:
        (tmp_path / name).touch()

    found = stream_files(tmp_path, CSV_EXTENSIONS)

    assert {stream: [file.name for file in files] for stream, files in found.items()} == {
        "A": ["A-2026_01_02.csv.gz", "A-20250101T000000Z.tsv"],
        "B-T": ["B-T.csv"],
        "C-1b": ["C-1b.csv"],
        "sales-leads": ["sales-leads-1.csv"],
        "sales-orders": ["sales-orders.csv"],
        "Ä": ["Ä-1.CSV.GZ"],
    }


@pytest.mark.parametrize(
    "stamps",
    [
        ["1", "2", "9", "10", "100"],
        ["20260101T000000", "20260101T121507", "20260101T121507_5", "20260101T13", "20260102T000000"],
        ["20260101T000000Z", "20260101T000001Z"],
        ["20260101_9", "20260101_10"],
        ["20260101", "20260101T000000", "20260102"],
    ],
)
def test_files_of_a_stream_are_in_the_order_of_their_stamps(tmp_path, stamps):
    """Numbers as numbers, times as times."""
    for stamp in reversed(stamps):
        (tmp_path / f"S-{stamp}.csv").touch()
    found = stream_files(tmp_path, CSV_EXTENSIONS)["S"]
    assert [f"S-{stamp}.csv" for stamp in stamps] == [file.name for file in found]


def test_files_that_no_reader_takes_are_named(tmp_path, caplog):
    """One line; files of other readers, hidden ones and those of exports are none of them."""
    for name in ["A-1.csv", "B-1.parquet", "C.txt", "D.xlsx", ".x", "_SUCCESS", "E.snapshot.schema.json"]:
        (tmp_path / name).touch()
    stream_files(tmp_path, CSV_EXTENSIONS)
    (line,) = caplog.messages
    assert line.endswith("takes such files: C.txt, D.xlsx.")


def test_the_schema_file_of_an_export_holds_no_rows(tmp_path, caplog):
    """It lies beside JSON files and is neither read nor remarked on."""
    for name in ("A.snapshot.jsonl", "A.snapshot.schema.json", "B-1.json"):
        (tmp_path / name).touch()
    found = stream_files(tmp_path, JSON_EXTENSIONS)
    assert ["A.snapshot.jsonl", "B-1.json"] == [file.name for files in found.values() for file in files]
    assert not caplog.records


def test_a_single_file_is_a_folder_of_one(tmp_path):
    """A path to a file is read as that file, as gluestick does."""
    file = tmp_path / "Account-1.csv"
    file.touch()
    assert {"Account": [file]} == stream_files(str(file), [".csv"])


def test_a_missing_folder_is_named(tmp_path):
    """A wrong INPUT_DIR is said at once, not taken for a sync without rows."""
    with pytest.raises(InputNotFound, match="nowhere"):
        stream_files(tmp_path / "nowhere", [".csv"])
