"""The jars with which Spark reaches S3: pinned by coordinate, checksum and size in ``lock.toml``.

Two sets: ``s3`` is some forty small ones of the AWS SDK, ``bundle`` the whole SDK in one file, which only
assumed roles and ``fs.s3a.ssl.channel.mode`` need.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from xml.sax.saxutils import escape

from freezeframe.errors import InvalidOption

JarSet = Literal["s3", "bundle"]

_PART = re.compile(r"[\w.-]+", re.ASCII)
_SHA256 = re.compile(r"[0-9a-f]{64}")
_LOCK = Path(__file__).with_name("lock.toml")
_POM = """\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>freezeframe</groupId>
  <artifactId>spark-jars</artifactId>
  <version>1</version>
  <packaging>pom</packaging>
  <dependencies>
{dependencies}  </dependencies>
</project>
"""
_DEPENDENCY = """\
    <dependency>
      <groupId>{group}</groupId>
      <artifactId>{artifact}</artifactId>
      <version>{version}</version>
      <exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>
    </dependency>
"""


@dataclass(frozen=True, slots=True)
class Jar:
    """One pinned jar: Maven coordinates, SHA-256 as hex, and size in bytes."""

    group: str
    artifact: str
    version: str
    sha256: str
    size: int

    def __post_init__(self) -> None:
        names = (self.group, self.artifact, self.version)
        if not all(map(_PART.fullmatch, names)) or not _SHA256.fullmatch(self.sha256) or self.size < 1:
            raise InvalidOption(
                f"{self.coordinate} is not a valid pinned jar.",
                cause="An entry has group:artifact:version, a SHA-256 as 64 hex digits, and a size in bytes.",
                remedy="Correct the lock file.",
            )

    @property
    def coordinate(self) -> str:
        """The coordinate in Maven's format."""
        return f"{self.group}:{self.artifact}:{self.version}"

    @property
    def file_name(self) -> str:
        """The file name, in a repository and locally."""
        return f"{self.artifact}-{self.version}.jar"

    @property
    def repository_path(self) -> str:
        """The path in a repository of Maven's layout."""
        return f"{self.group.replace('.', '/')}/{self.artifact}/{self.version}/{self.file_name}"


def locked_jars(jar_set: JarSet) -> tuple[Jar, ...]:
    """The jars of a set, in the versions tested with this release."""
    return parse_lock(_LOCK.read_text(), jar_set)


def parse_lock(text: str, jar_set: str = "") -> tuple[Jar, ...]:
    """The jars of a lock file; with ``jar_set`` those that are in that set.

    Raises:
        InvalidOption: an entry pins nothing.
    """
    jars = []
    for entry in tomllib.loads(text)["jar"]:
        if jar_set and jar_set not in entry["sets"]:
            continue
        group, artifact, version = entry["coordinate"].split(":")
        jars.append(Jar(group, artifact, version, entry["sha256"], entry["size"]))
    return tuple(jars)


def pom(jars: Iterable[Jar]) -> str:
    """A Maven project with exactly these jars as dependencies."""
    parts = (
        _DEPENDENCY.format(
            group=escape(jar.group), artifact=escape(jar.artifact), version=escape(jar.version)
        )
        for jar in jars
    )
    return _POM.format(dependencies="".join(parts))


def present(folder: Path) -> tuple[Path, ...]:
    """The files of a complete set in the folder, in order; empty without a complete set.

    They are told by name and size: checksums were compared when they came.
    """
    for jar_set in ("s3", "bundle"):
        jars = locked_jars(jar_set)
        files = tuple(folder / jar.file_name for jar in jars)
        sizes = (file.stat().st_size if file.is_file() else -1 for file in files)
        if all(size == jar.size for size, jar in zip(sizes, jars, strict=True)):
            return files
    return ()
