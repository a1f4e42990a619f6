"""MkDocs hook: adds the repository's own pages to the site, and makes links out of ``docs/`` fit it.

The pages are written to be read in the repository as well, where they link to README.md, ARCHITECTURE.md
and source files. On the site the former are pages; a link to any other file becomes its text.
"""  # noqa: INP001 - a script, no package

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

REPOSITORY = Path(__file__).parent.parent

PAGES = {
    "README.md": "index.md",
    "ARCHITECTURE.md": "architecture.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "examples/README.md": "examples.md",
    "docs/README.md": "documentation.md",
}
"""Files of the repository, and the page of the site that shows each; the others are those of ``docs/``."""

INTERNALS = "Internals"
INTERNALS_BOOST = 0.001
"""Multiplies the rank of these pages in the search, where a word of a title counts a thousand times."""

_LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\]]*\])*)\]\((?![a-z]+:|#)([^)\s#]+)(#[^)\s]*)?\)")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """List, at the end of each section, the pages of its folder that the navigation does not name."""
    named = set(_named(config.nav))
    for title, folder in (
        ("Operate", "how-to"),
        ("Reference", "reference"),
        (INTERNALS, "explanation"),
        ("Decisions", "decisions"),
    ):
        pages = (f"{folder}/{path.name}" for path in sorted(Path(config.docs_dir, folder).glob("*.md")))
        _section(config.nav, title).extend(page for page in pages if page not in named)
    return config


def _named(entry: Any) -> Iterator[str]:
    """The pages of a navigation or of an entry of it."""
    if isinstance(entry, str):
        yield entry
    else:
        for part in entry.values() if isinstance(entry, dict) else entry:
            yield from _named(part)


def _section(entry: Any, title: str) -> list[Any]:
    """The entries of the section with that title, at whatever depth."""
    if isinstance(entry, dict) and title in entry:
        return cast("list[Any]", entry[title])
    parts = entry.values() if isinstance(entry, dict) else entry if isinstance(entry, list) else ()
    return next((found for found in (_section(part, title) for part in parts) if found), [])


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that have another name on the site."""
    for source, page in PAGES.items():
        path = REPOSITORY / source
        if path.exists():
            files.append(File.generated(config, page, content=path.read_text(encoding="utf-8")))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Point links at pages of the site, and rank pages of Internals last in the search."""
    del config
    if any(section.title == INTERNALS for section in page.ancestors):
        page.meta.setdefault("search", {"boost": INTERNALS_BOOST})
    return site_links(markdown, page.file.src_uri, frozenset(files.src_uris))


def site_links(markdown: str, page: str, known: frozenset[str]) -> str:
    """The text of a page with its relative links as they are on the site."""
    sources = {on_site: source for source, on_site in PAGES.items()}
    folder = posixpath.dirname(sources.get(page, f"docs/{page}"))

    def linked(match: re.Match[str]) -> str:
        text, target, anchor = match.group(1), match.group(2), match.group(3) or ""
        source = posixpath.normpath(posixpath.join(folder, target))
        on_site = PAGES.get(source, source.removeprefix("docs/"))
        if on_site in known and (source in PAGES or source.startswith("docs/")):
            return f"[{text}]({posixpath.relpath(on_site, posixpath.dirname(page) or '.')}{anchor})"
        if source.startswith("docs/") or not (REPOSITORY / source).exists():
            return match.group(0)  # MkDocs says that it leads nowhere
        return text

    def pictured(match: re.Match[str]) -> str:
        source = posixpath.normpath(posixpath.join(folder, match.group(2))).removeprefix("docs/")
        return f"![{match.group(1)}]({posixpath.relpath(source, posixpath.dirname(page) or '.')})"

    markdown = re.sub(r"!\[([^\]]*)\]\((?![a-z]+:)([^)\s]+)\)", pictured, markdown)
    return _LINK.sub(linked, markdown)
