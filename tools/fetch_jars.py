"""Fetch the jars of ``jars.toml`` into a folder; a file that is there and right is left alone.

Run as ``python tools/fetch_jars.py FOLDER`` in the project's environment. The jars come from Maven
Central by Ivy, which Spark brings along and which knows where that is. ``MAVEN_REPOSITORY`` names
another repository (a company's mirror, or a ``file://`` folder where there is no network).
"""  # noqa: INP001 - a script, no package

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
import time
import tomllib
import urllib.error
import urllib.request
from importlib.util import find_spec
from pathlib import Path

TRIES_MAX = 4
TIMEOUT_SECONDS = 60
IVY_TIMEOUT_SECONDS = 300


def main(folder: Path) -> int:
    """Fetch what is missing; the exit code is 1 where a jar could not be had or is another one."""
    jars = tomllib.loads(Path(__file__).with_name("jars.toml").read_text())["jar"]
    folder.mkdir(parents=True, exist_ok=True)
    mirror = os.environ.get("MAVEN_REPOSITORY", "")
    for jar in jars:
        coordinate = tuple(jar["coordinate"].split(":"))
        file = folder / "{1}-{2}.jar".format(*coordinate)
        if file.exists() and sha256(file.read_bytes()) == jar["sha256"]:
            continue
        try:
            content = from_mirror(mirror, coordinate) if mirror else from_central(coordinate)
        except OSError as error:
            sys.stderr.write(
                f"{file.name} could not be fetched from {mirror or 'Maven Central'}: {error}. "
                f"Name a mirror by MAVEN_REPOSITORY, or put the file into {folder} by hand.\n"
            )
            return 1
        if sha256(content) != jar["sha256"]:
            sys.stderr.write(f"{file.name} is not the file that tools/jars.toml pins; nothing was kept.\n")
            return 1
        # Another run may fetch the same jar: it appears whole or not at all.
        temporary = file.with_suffix(f".{os.getpid()}.tmp")
        temporary.write_bytes(content)
        temporary.replace(file)
        sys.stderr.write(f"Fetched {file.name} ({len(content) / 1e6:.1f} MB)\n")
    return 0


def from_central(coordinate: tuple[str, ...]) -> bytes:
    """The jar as Ivy finds it in Maven Central; a broken line is tried again a few times."""
    pyspark = find_spec("pyspark")
    if pyspark is None or pyspark.origin is None:
        raise OSError("PySpark, which brings Ivy, is not installed")
    (ivy,) = (Path(pyspark.origin).parent / "jars").glob("ivy-*.jar")
    home = os.environ.get("JAVA_HOME", "")
    java = Path(home, "bin", "java") if home else Path("java")
    for attempt in range(TRIES_MAX):
        with tempfile.TemporaryDirectory() as folder:
            pattern = f"{folder}/found/[artifact].[ext]"
            command = [java, "-jar", ivy, "-cache", f"{folder}/cache", "-notransitive", "-confs", "default"]
            done = subprocess.run(  # noqa: S603 - Spark's own jar
                [*command, "-dependency", *coordinate, "-retrieve", pattern],
                capture_output=True,
                text=True,
                timeout=IVY_TIMEOUT_SECONDS,
                check=False,
            )
            found = Path(folder, "found", f"{coordinate[1]}.jar")
            if found.exists():
                return found.read_bytes()
        time.sleep(2**attempt)
    raise OSError(done.stdout[-500:] or done.stderr[-500:])


def from_mirror(base: str, coordinate: tuple[str, ...]) -> bytes:
    """The jar below ``base``, in Maven's layout."""
    group, artifact, version = coordinate
    folder = f"{base.rstrip('/')}/{group.replace('.', '/')}/{artifact}/{version}"
    return download(f"{folder}/{artifact}-{version}.jar")


def download(url: str) -> bytes:
    """The bytes at ``url``; a refusal or a broken line is tried again a few times."""
    for attempt in range(TRIES_MAX):
        try:
            with urllib.request.urlopen(url, timeout=TIMEOUT_SECONDS) as answer:  # noqa: S310 - pinned by checksum
                return bytes(answer.read())
        except OSError as error:
            gone = isinstance(error, urllib.error.HTTPError) and error.code in {400, 403, 404, 410}
            if gone or attempt == TRIES_MAX - 1:
                raise
            time.sleep(2**attempt)
    raise AssertionError("unreachable: the last try returns or raises")


def sha256(content: bytes) -> str:
    """The checksum as ``jars.toml`` writes it."""
    return hashlib.sha256(content).hexdigest()


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
