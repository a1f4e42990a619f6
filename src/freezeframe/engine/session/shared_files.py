"""Checks by a written file whether Spark and this process share a file system.

In a container, on another host or for another user the same path may be another folder. Each side
writes a small file into the folder, which the other reads and this process deletes. The result is
cached for the life of the server, also for later processes. For an own server on this machine no probe
is needed: the system shows whether it has the same mounts and root.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException

from freezeframe.engine.configuration.spark_configuration import READ_OPTIONS, WRITE_OPTIONS
from freezeframe.engine.errors.spark_errors import translate_error
from freezeframe.engine.plans.parquet_files import exact_path, local_folder
from freezeframe.errors import StorageNotShared

_PREFIX = ".freezeframe-probe-"


def has_our_files(process: int, variable: str) -> bool:
    """Whether a process of this machine has this process's view of the files: the same mounts and root.

    ``variable`` is one of its environment that no other process has (``NAME=value``): the number may be
    another process's in another view of the processes. False where the system does not tell.
    """
    other = Path(f"/proc/{process}")
    try:
        return (
            variable.encode() in (other / "environ").read_bytes().split(b"\0")
            and (other / "ns/mnt").readlink() == Path("/proc/self/ns/mnt").readlink()
            and os.path.samestat((other / "root").stat(), Path("/proc/self/root").stat())
        )
    except OSError:
        return False


def require_shared(session: Any, folder: Path, memory: Path) -> None:
    """Check that the server reads what we write in ``folder``, and the other way round.

    Args:
        session: a session on the server, classic or Connect.
        folder: an existing folder of this machine.
        memory: a private folder in which the answer is remembered.
    """
    start = session.conf.get("spark.app.id", "")
    identity = hashlib.sha256(f"{start}\n{folder.resolve()}".encode()).hexdigest()[:32]
    remembered = memory / f"{identity}.shared"
    if start and remembered.exists():
        return
    # Hidden names, so that readers of the folder ignore probes.
    probe = folder / f"{_PREFIX}{uuid.uuid4().hex}"
    probe.mkdir(mode=0o777)
    try:
        _exchange(session, probe)
    finally:
        shutil.rmtree(probe, ignore_errors=True)
    for old in memory.glob("*.shared"):
        if old.read_text() != start:
            old.unlink(missing_ok=True)
    remembered.write_text(str(start))


@contextlib.contextmanager
def requiring_sight(files: Sequence[str]) -> Iterator[None]:
    """Raise ``StorageNotShared`` for a file that this process sees and Spark does not."""
    try:
        yield
    except PySparkException as error:
        paths = [local_folder(file) for file in files]
        if error.getCondition() != "PATH_NOT_FOUND" or not all(path and path.exists() for path in paths):
            raise
        raise _not_shared(Path(files[0]).parent, str(error).split("\n", 1)[0]) from error


def _exchange(session: Any, probe: Path) -> None:
    word = uuid.uuid4().hex
    # No leading underscore or dot, because Spark ignores such files.
    (probe / "client.txt").write_text(word)
    try:
        rows = session.read.options(**READ_OPTIONS).text(exact_path(str(probe / "client.txt"))).collect()
        if [row[0] for row in rows] != [word]:
            raise _not_shared(probe.parent, "Spark read something else than this process had written.")
        # A frame over a file transfers the token to the server's own writer.
        frame = session.read.options(**READ_OPTIONS).text(exact_path(str(probe / "client.txt")))
        options = {name: value for name, value in WRITE_OPTIONS.items() if name.startswith("mapreduce")}
        frame.write.options(**options).text(str(probe / "server"))
    except PySparkException as error:
        if translate_error(error).details.get("is_gone"):
            raise  # a dead server says nothing about shared files
        raise _not_shared(probe.parent, str(error).split("\n", 1)[0]) from error
    answers = [path.read_text().strip() for path in (probe / "server").glob("*.txt")]
    if answers != [word]:
        raise _not_shared(probe.parent, "What Spark wrote is not here.")


def _not_shared(folder: Path, cause: str) -> StorageNotShared:
    return StorageNotShared(
        f"Spark does not see the files of {folder}.",
        cause=cause,
        remedy="Use a folder that both see under the same path, an object store, or FREEZEFRAME_SPARK=auto"
        " and frames of its session.",
    )
