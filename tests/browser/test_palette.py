"""Ctrl+K finds what has a name or a key, and is a combobox."""

import pytest
from playwright.sync_api import expect
from tests.browser.accessibility import findings
from tests.browser.navigation import go

pytestmark = pytest.mark.browser


def test_the_search_takes_letters_at_once(visit):
    """What is typed right after Ctrl+K is in the field, also on a page that was just loaded."""
    page = visit(alone=True)
    page.goto("/tenants")
    page.get_by_role("grid", name="Tenants").wait_for()
    page.keyboard.press("Control+k")
    page.keyboard.type("acme")
    field = page.get_by_role("combobox", name="Tenant, stream, file, job, page, key or text")

    expect(field).to_have_value("acme")


def test_rows_files_and_pages_are_found_by_typing(page, picture):
    """A row by its key, a file by a part of its path, a page by its name; the chosen option is named."""
    page.goto("/tenants/acme?panel=snapshots")
    expect(page.get_by_role("grid", name="Snapshots")).to_be_visible()
    field = page.get_by_role("combobox", name="Tenant, stream, file, job, page, key or text")
    page.keyboard.press("Control+k")
    field.fill("007")
    row = page.get_by_role("option", name="row acme / Account / 007")
    expect(row).to_be_visible()
    expect(row).to_have_attribute("aria-selected", "true")
    assert field.get_attribute("aria-activedescendant") == row.get_attribute("id")
    assert findings(page) == []
    picture(page, "palette")
    page.keyboard.press("Enter")
    expect(page.get_by_role("table", name="Fields")).to_contain_text("007")
    go(page, "/overview")
    page.get_by_role("heading", name="Overview").wait_for()
    page.keyboard.press("Control+k")
    field.fill("acme/accounts.csv")
    page.get_by_role("option", name="file acme / mappings/accounts.csv").click()
    expect(page.get_by_role("dialog", name="acme")).to_contain_text("accounts.csv")
    go(page, "/tenants")
    page.get_by_role("grid", name="Tenants").wait_for()
    page.keyboard.press("Control+k")
    field.fill("audit")
    expect(page.get_by_role("option", name="page Audit")).to_be_visible()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Audit")).to_be_visible()


def test_a_text_is_found_over_all_tenants_and_typing_on_ends_the_search(page, picture):
    """Rows come in while the service searches; a found one opens its sheet; the search before is given up."""
    page.goto("/overview")
    page.get_by_role("heading", name="Overview").wait_for()
    page.keyboard.press("Control+k")
    field = page.get_by_role("combobox", name="Tenant, stream, file, job, page, key or text")
    page.route("**/found-rows?text=CITY*", lambda _route: None)  # a search that takes its time
    with page.expect_request("**/found-rows?text=CITY*"):
        field.fill("CITY 1")
    expect(page.get_by_text("Searching rows")).to_be_visible()
    with page.expect_event("requestfailed", lambda request: "found-rows?text=CITY" in request.url):
        field.fill("City 1")
    row = page.get_by_role("option", name="row acme / Account / 000: City City 1")
    expect(row).to_be_visible()
    picture(page, "palette-text")
    field.fill("no such text anywhere")
    expect(row).to_be_hidden()
    expect(page.get_by_text("Nothing in default matches")).to_be_visible()
    field.fill("city 1")
    row.click()
    expect(page.get_by_role("table", name="Fields")).to_contain_text("City 1")
