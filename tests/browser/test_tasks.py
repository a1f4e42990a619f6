"""The tasks that decide, each within its number of actions (a click, or typing with Enter)."""

import re
import time

import pytest
from playwright.sync_api import expect
from tests.browser.saving import saving

pytestmark = pytest.mark.browser


@pytest.fixture
def act(page, record_property):
    """Counts what one does to the page; actions and seconds are properties of the test's report."""

    class Actor:
        actions, begun = 0, None

        def count(self):
            self.begun = self.begun or time.monotonic()
            self.actions += 1

        def click(self, locator):
            self.count()
            locator.click()

        def press(self, key):
            self.count()
            page.keyboard.press(key)

        def type(self, locator, text):
            self.count()
            locator.press_sequentially(text) if locator else page.keyboard.type(text)

    actor = Actor()
    yield actor
    record_property("actions", actor.actions)
    if actor.begun:
        record_property("seconds", round(time.monotonic() - actor.begun, 2))


def tenants(page):
    page.goto("/tenants")
    page.get_by_role("grid", name="Tenants").wait_for()


def test_a_tenant_among_hundreds_is_found_in_two_actions(page, act):
    """Typing a part of its id, and Enter."""
    tenants(page)
    # Other tests make some of their own.
    expect(page.get_by_text(re.compile(r"^2\d\d tenants$"))).to_be_visible()
    act.type(page.get_by_label("Search tenants"), "acme")
    page.keyboard.press("Enter")
    act.count()
    expect(page.get_by_role("grid", name="Snapshots")).to_be_visible()
    assert act.actions <= 2


def test_a_folder_of_fifty_files_is_uploaded_in_one_action(page, act, tmp_path):
    """Choosing the folder is all there is to do."""
    folder = tmp_path / "export"
    folder.mkdir()
    for number in range(50):
        (folder / f"part-{number:02d}.txt").write_text(f"{number}")
    page.goto("/tenants/customer-0002?panel=snapshots")
    chooser = page.get_by_label("Folder to upload")
    chooser.wait_for(state="attached")
    act.count()
    chooser.set_input_files(folder)
    expect(page.get_by_text("50 uploaded")).to_be_visible(timeout=30_000)
    page.get_by_role("gridcell", name="Folder export").click()
    grid = page.get_by_role("grid", name="Snapshots")
    expect(grid).to_have_attribute("aria-rowcount", "51")
    grid.focus()
    page.keyboard.press("End")  # only rows that can be seen are on the page
    expect(page.get_by_role("gridcell", name="File part-49.txt")).to_be_visible()
    history = page.request.get("/api/v1/environments/default/tenants/customer-0002/history?limit=2").json()
    assert len(history["versions"][0]["files_written"]) == 50
    assert act.actions <= 1


def test_what_a_job_changed_in_a_stream_is_seen_in_two_actions(page, act, picture):
    """When the tenant changed, the stream in the newest version: old and new values side by side."""
    tenants(page)
    act.click(page.get_by_title("Open the history of acme"))
    version = page.get_by_role("article").filter(has_text="job-4711")
    version.wait_for()
    picture(page, "history")
    act.click(version.get_by_role("button", name="Invoice", exact=True))
    rows = page.get_by_role("grid", name="Rows of Invoice that differ")
    expect(rows).to_contain_text("9007199254740015")
    expect(rows.locator("del").first).to_have_text("paid")
    expect(rows.locator("ins").first).to_have_text("void")
    expect(rows.get_by_role("gridcell", name="10.5").first).to_have_attribute("data-align", "right")
    picture(page, "difference")
    assert act.actions <= 2


def test_yesterdays_stream_is_brought_back_in_four_actions(page, act, picture):
    """When the tenant changed, the version's menu, its entry for the stream, Restore after the preview."""
    tenants(page)
    act.click(page.get_by_title("Open the history of acme"))
    act.click(page.get_by_role("button", name="Actions of version 2"))
    act.click(page.get_by_role("menuitem", name="Restore Invoice…"))
    dialog = page.get_by_role("dialog", name="Restore Invoice as of version 2")
    expect(dialog).to_contain_text("4,997 → 5,000 rows")
    expect(dialog.get_by_role("grid")).to_contain_text("paid")
    picture(page, "restore")
    act.click(dialog.get_by_role("button", name="Restore", exact=True))
    expect(dialog).to_have_count(0)
    assert act.actions <= 4
    page.goto("/tenants/acme?panel=snapshots&stream=Invoice")
    expect(page.get_by_text("5,000 rows", exact=True)).to_be_visible()


