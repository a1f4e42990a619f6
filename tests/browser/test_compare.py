"""Two tenants beside each other: streams, their columns, and files."""

import pyarrow as pa
import pytest
from playwright.sync_api import expect
from tests.browser.navigation import go

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module", autouse=True)
def tenants(store):
    """A tenant, and another one with a column more, a stream less, and another configuration."""
    for name, batch, extra in (("compare-left", 500, {}), ("compare-right", 50, {"Note": ["x", "y", "z"]})):
        with store.tenant(name, create=True).job("job", who="sync") as job:
            rows = {"Id": ["1", "2", "3"], "City": ["a", "b", "c"], **extra}
            job.stream("Account").update(pa.table(rows), "Id")
            if not extra:
                job.stream("Invoice").update(pa.table({"Id": ["1"]}), "Id")
            job.files.write_json("tenant-config.json", {"batch": batch})
            job.files.write("mappings/same.csv", b"Id\n1\n")
            job.files.write_json("api-config.json", {"token": name}, sealed=True)


def test_two_tenants_are_compared_in_three_actions(visit, picture):
    """From a tenant's settings: their streams with rows and columns, differing files, a missing tenant."""
    page = visit(color_scheme="light")
    page.goto("/tenants/compare-left?panel=settings")
    page.get_by_role("link", name="Compare compare-left with another tenant").click()
    page.get_by_role("combobox", name="Compare with", exact=True).fill("compare-right")
    page.get_by_role("option", name="compare-right").click()
    streams = page.get_by_role("table", name="Streams of both")
    account = streams.get_by_role("row", name="Account")
    expect(account).to_contain_text("3 rows")
    expect(account).to_contain_text("Note is in compare-right only")
    expect(streams.get_by_role("row", name="Invoice")).to_contain_text("missing")
    files = page.get_by_role("region", name="Files")
    expect(files.get_by_role("status")).to_have_text("1 is the same, 2 differ.")
    expect(files.get_by_role("row", name="api-config.json")).to_contain_text("sealed: not compared")
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        expect(page.locator("html")).to_have_attribute("data-mantine-color-scheme", scheme)
        picture(page, f"compare-{scheme}")
    page.goto(page.url)
    files.get_by_role("button", name="Compare tenant-config.json").click()
    dialog = page.get_by_role("dialog", name="tenant-config.json of compare-left and compare-right")
    expect(dialog).to_contain_text("500")
    expect(dialog.get_by_label("Right text")).to_contain_text("50")
    picture(page, "compare-text")
    page.keyboard.press("Escape")
    page.set_viewport_size({"width": 390, "height": 800})
    expect(account).to_be_visible()
    picture(page, "compare-narrow")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    go(page, "/compare?env=default&left=compare-left&right=nobody-at-all")
    expect(page.get_by_role("alert")).to_contain_text("nobody-at-all")
    expect(page.get_by_role("combobox", name="Compare with", exact=True)).to_be_visible()
