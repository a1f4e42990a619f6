"""``freezeframe.open``: what can be a store's place, and a job of streams and files in it."""

from pathlib import Path

import pandas as pd
import pytest

import freezeframe
from freezeframe.cli.location import location_of
from freezeframe.errors import InvalidName, InvalidOption
from freezeframe.gluestick import to_export
from freezeframe.log import DeltaLog


def test_a_directory_need_not_exist(tmp_path):
    """Opening writes nothing; the first tenant makes the directory, and others find it there."""
    store = freezeframe.open(tmp_path / "new" / "store")
    assert not (tmp_path / "new").exists()
    store.tenant("acme", create=True)
    assert freezeframe.open(str(tmp_path / "new" / "store")).tenants() == ("acme",)
    assert freezeframe.open(tmp_path / "new" / "store", environment="staging").tenants() == ()


@pytest.mark.parametrize(
    "root",
    ["", "s3://", "gs://b", "ftp://host/x", "https://x/y", "http://169.254.169.254/latest"],
)
def test_what_is_no_place_is_refused(root):
    """An empty path and other URLs are refused."""
    with pytest.raises(InvalidOption):
        freezeframe.open(root)


def test_a_file_is_no_store(tmp_path):
    """A file where the directory should be, and an environment that cannot be one, are refused."""
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(InvalidOption):
        freezeframe.open(tmp_path / "file")
    with pytest.raises(InvalidName):
        freezeframe.open(tmp_path, environment="../other")


def test_spark_works_in_a_tenants_folder(tmp_path):
    """Rows are merged in a tenant of a store and in its clone; the two go their own ways."""
    store = freezeframe.open(tmp_path)
    acme = store.tenant("acme", create=True)
    with acme.job("first") as job:
        job.stream("Account").update(pd.DataFrame({"Id": ["007", "8"], "N": [1, 2]}), key="Id")
        job.files.write_json("tenant-config.json", {"a": 1})
    clone = store.clone_tenant("acme", "copy")
    receipt = clone.stream("Account").update(pd.DataFrame({"Id": ["8", "9"], "N": [20, 30]}))
    assert (receipt.inserted, receipt.updated, receipt.version) == (1, 1, 1)
    assert dict(clone.stream("Account").read().set_index("Id")["N"]) == {"007": 1, "8": 20, "9": 30}
    acme.stream("Account").update(pd.DataFrame({"Id": ["007"], "N": [5]}))
    assert dict(acme.stream("Account").read().set_index("Id")["N"]) == {"007": 5, "8": 2}
    assert clone.files.read_json("tenant-config.json") == {"a": 1}


DOORS = {
    "open": lambda place: freezeframe.open(place).tenant("acme", create=True),
    "open_tenant": lambda place: freezeframe.open_tenant(place).files.write("f", b"1"),
    "update_snapshot": lambda place: freezeframe.update_snapshot(
        place, "A", "Id", pd.DataFrame({"Id": ["1"]}), override=True
    ),
    "get_snapshot": lambda place: freezeframe.get_snapshot(place, "A"),
    "DeltaLog": lambda place: DeltaLog.open(f"{place}/A.snapshot").update(),
    "--root": lambda place: location_of(None, place, "acme", None).tenant(),
    "--dir": lambda place: location_of(Path(place), None, None, None).tenant(),
}
URLS = ["gs://bucket/acme", "dbfs:/mnt/acme", "file://host/acme", "s3:/bucket/acme", "HTTP://host/a"]


@pytest.mark.parametrize("door", DOORS)
def test_no_door_takes_a_url_for_a_folders_name(tmp_path, monkeypatch, door):
    """A URL that is not understood is refused; before, some doors made a folder ``gs:`` here."""
    monkeypatch.chdir(tmp_path)
    urls = URLS + ["s3://bucket/acme"] * (door in {"open_tenant", "update_snapshot", "get_snapshot", "--dir"})
    if door == "--dir":
        urls.remove("file://host/acme")  # a path has one slash of it, which is a folder of this machine
    for url in urls:
        with pytest.raises(InvalidOption, match="is no directory of this machine"):
            DOORS[door](url)

    assert [] == list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "door",
    [*(door for door in DOORS if door[0] != "-" and door != "DeltaLog"), "read_csv_folder", "to_export"],
)
def test_no_door_takes_what_is_no_path(tmp_path, monkeypatch, door):
    """Bytes, a text with NUL, a number and nothing are refused by name, and nothing is made."""
    monkeypatch.chdir(tmp_path)
    others = {
        "read_csv_folder": freezeframe.read_csv_folder,
        "to_export": lambda place: to_export(pd.DataFrame({"Id": ["1"]}), "A", place, export_format="csv"),
    }
    for path in (b"abc", "a\0b", 5, None):
        with pytest.raises(InvalidOption, match="is not a path"):
            (DOORS | others)[door](path)

    assert [] == list(tmp_path.iterdir())


@pytest.mark.parametrize("spell", [lambda path: f"file://{path}", lambda path: f"~/{path.name}"])
def test_each_door_understands_file_urls_and_the_home_folder(tmp_path, monkeypatch, spell):
    """They are the folder, wherever the process is."""
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    monkeypatch.setenv("HOME", str(tmp_path))
    one, store = tmp_path / "one", tmp_path / "store"
    DOORS["update_snapshot"](spell(one))
    DOORS["open"](spell(store))

    assert ["1"] == list(DOORS["get_snapshot"](spell(one))["Id"])
    assert 0 == DOORS["DeltaLog"](spell(one)).version
    assert ("A",) == freezeframe.open_tenant(spell(one)).streams() == DOORS["--dir"](spell(one)).streams()
    assert ["acme"] == list(freezeframe.open(store))
    assert () == DOORS["--root"](spell(store)).streams()
    assert [] == list((tmp_path / "elsewhere").iterdir())
