"""Every command of the page for support runs, in the order of the page, on a store as it has one in mind."""

import shlex
from pathlib import Path

import pandas as pd
import pytest

import freezeframe
from freezeframe.cli.main import main

PAGE = Path(__file__).parent.parent.parent / "docs" / "how-to" / "look-after-tenants.md"


def commands(text):
    """The lines of the page's shell blocks."""
    blocks = text.split("```sh\n")[1:]
    return [line for block in blocks for line in block.split("```")[0].splitlines()]


@pytest.fixture
def store(tmp_path, monkeypatch):
    """A store in the current folder: a tenant with three nights of jobs; whole contents need no Spark."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "report.csv").write_text("Month,Region,Total\n10,North,7\n10,South,8\n")
    acme = freezeframe.open("snaps").tenant("acme", create=True)
    acme.stream("Obsolete").update(pd.DataFrame({"Id": ["1"]}), key="Id")
    for night, names in enumerate((["Ann", "Bob"], ["Ann"]), start=1):
        rows = pd.DataFrame({"Id": [str(number + 1) for number in range(len(names))], "Name": names})
        with acme.job(f"night-{night}", who="scheduler") as job:
            if night == 1:
                job.stream("Account").update(rows, key="Id")
            job.stream(f"Night{night}").update(rows, key="Id")
            job.files.write_json("tenant-config.json", {"region": "eu", "night": night})
    return acme


def test_each_command_of_the_page_runs(store, capsys):
    """It ends with 0 and prints something; what the page says of it is so."""
    lines = commands(PAGE.read_text(encoding="utf-8"))
    told = {}
    for line in lines:
        words = shlex.split(line)
        assert words[0] == "freezeframe"
        code = main(words[1:])
        captured = capsys.readouterr()
        assert (line, 0, "") == (line, code, captured.err if code else "")
        told[line] = captured.out
        assert told[line].strip(), line

    assert len(lines) > 20
    assert store.files.read_json("tenant-config.json") == {"region": "us", "night": 1}
    assert freezeframe.open("snaps").tenants() == ("acme", "acme-sandbox")
    assert "Obsolete" not in store.streams()
    assert store.stream("Account").read()["Name"].tolist() == ["Ann", "Bob"]
