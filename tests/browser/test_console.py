"""What holds on every page: who may what, who signs in, the keyboard, the address, a service that is away."""

import re

import pytest
from playwright.sync_api import expect
from tests.browser.navigation import go

pytestmark = pytest.mark.browser


def test_a_viewer_sees_no_button_that_would_fail(visit):
    """Nothing to upload, create, delete, restore or save; and no pages for admins."""
    page = visit("viewer")
    page.goto("/tenants/acme?panel=snapshots")
    page.get_by_role("grid", name="Snapshots").wait_for()
    for name in ("Upload", "Create folder", "Delete", "Create tenant"):
        expect(page.get_by_role("button", name=name, exact=True)).to_have_count(0)
    for name in ("Keys", "Audit"):
        expect(page.get_by_role("link", name=name)).to_have_count(0)
    go(page, "/tenants/acme?panel=snapshots&file=tenant-config.json")
    expect(page.get_by_label("Content of tenant-config.json")).to_be_visible()
    expect(page.get_by_role("button", name="Save")).to_have_count(0)
    go(page, "/tenants/acme?panel=history&before=2&after=3")
    grid = page.get_by_role("grid", name="Rows of Invoice that differ")
    expect(grid).to_contain_text("void")
    expect(grid.get_by_role("checkbox")).to_have_count(0)
    expect(page.get_by_role("button", name=re.compile("Restore"))).to_have_count(0)
    go(page, "/tenants/acme?panel=snapshots&stream=Account&row=001")
    sheet = page.get_by_role("dialog", name="Account 001")
    expect(sheet.get_by_role("article", name="Version 1")).to_be_visible()
    expect(sheet.get_by_role("button", name="Restore this row…")).to_have_count(0)
    go(page, "/schedules")
    expect(page.get_by_role("heading", name="Schedules")).to_be_visible()
    expect(page.get_by_role("button", name="Create schedule")).to_have_count(0)


def test_a_sealed_file_offers_nothing_to_a_key_that_may_not_open_it(visit, picture):
    """No Reveal and no Download, of the file, of its versions and in its folder; what is missing is said."""
    page = visit("viewer")
    download = page.get_by_role("button", name=re.compile("^Download"))
    page.goto("/tenants/acme?panel=snapshots&file=api-config.json")
    expect(page.get_by_text("Your key needs the scope secrets:read to open it.")).to_be_visible()
    expect(page.get_by_role("button", name="Reveal")).to_have_count(0)
    expect(download).to_have_count(0)
    picture(page, "sealed-viewer")
    page.get_by_role("button", name="Versions", exact=True).click()
    expect(page.get_by_role("article")).to_have_count(1)
    expect(download).to_have_count(0)
    go(page, "/tenants/acme?panel=snapshots")
    grid = page.get_by_role("grid", name="Snapshots")
    grid.get_by_label("Select tenant-config.json").check()
    expect(download).to_be_enabled()
    grid.get_by_label("Select api-config.json").check()
    expect(page.get_by_role("region", name="Selection")).to_contain_text("2 selected")
    expect(download).to_have_count(0)


@pytest.mark.parametrize("width", [390, 1024, 1280, 1440])
def test_a_full_list_of_tenants_is_drawn_at_each_width(page, width, picture):
    """Each row that is seen has its tenant's figures, and the page complains about nothing."""
    page.set_viewport_size({"width": width, "height": 900})
    page.goto("/tenants?q=customer-01")
    rows = page.get_by_role("grid", name="Tenants").get_by_role("row")
    expect(rows.filter(has=page.locator("time")).nth(10)).to_be_visible()
    page.wait_for_timeout(300)  # what a drawing too many throws comes after what it drew
    picture(page, f"tenants-{width}")

    drawn = rows.filter(has=page.get_by_text("customer-01"))
    assert drawn.count() == drawn.filter(has=page.locator("time")).count()


def test_a_stranger_signs_in_and_comes_to_the_page_that_was_asked_for(visit, picture, served):
    """A wrong key is told and what was typed stays; the right one leads to the address of before."""
    page = visit(None)
    told = []
    page.on("console", lambda message: told.append(message.text))
    page.goto("/tenants/acme?panel=settings")
    key = page.get_by_label("API key")
    key.wait_for()
    assert told == []
    key.fill("wrong.key")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_contain_text("caller is not authenticated")
    picture(page, "sign-in")
    assert key.input_value() == "wrong.key"
    key.fill(served.keys["viewer"])
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("region", name="Retention")).to_be_visible()


