"""The examples of the documentation run, and print what they say they print."""

import ast
import contextlib
import io
from pathlib import Path

import pytest
from sybil import Sybil
from sybil.parsers.markdown import CodeBlockParser

REPOSITORY = Path(__file__).parent.parent.parent
PAGES = sorted(
    page
    for page in [*REPOSITORY.glob("*.md"), *(REPOSITORY / "docs").rglob("*.md")]
    if "```python" in page.read_text(encoding="utf-8")
)


def run(example):
    """Run one block; the comment after a ``print`` is what it must print (or the start of each line)."""
    code = example.parsed
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, str(example.path), "exec"), example.namespace)
    expected = promised(code)
    if expected:
        actual = [line.rstrip() for line in printed.getvalue().splitlines()]
        assert actual == expected, f"{example.path}:{example.line}"


def promised(code):
    """The comment lines that stand below a statement that prints, in order."""
    lines = code.splitlines()
    ends = [
        node.end_lineno
        for node in ast.parse(code).body
        if any(isinstance(part, ast.Name) and part.id == "print" for part in ast.walk(node))
    ]
    found = []
    for end in ends:
        for line in lines[end:]:
            if not line.startswith("# "):
                break
            found.append(line.removeprefix("# "))
    return found


@pytest.mark.spark
@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_examples_run(page, tmp_path, monkeypatch, request, spark_settings, default_engine):
    """All Python blocks of a page run in order in an empty folder, in one namespace."""
    has_delta = 'format("delta")' in page.read_text(encoding="utf-8")
    given = {"delta_session": request.getfixturevalue("delta_session")} if has_delta else {}
    monkeypatch.chdir(tmp_path)
    # A page may set a master key; it is gone with the page.
    monkeypatch.setenv("FREEZEFRAME_MASTER_KEY_FILE", "")
    monkeypatch.delenv("FREEZEFRAME_MASTER_KEY_FILE")
    document = Sybil(parsers=[CodeBlockParser("python", run)]).parse(page)
    examples = list(document.examples())
    document.namespace.update(given)
    for example in examples:
        example.evaluate()

    assert examples


def test_the_first_page_shows_all_that_it_runs():
    """Its scripts run in an empty folder of the reader's, so nothing may be prepared out of sight."""
    assert "invisible-code-block" not in (REPOSITORY / "README.md").read_text(encoding="utf-8")


def test_promised_output_is_found():
    """The reader of comments takes those below a print, and none of the others."""
    code = "# first\nx = 1\nprint(x)\n# 1\n\n# later\nfor y in (1, 2):\n    print(y)\n# 1\n# 2\n"

    assert promised(code) == ["1", "1", "2"]
