"""What holds on every page: who may what, nothing inaccessible, small screens, the keyboard, the address."""

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

pytestmark = pytest.mark.browser
PAGES = {
    "overview": ("/overview", "region", "Largest tenants"),
    "tenants": ("/tenants", "grid", "Tenants"),
    "panel": ("/tenants/acme?panel=snapshots", "grid", "Snapshots"),
    "stream": ("/tenants/acme?panel=snapshots&stream=Invoice", "grid", "Rows of Invoice"),
    "row": ("/tenants/acme?panel=snapshots&stream=Account&row=001", "table", "Fields"),
    "past": ("/tenants/acme?panel=snapshots&v=0", "grid", "Snapshots"),
    "timeline": ("/tenants/acme?panel=history", "region", "Versions"),
    "rows": ("/tenants/acme?panel=history&before=2&after=3", "grid", "Rows of Invoice that differ"),
    "editor": (
        "/tenants/acme?panel=snapshots&file=tenant-config.json",
        "textbox",
        "Content of tenant-config.json",
    ),
    "jobs": ("/tenants/acme?panel=jobs", "tabpanel", "Jobs"),
    "settings": ("/tenants/acme?panel=settings", "region", "Retention"),
    "all jobs": ("/jobs", "heading", "Jobs"),
    "schedules": ("/schedules", "heading", "Schedules"),
    "keys": ("/keys", "button", "Create key"),
    "people": ("/people", "button", "Invite a person"),
    "proof": ("/proof", "heading", "Proof"),
    "invitation": ("/invitation", "button", "Set password"),
    "audit": ("/audit?tenant=acme", "combobox", "Tenant"),
}


AT_REST = """() => document.getAnimations().every(
    (one) => one.playState !== "running" || one.effect.getComputedTiming().endTime === Infinity
)"""
# The dark scheme has the same elements in other colours.
RULES = {
    "light": {"resultTypes": ["violations"]},
    "dark": {"resultTypes": ["violations"], "runOnly": ["color-contrast"]},
}
NARROW = {"width": 390, "height": 800}


def test_every_page_is_accessible_in_both_schemes_and_fits_a_narrow_screen(visit, picture):
    """axe finds nothing serious or critical on any main page; at 390 px none is wider than the screen."""
    page = visit(color_scheme="light")
    wide = page.viewport_size
    found = {}
    for name, (address, role, label) in PAGES.items():
        page.goto(address)
        page.get_by_role(role, name=label, exact=True).first.wait_for()
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            page.wait_for_function(
                "scheme => document.documentElement.dataset.mantineColorScheme === scheme", arg=scheme
            )
            page.wait_for_function(
                AT_REST
            )  # what still slides or fades in has other colours than it will have
            picture(page, f"{name}-{scheme}")
            if grave := grave_findings(page, RULES[scheme]):
                found[f"{name}, {scheme}"] = grave
        page.emulate_media(color_scheme="light")
        page.set_viewport_size(NARROW)
        picture(page, f"{name}-narrow")
        assert page.evaluate("document.documentElement.scrollWidth") <= NARROW["width"], name
        page.set_viewport_size(wide)
    assert found == {}


def grave_findings(page, options):
    """What axe calls serious or critical: the rule and where it was broken."""
    return [
        (one["id"], [node["target"] for node in one["nodes"]][:3])
        for one in Axe().run(page, options=options).response["violations"]
        if one["impact"] in {"serious", "critical"}
    ]


def test_a_viewer_sees_no_button_that_would_fail(visit):
    """Nothing to upload, create, delete, restore or save; and no pages for admins."""
    page = visit("viewer")
    page.goto("/tenants/acme?panel=snapshots")
    page.get_by_role("grid", name="Snapshots").wait_for()
    for name in ("Upload", "Create folder", "Delete", "Create tenant"):
        expect(page.get_by_role("button", name=name, exact=True)).to_have_count(0)
    for name in ("Keys", "People", "Proof", "Audit"):
        expect(page.get_by_role("link", name=name)).to_have_count(0)
    page.goto("/tenants/acme?panel=snapshots&file=tenant-config.json")
    expect(page.get_by_label("Content of tenant-config.json")).to_be_visible()
    expect(page.get_by_role("button", name="Save")).to_have_count(0)


def test_a_stranger_signs_in_and_comes_to_the_page_that_was_asked_for(visit, picture):
    """A wrong password is told and what was typed stays; the right one leads to the address of before."""
    page = visit(None)
    page.goto("/tenants/acme?panel=settings")
    page.get_by_role("textbox", name="Name").fill("viewer")
    password = page.locator("input[type=password]")
    password.fill("a wrong password")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_contain_text("do not fit")
    picture(page, "sign-in")
    assert page.get_by_role("textbox", name="Name").input_value() == "viewer"
    password.fill("a long enough password")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("region", name="Retention")).to_be_visible()


def test_a_key_is_pasted_once(visit, sessions, browser, served):
    """With a key one sees what the key may, after a reload too; no script can read where it is kept."""
    context = browser.new_context(base_url=served.url, storage_state=sessions["admin"])
    order = {"name": "console", "scopes": ["tenants:read", "snapshots:read"], "tenants": ["acme"]}
    made = context.request.post("/api/v1/keys", data=order, headers={"Origin": served.url}).json()
    context.close()
    page = visit(None)
    page.goto("/tenants")
    page.locator("label").filter(has_text="API key").click()
    page.locator("input[type=password]").fill(made["key"])
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_text("1 tenant", exact=True)).to_be_visible()
    page.reload()
    expect(page.get_by_role("grid", name="Tenants")).to_contain_text("acme")
    assert page.evaluate("document.cookie") == ""


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
    expect(page.get_by_role("combobox", name="Tenant, stream, file, job, page or key")).to_be_focused()
    page.keyboard.type("globex")
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog", name="globex")).to_be_visible()


def test_integers_are_shown_as_they_are_kept(page):
    """2^53 and more lose nothing on the way to the page."""
    page.goto("/tenants/acme?panel=snapshots&stream=Invoice&where=%5B%22Amount+%3D+1.5%22%5D")
    expect(page.get_by_role("grid", name="Rows of Invoice")).to_contain_text("9007199254740003")
    expect(page.get_by_text("1 rows meet the conditions")).to_be_visible()


def test_a_tenant_that_is_not_there_is_told(page):
    """The panel says so, with what to do."""
    page.goto("/tenants/nobody?panel=snapshots")
    expect(page.get_by_role("alert").first).to_contain_text("There is no tenant 'nobody'")


def test_an_unknown_address_is_a_page_and_titles_say_what_is_open(page):
    """Typed into the browser it has a way back; the tab's title names stream, tab and tenant."""
    answer = page.goto("/tenant-list")
    assert answer.status == 404
    page.get_by_role("link", name="Go to the tenants").click()
    expect(page).to_have_title("Tenants · freezeframe")
    page.goto("/tenants/acme?panel=snapshots&stream=Invoice")
    expect(page).to_have_title("Invoice · Snapshots · acme · freezeframe")


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
    note = page.get_by_text("The service cannot be reached. Its last answer:")
    expect(note).to_be_visible()
    picture(page, "unreachable")
    expect(text).to_contain_text("typed")
    page.unroute("**/api/**")
    expect(note).to_have_count(0)
    page.get_by_role("button", name="Discard").click()
    expect(text).not_to_contain_text("typed")
    context.close()