def test_all_that_a_page_needs_first_is_requested_at_once(visit):
    """One script, one style sheet and the session, which is requested once."""
    page = visit(alone=True)
    requested = []
    page.on("request", lambda request: requested.append(request.url.partition("?")[0]))
    page.goto("/tenants")
    page.get_by_role("grid", name="Tenants").wait_for()

    first = requested[1:4]
    assert sorted(url.rpartition(".")[2] for url in first if "/assets/" in url) == ["css", "js"]
    assert [url for url in requested if url.endswith("/session")] == [url for url in first if "/api/" in url]


def test_a_key_is_pasted_once(visit, sessions, browser, served):
    """With a key one sees what the key may, after a reload too; no script can read where it is kept."""
    context = browser.new_context(base_url=served.url, storage_state=sessions["admin"])
    order = {"name": "console", "scopes": ["tenants:read", "snapshots:read"], "tenants": ["acme"]}
    made = context.request.post("/api/v1/keys", data=order, headers={"Origin": served.url}).json()
    context.close()
    page = visit(None)
    page.goto("/tenants")
    page.get_by_label("API key").fill(made["key"])
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_text("1 tenant", exact=True)).to_be_visible()
    page.reload()
    expect(page.get_by_role("grid", name="Tenants")).to_contain_text("acme")
    assert page.evaluate("document.cookie") == ""


def test_the_link_that_serve_prints_signs_in_once(visit, served):
    """It leads to the first page as an administrator, and out of the address; used again it is refused."""
    page = visit(None)
    page.goto(served.sign_in)
    expect(page.get_by_role("link", name="Keys")).to_be_visible()
    assert "#" not in page.url
    again = visit(None)
    again.goto(served.sign_in)
    expect(again.get_by_role("alert")).to_contain_text("used before")


def test_all_can_be_done_by_keyboard(page):
    """Search, open, move, select, open a folder and go back, without a mouse."""
    page.goto("/tenants")
    expect(page.get_by_label("Search tenants")).to_be_focused()
    page.get_by_role("grid", name="Tenants").wait_for()
    page.keyboard.type("acme")
    page.keyboard.press("Enter")
    grid = page.get_by_role("grid", name="Snapshots")
    expect(grid).to_be_focused()
    page.keyboard.press("Space")
    expect(page.get_by_role("region", name="Selection")).to_contain_text("1 selected")
    page.keyboard.press("Enter")
    expect(page.get_by_role("navigation", name="Folders")).to_contain_text("mappings")
    page.go_back()
    expect(page.get_by_role("gridcell", name="Stream Invoice")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.keyboard.press("Control+k")
    expect(page.get_by_role("combobox", name="Tenant, stream, file, job, page, key or text")).to_be_focused()
    page.keyboard.type("globex")
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog", name="globex")).to_be_visible()


def test_an_unknown_address_is_a_page_and_titles_say_what_is_open(page):
    """Typed into the browser it has a way back; the tab's title names stream, tab and tenant."""
    answer = page.goto("/tenant-list")
    assert answer.status == 404
    page.get_by_role("link", name="Go to the tenants").click()
    expect(page).to_have_title("Tenants · freezeframe")
    go(page, "/tenants/acme?panel=snapshots&stream=Invoice")
    expect(page).to_have_title("Invoice · Snapshots · acme · freezeframe")
    go(page, "/tenants/nobody?panel=snapshots")
    expect(page.get_by_role("alert").first).to_contain_text("There is no tenant 'nobody'")


def test_a_service_that_is_away_is_told_and_what_is_shown_stays(browser, served, sessions, picture):
    """The age of what is shown is there, what was typed too; when it answers again the note goes."""
    # A page of its own: that requests fail is what the browser would complain about.
    context = browser.new_context(base_url=served.url, storage_state=sessions["admin"], color_scheme="dark")
    page = context.new_page()
    page.goto("/tenants/acme?panel=snapshots&file=readme.txt")
    text = page.get_by_label("Content of readme.txt")
    text.click()
    page.keyboard.type("typed ")
    page.route("**/api/**", lambda route: route.abort())
    page.get_by_role("button", name="Save").click()
    note = page.get_by_text("The service cannot be reached. Last response:")
    expect(note).to_be_visible()
    picture(page, "unreachable")
    expect(text).to_contain_text("typed")
    page.unroute("**/api/**")
    expect(note).to_have_count(0)
    page.get_by_role("button", name="Discard").click()
    expect(text).not_to_contain_text("typed")
    context.close()
