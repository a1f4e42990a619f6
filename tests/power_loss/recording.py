"""The calls by which a process changes files, as strace records them: those of SQLite and Arrow as well."""

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

STRACE = shutil.which("strace")
REPOSITORY = Path(__file__).parent.parent.parent
DESCRIPTORS = ("dup", "dup2", "dup3", "lseek")
WRITES = ("write", "pwrite64", "writev", "pwritev", "pwritev2", "ftruncate", "truncate", "fallocate")
NAMES = ("mkdir", "mkdirat", "link", "linkat", "symlink", "symlinkat", "rmdir", "unlink", "unlinkat")
RENAMES = ("rename", "renameat", "renameat2")
SYNCS = ("fsync", "fdatasync")
OTHERS = ("copy_file_range", "sendfile", "io_uring_enter", "open", "openat", "openat2", "creat")
TRACED = (*DESCRIPTORS, *WRITES, *NAMES, *RENAMES, *SYNCS, *OTHERS)
BYTES_MAX = 2**22

_CALL = re.compile(r"(\w+)\((.*)\) += (-?\d+)(?:<([^>]*)>)?")
_TEXT = re.compile(r'"((?:\\x[0-9a-f]{2})*)"(\.\.\.)?')
_FOLDER_OR_FILE = re.compile(r"(?:AT_FDCWD|(\d+))<([^>]*)>")


@dataclass(frozen=True, slots=True)
class Call:
    """A call that succeeded: its descriptors, its whole paths, its bytes, its last number and its answer."""

    name: str
    descriptors: tuple
    paths: tuple
    flags: frozenset
    data: bytes
    number: int | None
    answer: int


def record(root, arguments):
    """Run a Python module to its end below ``root``; its calls in the order in which they ended."""
    trace = root / "trace"
    command = [STRACE, "-f", "--seccomp-bpf", "-y", "-xx", "-s", str(BYTES_MAX), "-o", str(trace)]
    command += ["-e", f"trace={','.join(TRACED)}", sys.executable, "-m", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), "PYTHONDONTWRITEBYTECODE": "1"}
    subprocess.run(command, check=True, cwd=REPOSITORY, env=environment, timeout=300)
    with trace.open() as lines:
        return list(parsed(lines))


def parsed(lines):
    """The calls that succeeded."""
    begun = {}
    for line in lines:
        process, _, rest = line.rstrip("\n").partition(" ")
        rest = rest.lstrip()
        if rest.endswith(" <unfinished ...>"):
            begun[process] = rest.removesuffix(" <unfinished ...>")
            continue
        if rest.startswith("<... "):
            rest = begun.pop(process) + rest.partition(" resumed>")[2]
        found = _CALL.match(rest)
        if found and int(found[3]) >= 0:
            yield _call(*found.groups())


def _call(name, text, answer, opened):
    cut = _TEXT.search(text)
    assert not (cut and cut[2] and name in WRITES), "strace cut off what was written"
    texts = [bytes.fromhex(item[1].replace("\\x", "")) for item in _TEXT.finditer(text)]
    places = [(item[1], _plain(item[2])) for item in _FOLDER_OR_FILE.finditer(text)]
    descriptors = tuple(int(number) for number, _ in places if number)
    if name in WRITES and name != "truncate":
        paths, data = tuple(place for _, place in places), b"".join(texts)
    else:
        folders = [place for _, place in places] or [""]
        paths = tuple(
            str(Path(folders[min(at, len(folders) - 1)]) / os.fsdecode(one)) for at, one in enumerate(texts)
        )
        paths, data = paths or tuple(folders), b""
    if opened is not None:
        paths = (_plain(opened),)
    last = text.rpartition(", ")[2]
    number = int(last) if re.fullmatch(r"\d+", last) else None
    if name in ("dup2", "dup3", "dup"):
        descriptors = (descriptors or (int(text.partition(",")[0].partition("<")[0]),))[:1]
    return Call(
        name, descriptors, paths, frozenset(re.findall(r"[A-Z]+_\w+", text)), data, number, int(answer)
    )


def _plain(text):
    return os.fsdecode(bytes.fromhex(text.replace("\\x", ""))) if text.startswith("\\x") else text
