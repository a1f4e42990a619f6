"""The first lines of the page on the service, as a newcomer types them."""

import re
import shutil
import subprocess
from pathlib import Path

import pyarrow as pa
import pytest

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "serve.md"
WORKER = "freezeframe worker --root store --drain"


@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl")
def test_the_first_minutes_are_as_the_page_says(served, tmp_path):
    """Each curl of the second block is answered well; what a worker does is done in its place."""
    before, after = re.findall(r"```\n(.*?)```", PAGE.read_text(), re.DOTALL)[1].split(WORKER)
    (tmp_path / "tenant-config.json").write_text("{}")
    (tmp_path / "accounts.csv").write_text("Id,City\n007,Bern\n")

    def typed(lines):
        script = f'set -e\ncurl() {{ command curl -sS --fail-with-body "$@"; echo; }}\n{lines}'
        run = subprocess.run(
            ["bash", "-c", script.replace("http://127.0.0.1:8750", served.url)],
            env={"KEY": served.key(), "PATH": "/usr/bin:/bin"},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert (run.stderr, run.returncode) == ("", 0), run.stdout
        return run.stdout

    assert '"status":"queued"' in typed(before)
    tenant = served.service.stores.environment("production").tenant("acme")
    assert tenant.files.read("tenant-config.json") == b"{}"
    tenant.stream("Account").update(pa.table({"Id": ["007", "1"], "City": ["Bern", "Basel"]}), "Id")
    setting = re.search("^TENANT=.*$", before, re.MULTILINE)[0]
    assert '"total": 1' in typed(f"{setting}\n{after}")
