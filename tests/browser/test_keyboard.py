"""The tasks that decide, by keyboard alone; the focus is where it came from when something closes."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import expect
from tests.browser.saving import saving

pytestmark = pytest.mark.browser


@pytest.fixture
def press(page):
    """Presses keys, one after the other."""

    def keys(*names):
        for name in names:
            page.keyboard.press(name)

    return keys


def tab_to(page, locator, most=40, key="Tab"):
    """Go on by the key until it has the focus, as people do."""
    for _ in range(most):
        if locator.evaluate("element => element === document.activeElement"):
            return
        page.keyboard.press(key)
    expect(locator).to_be_focused()


def open_tenant(page, tenant):
    """Search and Enter: the list of the tenant's snapshots has the focus."""
    page.goto("/tenants")
    page.get_by_role("grid", name="Tenants").wait_for()
    expect(page.get_by_label("Search tenants")).to_be_focused()
    page.keyboard.type(tenant)
    page.keyboard.press("Enter")


def test_the_history_of_a_job_and_a_restoration_without_a_mouse(page, press):
    """Tenant, History by arrow keys, the changed rows of a stream, a restoration up to its button."""
    open_tenant(page, "acme")
    grid = page.get_by_role("grid", name="Snapshots")
    expect(grid).to_be_focused()
    tab_to(page, page.get_by_role("tab", name="Snapshots"), most=60)
    press("ArrowRight")
    versions = page.get_by_role("region", name="Versions")
    version = versions.get_by_role("article").filter(has_text="job-4711")
    version.wait_for()
    tab_to(page, versions)
    tab_to(page, version, key="ArrowDown")
    tab_to(page, version.get_by_role("button", name="Invoice", exact=True), most=5)
    press("Enter")
    expect(page.get_by_role("grid", name="Rows of Invoice that differ")).to_contain_text("void")
    page.go_back()
    version.wait_for()
    tab_to(page, versions)
    tab_to(page, page.get_by_role("article", name="Version 2", exact=True), key="ArrowDown")
    tab_to(page, page.get_by_role("button", name="Actions of version 2"), most=10)
    press("Enter")
    tab_to(page, page.get_by_role("menuitem", name="Restore Invoice…"), key="ArrowDown")
    press("Enter")
    dialog = page.get_by_role("dialog", name="Restore Invoice as of version 2")
    expect(dialog.get_by_role("button", name="Restore", exact=True)).to_be_enabled()
    press("Escape")
    expect(dialog).to_be_hidden()
    expect(page.get_by_role("button", name="Actions of version 2")).to_be_focused()


def test_files_are_made_selected_opened_and_deleted_without_a_mouse(page, press, served, tmp_path):
    """U uploads, N makes a folder, Space selects, D downloads, Del deletes, Ctrl+Z brings back."""
    place = f"{served.url}/api/v1/environments/default/tenants/customer-0030"
    for name in ("a.txt", "b.txt"):
        page.request.put(f"{place}/files/{name}", data=name, headers={"Origin": served.url})
    # Asked for early: the browser must know before the key is pressed that no dialog of the system is wanted.
    page.on("filechooser", lambda _: None)
    open_tenant(page, "customer-0030")
    grid = page.get_by_role("grid", name="Snapshots")
    expect(grid).to_be_focused()
    with page.expect_file_chooser() as chooser:
        press("u")
    (tmp_path / "c.txt").write_text("c")
    chooser.value.set_files(tmp_path / "c.txt")
    expect(page.get_by_role("gridcell", name="File c.txt")).to_be_visible()
    press("n")
    expect(page.get_by_role("dialog", name="Create folder").get_by_label("Name")).to_be_focused()
    page.keyboard.type("new")
    press("Enter")
    expect(page.get_by_role("gridcell", name="Folder new")).to_be_visible()
    expect(grid).to_be_focused()
    press("Home", "ArrowDown", "Space")
    with page.expect_download() as download:
        press("d")
    assert download.value.suggested_filename == "a.txt"
    press("Delete")
    expect(page.get_by_role("gridcell", name="File a.txt")).to_be_hidden()
    expect(page.get_by_role("button", name="Undo")).to_be_visible()
    press("Control+z")
    expect(page.get_by_role("gridcell", name="File a.txt")).to_be_visible()


def test_the_tab_key_stops_at_one_version_only(page, press):
    """Arrows, Home and End go to another one; what it offers comes next, and then what follows the list."""
    page.goto("/tenants/acme?panel=history")
    versions = page.get_by_role("region", name="Versions")
    articles = versions.get_by_role("article")
    articles.first.wait_for()
    stops = "all => all.filter(one => one.tabIndex === 0).map(one => one.closest('article').ariaLabel)"
    controls = versions.locator("article :is(button, a, input)")
    versions.focus()
    press("ArrowDown")
    expect(articles.first).to_be_focused()
    press("End")
    last = versions.get_by_role("article", name="Version 0", exact=True)
    expect(last).to_be_focused()
    assert set(controls.evaluate_all(stops)) == {"Version 0"}
    press("ArrowUp")
    expect(versions.get_by_role("article", name="Version 1", exact=True)).to_be_focused()
    press("Home", "Tab")
    expect(articles.first.get_by_role("checkbox")).to_be_focused()
    last.get_by_role("checkbox").focus()
    assert set(controls.evaluate_all(stops)) == {"Version 0"}


