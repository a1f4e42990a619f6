"""Commands run in this process, and what they print."""

import json

import pytest

from freezeframe.cli.main import main


@pytest.fixture
def told(capsys, snapshots, request):
    """Run a command of the module's GROUP on its tenant, and give the JSON that it prints."""

    def run(*arguments):
        assert main([request.module.GROUP, *arguments, "--dir", snapshots, "--json"]) == 0
        return json.loads(capsys.readouterr().out)

    return run
