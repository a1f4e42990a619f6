"""Commands of the service, run on one store."""

import json

import pytest

from freezeframe.cli.main import main


@pytest.fixture
def root(tmp_path):
    """A store's root."""
    return tmp_path / "store"


@pytest.fixture
def said(capsys, root):
    """A function that runs a command on the store and gives its code and JSON."""

    def run(*arguments):
        code = main([*arguments, "--root", str(root), "--json"])
        captured = capsys.readouterr()
        return code, json.loads(captured.out or captured.err)

    return run