def test_a_folder_is_uploaded_and_its_readers_are_seen_without_a_mouse(page, press, served, tmp_path):
    """The menu beside Upload takes a folder; a sealed file's own link leads to who read it."""
    folder = tmp_path / "export"
    folder.mkdir()
    for name in ("a.txt", "b.txt"):
        (folder / name).write_text(name)
    page.on("filechooser", lambda _: None)
    open_tenant(page, "customer-0033")
    more = page.get_by_role("button", name="More ways to upload")
    more.wait_for()
    tab_to(page, more, most=60)
    press("Enter")
    item = page.get_by_role("menuitem", name="Upload a folder")
    item.wait_for()
    tab_to(page, item, most=3, key="ArrowDown")
    with page.expect_file_chooser() as chooser:
        press("Enter")
    chooser.value.set_files(folder)
    expect(page.get_by_text("2 uploaded")).to_be_visible()
    page.request.get(f"{served.url}/api/v1/environments/default/tenants/acme/files/api-config.json")
    open_tenant(page, "acme")
    grid = page.get_by_role("grid", name="Snapshots")
    expect(grid).to_be_focused()
    for _ in range(20):
        if grid.locator("[data-active]").filter(has_text="api-config.json").count():
            break
        press("ArrowDown")
    press("Enter")
    link = page.get_by_role("link", name="Readers")
    link.wait_for()
    tab_to(page, link, most=60)
    press("Enter")
    expect(page.get_by_role("grid", name="Audit of acme")).to_contain_text("Sealed file read")


def test_the_list_of_tenants_is_sorted_and_comes_back_to_where_one_was(page, press):
    """Sorting by a column's head is in the address; Esc closes the panel and the list has the focus again."""
    page.goto("/tenants")
    grid = page.get_by_role("grid", name="Tenants")
    grid.wait_for()
    # The heads are one stop of the Tab key; arrows move between them.
    tab_to(page, grid.get_by_role("button", name="Tenant", exact=True))
    press("ArrowRight", "ArrowRight")
    expect(grid.get_by_role("button", name="Rows")).to_be_focused()
    press("Enter")
    page.wait_for_url(re.compile("sort=-rows"))
    expect(grid.get_by_role("row").nth(1)).to_contain_text("acme")
    expect(grid.get_by_role("columnheader", name="Rows")).to_have_attribute("aria-sort", "descending")
    grid.focus()
    press("Enter")
    expect(page.get_by_role("grid", name="Snapshots")).to_be_focused()
    press("?")
    # A dialog that is closed before it has the focus cannot give it back.
    expect(page.get_by_role("dialog", name="Keyboard shortcuts").locator(":focus")).to_have_count(1)
    press("Escape")
    expect(page.get_by_role("dialog", name="Keyboard shortcuts")).to_have_count(0)
    expect(page.get_by_role("grid", name="Snapshots")).to_be_focused()
    press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(grid).to_be_focused()
    assert "sort=-rows" in page.url


def test_a_file_is_edited_and_a_past_stream_downloaded_without_a_mouse(page, press, served):
    """Enter opens; the editor is reached by Tab, Ctrl+S or Save saves; a version's own button downloads."""
    place = f"{served.url}/api/v1/environments/default/tenants/customer-0031"
    page.request.put(f"{place}/files/note.txt", data="first", headers={"Origin": served.url})
    open_tenant(page, "customer-0031")
    expect(page.get_by_role("grid", name="Snapshots")).to_be_focused()
    press("Enter")
    text = page.get_by_label("Content of note.txt")
    expect(text).to_contain_text("first")
    tab_to(page, text, most=60)
    press("Control+End")
    page.keyboard.type(" and second")
    press("Escape")  # leaves the editor, whose Tab would be a tab
    tab_to(page, page.get_by_role("button", name="Save"), most=60)
    with saving(page, "note.txt"):
        press("Enter")
    assert page.request.get(f"{place}/files/note.txt").text() == "first and second"
    open_tenant(page, "acme")
    expect(page.get_by_role("grid", name="Snapshots")).to_be_focused()
    press("ArrowDown", "Enter")
    expect(page.get_by_text("City 1").first).to_be_visible()
    tab_to(page, page.get_by_role("radio", name="Preview"), most=60)
    press("ArrowRight", "ArrowRight")
    versions = page.get_by_role("grid", name="Versions of Account")
    tab_to(page, versions, most=60)
    press("End")  # only the active row's buttons are stops of the Tab key
    first = versions.get_by_role("row").last.get_by_role("button", name="CSV")
    tab_to(page, first, most=60)
    with page.expect_download() as download:
        press("Enter")
    assert "City 0" in Path(download.value.path()).read_text()
