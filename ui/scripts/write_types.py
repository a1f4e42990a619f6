"""Writes ui/src/api/schema.d.ts, which the type check needs, from the service's OpenAPI document.

Usage: tools/run.sh python ui/scripts/write_types.py
"""  # noqa: INP001 - a script, no package

from __future__ import annotations

import json
import subprocess
import tempfile
from pathlib import Path

from freezeframe.asgi.application import create_application
from freezeframe.control.database import ControlDatabase
from freezeframe.settings import Settings

_UI = Path(__file__).parents[1]


def main() -> None:
    """Make the types of the service's API as TypeScript."""
    with tempfile.TemporaryDirectory(prefix="freezeframe-") as folder:
        place = Path(folder)
        database = ControlDatabase.open(f"sqlite:///{place / 'control.db'}")
        application = create_application(Settings(), str(place / "store"), database)
        (place / "openapi.json").write_text(json.dumps(application.openapi()))
        tool = _UI / "node_modules" / ".bin" / "openapi-typescript"
        output = _UI / "src" / "api" / "schema.d.ts"
        command = [str(tool), str(place / "openapi.json"), "--output", str(output), "--alphabetize"]
        subprocess.run(command, check=True, capture_output=True)  # noqa: S603 - our own command


if __name__ == "__main__":
    main()
