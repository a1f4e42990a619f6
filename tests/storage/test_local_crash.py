"""Create-if-absent on a real disk, killed or failed at every system call that changes something."""

import shutil
import subprocess
import sys

import pytest
from tests.examples import sampled

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
@pytest.mark.parametrize("code", ["ENOSPC", "EIO"])
def test_failed_at_every_call(tmp_path, code):
    """An error at any call is a typed error, and the file is whole or absent; a success means it is there."""
    first = tmp_path / "first"
    first.mkdir()
    _, trace = run(first)
    for number, (call, when) in enumerate(sampled(changes(trace), every=2)):
        folder = tmp_path / str(number)
        folder.mkdir()
        said, _ = run(folder, "-e", f"inject={call}:error={code}:when={when}")
        assert said[0] in {"ACK", "StorageFull", "StorageUnavailable", "OutcomeUnknown"}, (call, when, said)
        assert is_sound(folder, said == ["ACK"]), (call, when, said)
