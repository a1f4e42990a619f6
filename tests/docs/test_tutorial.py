"""The tutorial is carried out as a newcomer would: each command runs, and prints what the page says."""

import re
import shlex
from pathlib import Path

import pytest
from sybil import Sybil
from sybil.parsers.markdown import CodeBlockParser

from freezeframe.cli.main import main

PAGE = Path(__file__).parent.parent.parent / "docs" / "tutorial.md"


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


@pytest.mark.spark
def test_every_block_runs_in_order(tmp_path, monkeypatch, capsys, spark_session, default_engine):
    """From an empty folder to a schedule, with the outputs that the page shows."""
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
            assert "freezeframe" == program
            code = main(arguments)
            printed = capsys.readouterr()
            assert 0 == code, f"{line}\n{printed.err}"
            assert as_pattern(promised).fullmatch(printed.out), f"{line}\n{printed.out}"

    blocks = list(Sybil(parsers=[CodeBlockParser("console", run)]).parse(PAGE).examples())
    for block in blocks:
        block.evaluate()

    assert len(blocks) >= 8


def test_promised_lines_are_compared():
    """Dots stand for text or lines; anything else that differs is a difference."""
    assert as_pattern(["a ... c", "...", "z"]).fullmatch("a b  c\n1\n2\nz\n")
    assert not as_pattern(["a ... c"]).fullmatch("a b\n")
    assert not as_pattern(["a", "z"]).fullmatch("a\nb\nz\n")
    assert [("x 1", ["a"]), ("y", [])] == commands("$ x 1\na\n$ y\n")
