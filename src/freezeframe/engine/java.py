"""Discovery and version check of the Java runtime for Spark."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from freezeframe.errors import JavaNotFound, JavaUnsupported

JAVA_VERSIONS = (17, 21)
"""Major versions that Spark 4.1 runs on."""

_INSTALL = (
    "brew install openjdk@21"
    if sys.platform == "darwin"
    else "apt-get install openjdk-17-jre-headless (Debian 13: openjdk-21-jre-headless)"
)
_REMEDY = (
    f"Install one: {_INSTALL}, or set JAVA_HOME to a Java 17 or 21."
    " With FREEZEFRAME_ENGINE=auto an upsert needs none."
)
_INSTALLED = (
    (Path("/usr/lib/jvm"), "*{version}*/bin/java"),
    (Path("/Library/Java/JavaVirtualMachines"), "*{version}*/Contents/Home/bin/java"),
    (Path("/opt/homebrew/opt"), "openjdk@{version}/bin/java"),
)


@dataclass(frozen=True, slots=True)
class Java:
    """A Java runtime: its command and its major version."""

    command: Path
    version: int


def find_java(
    environment: Mapping[str, str] | None = None, installed: tuple[tuple[Path, str], ...] = _INSTALLED
) -> Java:
    """The first supported Java of ``JAVA_HOME``, ``PATH`` and the places where systems install it."""
    refused = []
    for command in _commands(os.environ if environment is None else environment, installed):
        version = _version(command)
        if version in JAVA_VERSIONS:
            return Java(command, version)
        refused.append(f"{command} is {f'Java {version}' if version else 'no Java that answers'}")
    if not refused:
        raise JavaNotFound("There is no Java on this machine, and Spark needs one.", remedy=_REMEDY)
    raise JavaUnsupported(
        f"Spark runs on Java {' or '.join(map(str, JAVA_VERSIONS))}.",
        cause=f"Found: {'; '.join(refused)}.",
        remedy=_REMEDY,
    )


def _commands(environment: Mapping[str, str], installed: tuple[tuple[Path, str], ...]) -> Iterator[Path]:
    seen = set()
    for command in _places(environment, installed):
        if command.is_file() and command.resolve() not in seen:
            seen.add(command.resolve())
            yield command


def _places(environment: Mapping[str, str], installed: tuple[tuple[Path, str], ...]) -> Iterator[Path]:
    if home := environment.get("JAVA_HOME"):
        yield Path(home) / "bin" / "java"
    if found := shutil.which("java", path=environment.get("PATH", "")):
        yield Path(found)
    for folder, pattern in installed:
        for version in JAVA_VERSIONS:
            yield from sorted(folder.glob(pattern.format(version=version)))


def _version(command: Path) -> int:
    """The major version; 0 if unknown."""
    try:
        told = subprocess.run(  # noqa: S603 - the command is the Java that the machine offers
            [command, "-version"], capture_output=True, text=True, timeout=30, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return 0
    # openjdk version "17.0.15" 2025-04-15, or for Java 8: java version "1.8.0_392"
    match = re.search(r'version "(?:1\.)?(\d+)', told.stderr + told.stdout)
    return int(match[1]) if match else 0
