"""The console's TypeScript types follow from the service's OpenAPI document."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GENERATOR = ROOT / "ui" / "node_modules" / ".bin" / "openapi-typescript"


@pytest.mark.browser
@pytest.mark.skipif(not GENERATOR.exists(), reason="the console's packages are not installed")
def test_the_types_are_what_the_document_says():
    """Whoever changes a route writes the console's types anew, or this fails."""
    command = [sys.executable, ROOT / "ui" / "scripts" / "write_types.py", "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr) == (0, "")
