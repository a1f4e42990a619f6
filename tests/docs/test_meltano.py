"""Meltano runs the target as the page about Singer defines it, and keeps its state once it is committed."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

import freezeframe

REPOSITORY = Path(__file__).parent.parent.parent
PAGE = (REPOSITORY / "docs" / "how-to" / "singer.md").read_text()
UV = REPOSITORY / ".cache" / "uv" / "bin" / "uv"
TAP = """#!/bin/sh
case " $* " in *" --discover "*) echo '{"streams": []}' ;; *) cat tap.jsonl ;; esac
"""

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(not UV.exists(), reason="uv is not in .cache/uv: tools/setup.sh python brings it"),
]


def block(language):
    """The page's first block in this language."""
    return re.search(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)[1]


@pytest.fixture(scope="module")
def meltano(tmp_path_factory):
    """The command of an environment of its own: Meltano and the jobs' packages do not go together."""
    place = tmp_path_factory.mktemp("meltano") / "venv"
    environment = os.environ | {"UV_SYSTEM_CERTS": "1"}
    for command in (
        [UV, "venv", "--quiet", "--python", sys.executable, place],
        [UV, "pip", "install", "--quiet", "--python", place / "bin" / "python", "meltano>=4,<5"],
    ):
        subprocess.run(command, env=environment, check=True)
    return place / "bin" / "meltano"


def test_a_run_stores_rows_and_state(tmp_path, meltano):
    """The tap's rows are the tenant's, its state is Meltano's, and no variable is misunderstood."""
    project = yaml.safe_load(block("yaml"))
    (loader,) = project["plugins"]["loaders"]
    del loader["pip_url"]
    loader["executable"] = str(Path(sys.executable).with_name("target-freezeframe"))
    project["plugins"]["extractors"] = [
        {"name": "tap-shop", "namespace": "tap_shop", "executable": str(tmp_path / "tap"), "capabilities": []}
    ]
    settings = {"default_environment": "dev", "environments": [{"name": "dev"}], "project_id": "shop"}
    (tmp_path / "meltano.yml").write_text(yaml.safe_dump(settings | project))
    (tmp_path / "tap.jsonl").write_text(block("jsonl"))
    (tmp_path / "tap").write_text(TAP)
    (tmp_path / "tap").chmod(0o755)
    environment = os.environ | {"MELTANO_SEND_ANONYMOUS_USAGE_STATS": "false", "FREEZEFRAME_ENGINE": "auto"}

    def carried_out(*words):
        done = subprocess.run(
            [meltano, *words], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done

    told = carried_out("run", "tap-shop", "target-freezeframe").stderr
    state = carried_out("state", "get", "dev:tap-shop-to-target-freezeframe").stdout

    assert "is not a setting" not in told
    assert "2026-10-01T08:00:00+02:00" in state
    rows = freezeframe.open(tmp_path / "data").tenant("acme").stream("Account").read(as_="arrow")
    assert rows["Id"].to_pylist() == ["007", "008"]
