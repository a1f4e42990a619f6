"""LocalStorage beyond the contract of all storages: what a listing of a disk looks at."""

import itertools
import os
import shutil
import stat
import subprocess
import sys

import pytest
from tests.examples import sampled

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


# Create-if-absent on a real disk, killed or failed at every system call that changes something.


STRACE = shutil.which("strace")
pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(STRACE is None, reason="strace not found: crashes at system calls skipped"),
]

CONTENT = b"0123456789" * 10
PROGRAM = """
import os, sys
from freezeframe.storage import LocalStorage
storage = LocalStorage(sys.argv[1])
os.write(1, b"GO\\n")
try:
    storage.put_if_absent("new/folder/x.json", b"0123456789" * 10)
    os.write(1, b"ACK\\n")
except Exception as error:
    os.write(1, type(error).__name__.encode() + b"\\n")
"""
# On other machines the library may use other calls for the same thing.
CALLS = "mkdir,mkdirat,openat,write,fsync,link,linkat,unlink,unlinkat"


def run(folder, *injected):
    command = [STRACE, "-f", "-qq", "-o", folder / "trace", "-e", f"trace={CALLS}", *injected]
    found = subprocess.run(
        [*command, sys.executable, "-c", PROGRAM, folder / "root"], capture_output=True, check=False
    )
    return found.stdout.decode().split()[1:], (folder / "trace").read_text().splitlines()


def changes(trace):
    """(call, how often it came before in the whole run) of each call of the create itself."""
    counts, found, going = {}, [], False
    for line in trace:
        call = line.split(None, 1)[1].split("(", 1)[0]
        counts[call] = counts.get(call, 0) + 1
        if call == "write" and '"GO' in line:
            going = True
        elif going and call in CALLS.split(",") and '"ACK' not in line:
            found.append((call, counts[call]))
    return found


def is_sound(folder, acknowledged):
    """Acknowledged: there, whole. Not acknowledged: whole or absent. Left-overs are hidden."""
    path = folder / "root" / "new" / "folder" / "x.json"
    if acknowledged and not path.exists():
        return False
    seen = (
        [file.name for file in path.parent.iterdir() if file.name[0] != "."] if path.parent.exists() else []
    )
    return seen in ([], ["x.json"]) and (not path.exists() or path.read_bytes() == CONTENT)


def test_killed_at_every_call(tmp_path):
    """A kill at any call leaves the file whole or absent, and never an acknowledgement without a file."""
    first = tmp_path / "first"
    first.mkdir()
    said, trace = run(first)
    assert said == ["ACK"]
    points = changes(trace)
    assert len(points) >= 10, points
    for number, (call, when) in enumerate(points):
        folder = tmp_path / str(number)
        folder.mkdir()
        said, _ = run(folder, "-e", f"inject={call}:signal=SIGKILL:when={when}")
        assert is_sound(folder, said == ["ACK"]), (call, when, said)


@pytest.mark.sampled
def test_failed_at_every_call(tmp_path):
    """An error at any call is a typed error, and the file is whole or absent; a success means it is there."""
    first = tmp_path / "first"
    first.mkdir()
    _, trace = run(first)
    codes = itertools.cycle(["ENOSPC", "EIO"])
    cases = [(call, when, next(codes)) for call, when in changes(trace) for _ in range(2)]
    for number, (call, when, code) in enumerate(sampled(cases, every=3)):
        folder = tmp_path / str(number)
        folder.mkdir()
        said, _ = run(folder, "-e", f"inject={call}:error={code}:when={when}")
        assert said[0] in {"ACK", "StorageFull", "StorageUnavailable", "OutcomeUnknown"}, (call, when, said)
        assert is_sound(folder, said == ["ACK"]), (call, when, said)
