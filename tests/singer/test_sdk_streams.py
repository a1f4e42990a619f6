"""The files of Singer's SDK with which it tests targets: each is loaded, or refused as the SDK expects."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

import freezeframe

COMMAND = "import sys; from freezeframe.cli.singer_target import main; sys.exit(main())"
# What the SDK's own targets refuse as well.
REFUSED = {"invalid_schema", "record_before_schema", "record_missing_key_property"}


def files():
    """Return the SDK's files by name; empty where it is not installed. Nothing of it is imported."""
    found = importlib.util.find_spec("singer_sdk")
    if found is None:
        return {}
    (package,) = found.submodule_search_locations
    return {file.stem: file for file in sorted(Path(package).glob("testing/target_test_streams/*.singer"))}


FILES = files()
pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(not FILES, reason="singer-sdk is not installed (make nightly installs it)"),
]


@pytest.fixture
def load(tmp_path):
    """A function that loads a file into a tenant: (exit code, standard output, error, tenant)."""
    config = tmp_path / "config.json"
    options = {"root": str(tmp_path / "data"), "tenant": "acme", "engine": "auto", "keyless": "append"}
    config.write_text(json.dumps(options))

    def run(file):
        done = subprocess.run(
            [sys.executable, "-c", COMMAND, "--config", config, "--input", file],
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout, done.stderr, freezeframe.open(tmp_path / "data")

    return run


@pytest.mark.parametrize("name", FILES)
def test_a_file_of_the_sdk_is_loaded_or_refused(load, name):
    """A loaded one has a stream for each schema; a refused one leaves no version."""
    code, _, error, store = load(FILES[name])
    messages = [json.loads(line) for line in FILES[name].read_text().splitlines() if line.strip()]

    if name in REFUSED:
        assert code == 2, error
        assert store.tenants() == ()
        return
    assert code == 0, error
    filled = {message["stream"] for message in messages if message["type"] == "RECORD"}
    assert len(store.tenant("acme").streams()) >= len(filled)  # odd names are spelled otherwise
