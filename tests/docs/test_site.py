"""The documentation is a site: every page is on it, and every link leads somewhere."""

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parent.parent.parent


@pytest.fixture(scope="module")
def site_links():
    """What turns a page's links into those of the site."""
    spec = importlib.util.spec_from_file_location("docs_pages", REPOSITORY / "tools" / "docs_pages.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.site_links


KNOWN = frozenset({"index.md", "architecture.md", "tutorial.md", "how-to/serve.md", "decisions/README.md"})


@pytest.mark.parametrize(
    ("page", "markdown", "expected"),
    [
        ("index.md", "[a](docs/tutorial.md#x)", "[a](tutorial.md#x)"),
        ("how-to/serve.md", "[a](../../ARCHITECTURE.md)", "[a](../architecture.md)"),
        ("how-to/serve.md", "[a](../tutorial.md)", "[a](../tutorial.md)"),
        ("architecture.md", "[`a`](docs/decisions/README.md)", "[`a`](decisions/README.md)"),
        ("how-to/serve.md", "[results](../../benchmarks/jobs.py)", "results"),
        ("how-to/serve.md", "[a](absent.md)", "[a](absent.md)"),
        ("index.md", "[a](https://example.org/b.md)", "[a](https://example.org/b.md)"),
        ("index.md", "![a](docs/assets/console.png)", "![a](assets/console.png)"),
    ],
)
def test_links_fit_the_site(site_links, page, markdown, expected):
    """A page of the site is linked; another file of the repository becomes its text."""
    assert site_links(markdown, page, KNOWN) == expected


SEARCHED = {
    "rollback": "how-to/look-after-tenants.html#undo-a-sync-rollback",
    "undo": "how-to/look-after-tenants.html#undo-a-sync-rollback",
    "excel": "how-to/read-with-other-tools.html#excel",
    "sso": "how-to/serve.html#sso-sign-in-with-your-own-accounts",
    "null": "reference/semantics.html#empty-cells-null-duplicate-rows-keys-case-by-case",
    "duplicate": "reference/semantics.html#empty-cells-null-duplicate-rows-keys-case-by-case",
}
"""Words that readers search, and the section to which each leads: the search ranks words of titles first."""


@pytest.mark.nightly
def test_the_site_is_built_without_a_warning(tmp_path):
    """A link that leads nowhere fails; the words that readers search are in titles outside of Internals."""
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")],
        cwd=REPOSITORY,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "site" / "reference" / "python" / "freezeframe.html").read_text(encoding="utf-8")
    assert "update_snapshot" in page
    index = json.loads((tmp_path / "site" / "search" / "search_index.json").read_text(encoding="utf-8"))
    titles = {
        item["location"]: re.split(index["config"]["separator"], item["title"].lower())
        for item in index["docs"]
        if "boost" not in item
    }
    lost = {word: target for word, target in SEARCHED.items() if word not in titles.get(target, ())}
    assert lost == {}
    assert "reference/tenant-log.html" not in titles
