"""The pages about the log say what is so: examples run, named tests exist, no behaviour is left out."""

import re
from pathlib import Path

from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "docs" / "reference"
TESTS = [path.read_text() for path in (ROOT / "tests").rglob("test_*.py")]
NAMES = {name for text in TESTS for name in re.findall(r"def (test_\w+)", text)}


def numbers_with_tests():
    """The numbers in tests' names; `b002_to_b024` is the whole range."""
    found = {int(name[6:9]) for name in NAMES if re.match(r"test_b\d{3}_", name)}
    return found | set(range(2, 25))


def test_the_examples_of_the_page_run():
    """The seed's demo and the others give what the page shows."""
    document = Sybil(parsers=[PythonCodeBlockParser()]).parse(PAGES / "snapshot-management.md")
    examples = list(document.examples())
    for example in examples:
        example.evaluate()
    assert len(examples) == 3


def test_the_examples_of_the_librarys_page_run(tmp_path, monkeypatch):
    """On disk and in a bucket, without Spark; what they print is compared by the tests of all pages."""
    monkeypatch.chdir(tmp_path)
    document = Sybil(parsers=[PythonCodeBlockParser()]).parse(PAGES / "log.md")
    examples = list(document.examples())
    for example in examples:
        example.evaluate()
    assert len(examples) == 13


def test_every_name_of_the_seed_has_a_test_that_exists():
    """Each row ends with the name of a test."""
    rows = re.findall(
        r"^\| (.+?) \| .+ \| `(test_\w+)` \|$", (PAGES / "snapshot-management.md").read_text(), re.MULTILINE
    )
    assert {seed: test for seed, test in rows if test not in NAMES} == {}
    assert len(rows) >= 35


def test_every_behaviour_has_a_numbered_test_or_a_reason():
    """No number is missing from the page, and none is without a test and without a reason."""
    page = (PAGES / "delta-compatibility.md").read_text()
    rows = {int(row[1]): row[2] for row in re.finditer(r"^\| (\d+) \| .+? \|(.*)\|$", page, re.MULTILINE)}
    assert set(range(1, 79)) <= rows.keys()
    tested = numbers_with_tests()
    assert [number for number, reason in rows.items() if number not in tested and not reason.strip()] == []
    named = {name for reason in rows.values() for name in re.findall(r"`(tests/[\w/]+\.py)`", reason)}
    assert [name for name in named if not (ROOT / name).is_file()] == []