def test_a_value_of_a_configuration_is_changed_in_three_actions(page, act, picture):
    """Opening the file, typing, Save; what will change is marked before it is saved."""
    page.goto("/tenants/acme?panel=snapshots")
    act.click(page.get_by_role("gridcell", name="File tenant-config.json"))
    text = page.get_by_label("Content of tenant-config.json")
    text.wait_for()
    page.get_by_text("EUR").dblclick()
    act.type(None, "CHF")
    expect(page.locator(".cm-deletedChunk")).to_contain_text("EUR")
    picture(page, "file")
    with saving(page, "tenant-config.json"):
        act.click(page.get_by_role("button", name="Save"))
    expect(text).to_contain_text("CHF")
    assert act.actions <= 3


def test_a_stream_of_the_past_is_downloaded_in_three_actions(page, act):
    """The tenant, what the stream's newest version changed, and the version's own button."""
    tenants(page)
    act.click(page.get_by_role("gridcell", name="acme", exact=True))
    act.click(page.get_by_title("Open the versions of Account"))
    oldest = page.get_by_role("grid", name="Versions of Account").get_by_role("row").last
    with page.expect_download() as download:
        act.click(oldest.get_by_role("button", name="CSV"))
    lines = download.value.path().read_text().splitlines()
    assert (len(lines), lines[1]) == (121, "000,City 0")
    assert act.actions <= 3


def test_who_read_a_sealed_file_is_seen_in_three_actions(page, act):
    """The tenant, the file, and the way from it to the audit."""
    page.request.get("/api/v1/environments/default/tenants/acme/files/api-config.json")
    tenants(page)
    act.click(page.get_by_role("gridcell", name="acme", exact=True))
    act.click(page.get_by_role("gridcell", name="Sealed file api-config.json"))
    act.click(page.get_by_role("link", name="Readers"))
    audit = page.get_by_role("grid", name="Audit of acme")
    expect(audit).to_contain_text("Sealed file read")
    expect(audit.get_by_role("gridcell", name=re.compile("admin")).first).to_be_visible()
    assert act.actions <= 3


def test_what_happened_to_a_record_is_seen_in_two_actions(page, act):
    """Ctrl+K in a tenant's panel, its key and Enter: all its fields, and each version that touched it."""
    page.goto("/tenants/acme?panel=snapshots")
    page.get_by_role("grid", name="Snapshots").wait_for()
    act.press("Control+k")
    field = page.get_by_role("combobox", name="Tenant, stream, file, job, page, key or text")
    act.type(field, "007")
    expect(page.get_by_role("option", name="row acme / Account / 007")).to_be_visible()
    page.keyboard.press("Enter")
    versions = page.get_by_role("region", name="Versions of the row").get_by_role("article")
    expect(versions.first).to_contain_text("City 0")
    expect(versions.first).to_contain_text("City 1")
    assert act.actions <= 2


def test_an_earlier_version_of_a_file_is_downloaded_in_three_actions(page, act):
    """The file, its versions, and the version's own button."""
    for content in ('{"currency": "USD"}', '{"currency": "EUR"}'):
        address = "/api/v1/environments/default/tenants/acme/files/older.json"
        assert page.request.put(address, data=content, headers={"Origin": page.url}).ok
    page.goto("/tenants/acme?panel=snapshots")
    act.click(page.get_by_role("gridcell", name="File older.json"))
    act.click(page.get_by_role("button", name="Versions"))
    with page.expect_download() as download:
        act.click(page.get_by_role("button", name="Download version").last)
    assert download.value.path().read_text() == '{"currency": "USD"}'
    assert act.actions <= 3


def test_a_schedule_is_made_in_three_actions(page, act):
    """On the tenant's page: the dialog, the script, which names the schedule, and Create."""
    page.goto("/tenants/customer-0201?panel=jobs")
    act.click(page.get_by_role("button", name="Create schedule"))
    dialog = page.get_by_role("dialog", name="Create schedule")
    act.type(dialog.get_by_role("combobox", name="Script"), "etl")
    expect(page.get_by_role("option").first).to_be_visible()  # the list of scripts has come
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    act.click(dialog.get_by_role("button", name="Create", exact=True))
    expect(page.get_by_text("etl of customer-0201 runs next at ")).to_be_visible()
    assert act.actions <= 3
