"""Fetch the jars of ``jars.toml`` into a folder; a file that is there and right is left alone.

Run as ``python tools/fetch_jars.py FOLDER``. ``MAVEN_REPOSITORY`` names another repository
than Maven Central (a company's mirror, or a ``file://`` folder where there is no network).
"""  # noqa: INP001 - a script, no package

from __future__ import annotations

import hashlib
import os
import sys
import time
import tomllib
import urllib.error
import urllib.request
from pathlib import Path

CENTRAL = "https://repo1.maven.org/maven2"
TRIES_MAX = 4
TIMEOUT_SECONDS = 60


def main(folder: Path) -> int:
    """Fetch what is missing; the exit code is 1 where a jar could not be had or is another one."""
    jars = tomllib.loads(Path(__file__).with_name("jars.toml").read_text())["jar"]
    folder.mkdir(parents=True, exist_ok=True)
    for jar in jars:
        group, artifact, version = jar["coordinate"].split(":")
        file = folder / f"{artifact}-{version}.jar"
        if file.exists() and sha256(file.read_bytes()) == jar["sha256"]:
            continue
        base = os.environ.get("MAVEN_REPOSITORY", CENTRAL).rstrip("/")
        url = f"{base}/{group.replace('.', '/')}/{artifact}/{version}/{file.name}"
        try:
            content = download(url)
        except OSError as error:
            sys.stderr.write(
                f"{file.name} could not be fetched from {base}: {error}. "
                f"Name a mirror by MAVEN_REPOSITORY, or put the file into {folder} by hand.\n"
            )
            return 1
        if sha256(content) != jar["sha256"]:
            sys.stderr.write(f"{url} is not the file that tools/jars.toml pins; nothing was kept.\n")
            return 1
        # Another run may fetch the same jar: it appears whole or not at all.
        temporary = file.with_suffix(f".{os.getpid()}.tmp")
        temporary.write_bytes(content)
        temporary.replace(file)
        sys.stderr.write(f"Fetched {file.name} ({len(content) / 1e6:.1f} MB)\n")
    return 0


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
