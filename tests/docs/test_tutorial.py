"""The pages for newcomers are carried out: each command runs, and prints what the page says."""

import re
import shlex
import shutil
from pathlib import Path

import pandas as pd
import pytest
from sybil import Sybil
from sybil.parsers.markdown import CodeBlockParser

import freezeframe
from freezeframe.cli.main import main

REPOSITORY = Path(__file__).parent.parent.parent
PAGE = REPOSITORY / "docs" / "tutorial.md"
EXAMPLES = REPOSITORY / "examples"
STREAMS = ("Account", "Invoice", "LedgerReport")


def commands(block):
    """Each command of a block with the lines that are promised below it."""
    found = []
    for line in block.rstrip("\n").split("\n"):
        if line.startswith("$ "):
            found.append((line.removeprefix("$ "), []))
        else:
            found[-1][1].append(line)
    return found


def as_pattern(promised):
    """Three dots alone stand for any lines, within a line for any text."""
    lines = ["(?:.*\n)*?" if line == "..." else _line(line) for line in promised]
    return re.compile("".join(lines))


def _line(line):
    return ".*".join(map(re.escape, re.split(r" *\.\.\. *", line))) + " *\n"


@pytest.fixture
def carried_out(tmp_path, monkeypatch, capsys, spark_session, default_engine):
    """Runs each block of a page's commands in an empty folder; gives how many there were."""
    # The session holds the server: between two runs it would stop, and starting it again is most of the time.
    monkeypatch.setenv("FREEZEFRAME_RUNNER_IDLE_SECONDS", "60")
    monkeypatch.chdir(tmp_path)
    for name in ("FREEZEFRAME_ROOT", "FREEZEFRAME_CONFIG", "FREEZEFRAME_ENVIRONMENT"):
        monkeypatch.delenv(name, raising=False)

    def run(example):
        for line, promised in commands(example.parsed):
            program, *arguments = shlex.split(line)
            if program == "cd":
                monkeypatch.chdir(arguments[0])
                continue
            assert program == "freezeframe"
            code = main(arguments)
            printed = capsys.readouterr()
            assert code == 0, f"{line}\n{printed.err}"
            assert as_pattern(promised).fullmatch(printed.out), f"{line}\n{printed.out}"

    def carry_out(page):
        blocks = list(Sybil(parsers=[CodeBlockParser("console", run)]).parse(page).examples())
        for block in blocks:
            block.evaluate()
        return len(blocks)

    return carry_out


@pytest.mark.spark
def test_every_block_of_the_tutorial_runs_in_order(carried_out):
    """From an empty folder to a schedule, with the outputs that the page shows."""
    assert carried_out(PAGE) >= 8


@pytest.mark.nightly
@pytest.mark.spark
def test_the_two_examples_store_and_export_the_same(tmp_path, carried_out):
    """The commands of their page run, and PySpark and pandas keep equal rows and write equal files."""
    shutil.copytree(EXAMPLES, tmp_path, dirs_exist_ok=True)
    assert carried_out(EXAMPLES / "README.md") == 2
    store = freezeframe.open(tmp_path / "freezeframe-data")
    kept = [
        [store.tenant(name).stream(stream).read(as_="pandas") for stream in STREAMS]
        for name in ("acme", "globex")
    ]
    for ours, theirs in zip(*kept, strict=True):
        pd.testing.assert_frame_equal(
            *(item.sort_values([*item.columns], ignore_index=True) for item in (ours, theirs))
        )
    roots = {
        name: tmp_path.glob(f"freezeframe-data/job-roots/{store.folder(name)}/*")
        for name in ("acme", "globex")
    }
    exports = {
        name: [(root / "etl-output" / "Billed.csv").read_text() for root in sorted(found)]
        for name, found in roots.items()
    }

    assert exports["acme"] == exports["globex"]
    newest = """Id,Name,Billed
007,Alder Mills,100.0
008,NA,
009,Cedar Works,21.75
010,Dogwood,310.0
011,Elm & Söhne,45.0
012,"The ""Good"" Fir",12.75
013,Ginkgo,5.5
"""
    assert newest == exports["acme"][1]


def test_promised_lines_are_compared():
    """Dots stand for text or lines; anything else that differs is a difference."""
    assert as_pattern(["a ... c", "...", "z"]).fullmatch("a b  c\n1\n2\nz\n")
    assert not as_pattern(["a ... c"]).fullmatch("a b\n")
    assert not as_pattern(["a", "z"]).fullmatch("a\nb\nz\n")
    assert commands("$ x 1\na\n$ y\n") == [("x 1", ["a"]), ("y", [])]
