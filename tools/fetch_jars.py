"""Fetch the jars of the tests into a folder: Delta's own, which ``jars.toml`` pins, and those for S3.

Run as ``python tools/fetch_jars.py FOLDER`` in the project's environment; a file that is there and right is
left alone. ``MAVEN_REPOSITORY`` names another repository than Maven Central (a company's mirror, or a
``file://`` folder where there is no network).
"""  # noqa: INP001 - a script, no package

from __future__ import annotations

import os
import sys
from pathlib import Path

from freezeframe.engine.jars import fetch, locked_jars, parse_lock
from freezeframe.errors import FreezeframeError


def main(folder: Path) -> int:
    """Fetch what is missing; the exit code is 1 where a jar could not be had or is another one."""
    jars = (*parse_lock(Path(__file__).with_name("jars.toml").read_text()), *locked_jars("s3"))
    try:
        done = fetch(jars, folder, os.environ.get("MAVEN_REPOSITORY", ""))
    except FreezeframeError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    if done.fetched:
        sys.stderr.write(f"Fetched {len(done.fetched)} jars ({done.bytes_fetched / 1e6:.1f} MB)\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
