"""Writes ui/src/api/schema.d.ts from the service's OpenAPI document; `--check` only compares.

Usage: tools/run.sh python ui/scripts/write_types.py [--check]
"""  # noqa: INP001 - a script, no package

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from freezeframe.asgi.application import create_application
from freezeframe.control.database.database import ControlDatabase
from freezeframe.settings import Settings

_UI = Path(__file__).parents[1]
_TYPES = _UI / "src" / "api" / "schema.d.ts"


def main() -> int:
    """Write, or compare; 1 says that the file in the tree is another one."""
    written = generated()
    if "--check" not in sys.argv:
        _TYPES.write_text(written)
        return 0
    if _TYPES.read_text() == written:
        return 0
    sys.stderr.write(f"{_TYPES.name} is not what the service says: run ui/scripts/write_types.py.\n")
    return 1


def generated() -> str:
    """The types of the service's API as TypeScript."""
    with tempfile.TemporaryDirectory(prefix="freezeframe-") as folder:
        place = Path(folder)
        database = ControlDatabase.open(f"sqlite:///{place / 'control.db'}")
        application = create_application(Settings(), str(place / "store"), database)
        (place / "openapi.json").write_text(json.dumps(application.openapi()))
        tool = _UI / "node_modules" / ".bin" / "openapi-typescript"
        output = place / "schema.d.ts"
        command = [str(tool), str(place / "openapi.json"), "--output", str(output), "--alphabetize"]
        subprocess.run(command, check=True, capture_output=True)  # noqa: S603 - our own command
        return output.read_text()


if __name__ == "__main__":
    sys.exit(main())
