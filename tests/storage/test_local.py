"""LocalStorage beyond the contract of all storages: what a listing of a disk looks at."""

import os
import stat

import pytest

from freezeframe.storage import LocalStorage


def folder_of(tmp_path, *names):
    (tmp_path / "f").mkdir()
    for name in names:
        (tmp_path / "f" / name).write_bytes(b"1")
    return LocalStorage(tmp_path)


def test_a_file_is_looked_at_when_the_listing_comes_to_it(tmp_path):
    """Who takes the first names pays for these: what went meanwhile is left out."""
    storage = folder_of(tmp_path, "1", "2", "3")
    listed = storage.list_from("f")
    assert next(listed).name == "1"
    (tmp_path / "f" / "2").unlink()
    assert [status.name for status in listed] == ["3"]


def test_links_folders_and_temporary_files_are_not_listed(tmp_path):
    """Only regular files without a leading dot."""
    storage = folder_of(tmp_path, "a", ".temporary")
    (tmp_path / "f" / "folder").mkdir()
    (tmp_path / "f" / "link").symlink_to(tmp_path / "f" / "a")
    os.mkfifo(tmp_path / "f" / "pipe")
    assert [status.name for status in storage.list_from("f")] == ["a"]


def test_names_beyond_ascii_begin_and_stand_by_their_bytes(tmp_path):
    """A start of any letters; a name that is not UTF-8 has its place too."""
    storage = folder_of(tmp_path, "a", "ä", "ö", "€", "\U0001f600")
    (tmp_path / "f" / os.fsdecode(b"\xe9")).write_bytes(b"1")
    everything = sorted(os.fsencode(status.name) for status in storage.list_from("f"))
    assert [os.fsencode(status.name) for status in storage.list_from("f")] == everything
    assert len(everything) == 6
    assert [status.name for status in storage.list_from("f", "ö")][:2] == ["ö", "€"]
    assert next(status.name for status in storage.list_from("f", "b")) == "ä"


@pytest.fixture
def disk_calls(monkeypatch):
    """What was called on the disk, in order, with the kind of what an fsync is of."""
    called = []

    def noted(name, call):
        def run(*arguments, **options):
            is_folder = name == "fsync" and stat.S_ISDIR(os.fstat(arguments[0]).st_mode)
            called.append(f"{name} of the folder" if is_folder else name)
            return call(*arguments, **options)

        return run

    for name in ("fsync", "link", "rename", "unlink"):
        monkeypatch.setattr(os, name, noted(name, getattr(os, name)))
    return called


@pytest.mark.parametrize(
    ("call", "calls"),
    [
        (lambda item: item.put_if_absent("f/new", b"1"), ["fsync", "link", "fsync of the folder", "unlink"]),
        (lambda item: item.replace("f/old", b"1"), ["fsync", "rename", "fsync of the folder", "unlink"]),
        (lambda item: item.replace("f/old", b"1", durable=False), ["rename", "unlink"]),
        (lambda item: item.delete("f/old"), ["unlink", "fsync of the folder"]),
        (lambda item: item.delete("f/old", durable=False), ["unlink"]),
    ],
    ids=["create", "replace", "replace loosely", "delete", "delete loosely"],
)
def test_bytes_are_on_disk_before_their_name_and_the_name_before_the_answer(
    tmp_path, disk_calls, call, calls
):
    """In this order, so that no power loss leaves a name without its bytes."""
    storage = folder_of(tmp_path, "old")
    disk_calls.clear()
    call(storage)
    assert calls == disk_calls
