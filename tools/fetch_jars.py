"""Fetch the jars that ``jars.toml`` pins into a folder: all, or those of one set.

Run as ``python tools/fetch_jars.py FOLDER [SET]`` in the project's environment; a file that is there and
right is left alone. ``MAVEN_REPOSITORY`` names another repository than Maven Central (a company's mirror, or
a ``file://`` folder where there is no network). Maven Central is asked by Ivy, which Spark brings along.
"""  # noqa: INP001 - a script, no package

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tomllib
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from freezeframe.engine.java import find_java, spark_jars
from freezeframe.errors import FreezeframeError

_TIMEOUT_SECONDS = 60


@dataclass(frozen=True)
class Jar:
    """One pinned jar."""

    group: str
    artifact: str
    version: str
    sha256: str
    size: int

    @property
    def file_name(self) -> str:
        """Its name in a repository and here."""
        return f"{self.artifact}-{self.version}.jar"

    def is_in(self, file: Path) -> bool:
        """Whether the file is this jar, byte for byte."""
        return file.is_file() and hashlib.sha256(file.read_bytes()).hexdigest() == self.sha256


def main(folder: Path, wanted: str = "") -> int:
    """Fetch what is missing; the exit code is 1 where a jar could not be had or is another one."""
    missing = [jar for jar in pinned(wanted) if not jar.is_in(folder / jar.file_name)]
    downloads = folder / ".downloads"
    downloads.mkdir(parents=True, exist_ok=True)
    try:
        mirror = os.environ.get("MAVEN_REPOSITORY", "")
        if missing and not mirror:
            ask_central(missing, downloads)
        for jar in missing:
            file = from_mirror(jar, downloads, mirror) if mirror else next(downloads.rglob(jar.file_name))
            if not jar.is_in(file):
                sys.stderr.write(f"{jar.file_name} is not the file that was pinned; it was not kept.\n")
                return 1
            file.replace(folder / jar.file_name)
    except (FreezeframeError, OSError, StopIteration, subprocess.CalledProcessError) as error:
        sys.stderr.write(f"The jars could not be fetched: {error!r}\n")
        return 1
    finally:
        shutil.rmtree(downloads, ignore_errors=True)
    if missing:
        sys.stderr.write(f"Fetched {len(missing)} jars ({sum(jar.size for jar in missing) / 1e6:.1f} MB)\n")
    return 0


def pinned(wanted: str) -> list[Jar]:
    """The jars of a set; of all sets where it has no name."""
    entries = tomllib.loads(Path(__file__).with_name("jars.toml").read_text())["jar"]
    return [
        Jar(*entry["coordinate"].split(":"), entry["sha256"], entry["size"])
        for entry in entries
        if not wanted or wanted == entry["set"]
    ]


def from_mirror(jar: Jar, folder: Path, mirror: str) -> Path:
    """The file that a repository of Maven's layout has for the jar."""
    place = f"{jar.group.replace('.', '/')}/{jar.artifact}/{jar.version}/{jar.file_name}"
    url = f"{mirror.rstrip('/')}/{place}"
    with urllib.request.urlopen(url, timeout=_TIMEOUT_SECONDS) as answer:  # noqa: S310 - its bytes are checked
        (folder / jar.file_name).write_bytes(answer.read())
    return folder / jar.file_name


def ask_central(jars: list[Jar], folder: Path) -> None:
    """Make Ivy bring the jars somewhere below the folder."""
    dependencies = "".join(
        f'<dependency org="{jar.group}" name="{jar.artifact}" rev="{jar.version}" transitive="false" '
        'conf="default"/>'
        for jar in jars
    )
    order = folder / "ivy.xml"
    order.write_text(
        '<ivy-module version="2.0"><info organisation="freezeframe" module="jars"/>'
        f"<dependencies>{dependencies}</dependencies></ivy-module>"
    )
    ivy = next(spark_jars().glob("ivy-*.jar"))
    words = ["-jar", ivy, "-ivy", order, "-cache", folder, "-confs", "default"]
    command = [find_java().command, *words]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)  # noqa: S603 - Spark's own jar


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), *sys.argv[2:3]))
