"""Commands run in this process, and what they print."""

import json
import logging

import pytest

from freezeframe.cli.main import main


@pytest.fixture
def told(capsys, snapshots, request):
    """Run a command of the module's GROUP on its tenant, and give the JSON that it prints."""

    def run(*arguments):
        assert main([request.module.GROUP, *arguments, "--dir", snapshots, "--json"]) == 0
        return json.loads(capsys.readouterr().out)

    return run


@pytest.fixture(autouse=True)
def log_as_before():
    """A worker or a service run in this process sets up its log, to a stream that ends with the test."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
