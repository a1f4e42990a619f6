"""The Java and the Spark of this machine, and the stack that a JVM leaves in the text of an error."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

from freezeframe.errors import JavaNotFound, JavaUnsupported, SetupError

JAVA_VERSIONS = (17, 21)
"""Major versions that Spark 4.1 runs on."""

_INSTALL = (
    "brew install openjdk@21"
    if sys.platform == "darwin"
    else "apt-get install openjdk-17-jre-headless (Debian 13: openjdk-21-jre-headless)"
)
_JAVA_REMEDY = (
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
    """Return the first supported Java of ``JAVA_HOME``, ``PATH`` and the places where systems install it."""
    refused = []
    for command in _commands(os.environ if environment is None else environment, installed):
        version = _version(command)
        if version in JAVA_VERSIONS:
            return Java(command, version)
        refused.append(f"{command} is {f'Java {version}' if version else 'no Java that answers'}")
    if not refused:
        raise JavaNotFound("There is no Java on this machine, and Spark needs one.", remedy=_JAVA_REMEDY)
    raise JavaUnsupported(
        f"Spark runs on Java {' or '.join(map(str, JAVA_VERSIONS))}.",
        cause=f"Found: {'; '.join(refused)}.",
        remedy=_JAVA_REMEDY,
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
    """Return the major version; 0 if unknown."""
    try:
        answer = subprocess.run(  # noqa: S603 - the command is the Java that the machine offers
            [command, "-version"], capture_output=True, text=True, timeout=30, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return 0
    # openjdk version "17.0.15" 2025-04-15, or for Java 8: java version "1.8.0_392"
    match = re.search(r'version "(?:1\.)?(\d+)', answer.stderr + answer.stdout)
    return int(match[1]) if match else 0


_PACKAGES = ("pyspark", "pyspark-client")


def spark_version() -> str:
    """Return the version of PySpark."""
    for name in _PACKAGES:
        try:
            return metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    raise SetupError("PySpark is not installed.", remedy="Install it: pip install 'pyspark[connect]'.")


def spark_home() -> Path:
    """Return the folder of Spark, which SPARK_HOME may name."""
    from pyspark.find_spark_home import _find_spark_home  # noqa: PLC0415 - PySpark is loaded when needed

    return Path(_find_spark_home())  # type: ignore[no-untyped-call,unused-ignore]  # typed from 4.3 on


def spark_jars() -> Path:
    """Return the folder with the jars of the Spark that this process's PySpark belongs to."""
    release = spark_version()
    found = find_spec("pyspark")
    package = Path(found.origin).parent if found and found.origin else Path()
    # Beside the package, or above it where it is Spark's own: python/lib/pyspark.zip comes first in what
    # spark-submit and the shell start, and python/ in a Spark that is no package.
    homes = (package, *list(package.parents)[:4])
    jars = next((home / "jars" for home in homes if any(home.glob("jars/spark-core_*.jar"))), None)
    if jars is None:
        raise SetupError(
            "There is no Spark to start here.",
            cause=f"pyspark-client {release} only connects to remote servers."
            if not any(metadata.distributions(name=_PACKAGES[0]))
            else f"The PySpark in {package} has no jars.",
            remedy="Name a server by FREEZEFRAME_SPARK=sc://HOST:15002, or install pyspark[connect].",
        )
    return jars


_HEADING = "JVM stacktrace:\n"
_STACK_MAX = 64 * 1024
# It ends where a traceback goes on to the next exception of a chain.
_STACK = re.compile(rf"\n*{_HEADING}.*?(?=\n\n(?:The above exception|During handling)|\Z)", re.DOTALL)
# Spark quotes the stack of a failed task in the message itself.
_FRAMES = re.compile(r"\n(?:\s+at \S+\(.*\)|\s+\.\.\. \d+ more|Driver stacktrace:)(?=\n|\Z)")


def without_jvm_stack(text: str) -> str:
    """Return the text of an error or traceback without JVM stack frames."""
    return _FRAMES.sub("", _STACK.sub("", text))


def jvm_stack(error: BaseException | None) -> str:
    """Return the JVM stack of the error or one of its causes, at most 64 KiB; empty if there is none."""
    while error is not None:
        stack = str(error).partition(_HEADING)[2]
        if stack:
            return stack[:_STACK_MAX]
        error = error.__cause__ or error.__context__
    return ""
