"""The pages that are written from the code are what the code says, and links lead somewhere."""

import importlib
import re
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parent.parent.parent
PAGES = sorted([*REPOSITORY.glob("*.md"), *(REPOSITORY / "docs").rglob("*.md")])


@pytest.mark.parametrize("tool", ["write_reference", "write_api"])
def test_reference_pages_follow_from_the_code(tool, monkeypatch, capsys):
    """Commands, settings, errors and routes are documented as they are; the script says how to write them."""
    monkeypatch.syspath_prepend(REPOSITORY / "tools")

    assert importlib.import_module(tool).main(["--check"]) == 0, capsys.readouterr().err


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_links_inside_the_repository_lead_somewhere(page):
    """Each relative link of a page names a file that exists."""
    targets = re.findall(r"\]\((?!https?:|#)([^)#\s]+)", page.read_text(encoding="utf-8"))

    assert [target for target in targets if not (page.parent / target).exists()] == []


def test_pages_that_the_code_names_exist():
    """Where a docstring or comment sends its reader to docs/, there is a page."""
    named = {
        match
        for file in (REPOSITORY / "src").rglob("*.py")
        for match in re.findall(r"docs/[\w./-]+", file.read_text(encoding="utf-8"))
    }
    missing = [name for name in sorted(named) if not _exists(name.rstrip("."))]

    assert missing == []


def _exists(name):
    # A decision is named by its number alone.
    return (REPOSITORY / name).exists() or any(REPOSITORY.glob(f"{name}-*.md"))
