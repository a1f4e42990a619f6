"""What everybody can use: axe on all pages, dialogs and menus; the focus; motion; a screen of 390 px."""

import pytest
from playwright.sync_api import expect
from tests.browser.accessibility import NARROW, SCHEMES, findings_by_scheme, require_narrow
from tests.browser.navigation import go
from tests.browser.queued import Worker
from tests.examples import sampled

pytestmark = pytest.mark.browser
ACME = "/tenants/acme?panel="
PAGES = {
    "overview": ("/overview", "region", "Growth of tenants"),
    "tenants": ("/tenants", "grid", "Tenants"),
    "panel": (f"{ACME}snapshots", "grid", "Snapshots"),
    "empty panel": ("/tenants/globex?panel=snapshots", "button", "Copy"),
    "stream": (f"{ACME}snapshots&stream=Invoice", "grid", "Rows of Invoice"),
    "schema": (f"{ACME}snapshots&stream=Invoice&view=schema", "cell", "Amount"),
    "versions": (f"{ACME}snapshots&stream=Invoice&view=versions", "grid", "Versions of Invoice"),
    "row": (f"{ACME}snapshots&stream=Account&row=001", "table", "Fields"),
    "past": (f"{ACME}snapshots&v=0", "grid", "Snapshots"),
    "timeline": (f"{ACME}history", "region", "Versions"),
    "rows": (f"{ACME}history&before=2&after=3", "grid", "Rows of Invoice that differ"),
    "editor": (f"{ACME}snapshots&file=tenant-config.json", "textbox", "Content of tenant-config.json"),
    "sealed": (f"{ACME}snapshots&file=api-config.json", "button", "Reveal"),
    "table file": (f"{ACME}snapshots&file=mappings%2Faccounts.csv", "grid", "Rows of mappings/accounts.csv"),
    "jobs": (f"{ACME}jobs", "tabpanel", "Jobs"),
    "job": (f"{ACME}jobs&job=job-4711", "button", "What it changed"),
    "settings": (f"{ACME}settings", "region", "Retention"),
    "all jobs": ("/jobs", "heading", "Jobs"),
    "schedules": ("/schedules", "heading", "Schedules"),
    "comparison": ("/compare?env=default&left=acme&right=globex", "table", "Streams of both"),
    "keys": ("/keys", "button", "Create key"),
    "audit": ("/audit?tenant=acme", "combobox", "Tenant"),
    "problem": ("/tenants/nobody?panel=snapshots", "alert", None),
    "missing page": ("/tenant-list", "link", "Go to the tenants"),
}
# The address, what is pressed there, and what is open then.
OPENED = {
    "create tenant": ("/tenants", ["Create tenant"], "dialog", "Create a tenant in default"),
    "palette": ("/tenants", ["Search"], "dialog", "Search"),
    "create key": ("/keys", ["Create key"], "dialog", "Create key"),
    "create schedule": ("/schedules", ["Create schedule"], "dialog", "Create schedule"),
    "run": (f"{ACME}jobs", ["Run a script"], "dialog", "Run a script"),
    "upload menu": (f"{ACME}snapshots", ["More ways to upload"], "menu", "More ways to upload"),
    "create folder": (f"{ACME}snapshots", ["Create folder"], "dialog", "Create folder"),
    "download menu": (f"{ACME}snapshots&stream=Invoice", ["Download"], "menu", "Download"),
    "columns": (f"{ACME}snapshots&stream=Invoice", ["Columns"], "dialog", "Columns"),
    "filter": (f"{ACME}snapshots&stream=Invoice", ["Add a filter"], "dialog", "Add a filter"),
    "import": (f"{ACME}snapshots&stream=Invoice", ["Import"], "dialog", "Import rows into Invoice"),
    "version menu": (f"{ACME}history", ["Actions of version 3"], "menu", "Actions of version 3"),
    "tag": (f"{ACME}history", ["Actions of version 3", "Tag…"], "dialog", "Tag version 3"),
    "restore": (
        f"{ACME}history",
        ["Actions of version 2", "Restore Invoice…"],
        "dialog",
        "Restore Invoice as of version 2",
    ),
    "undo": (
        f"{ACME}history",
        ["Actions of version 3", "Undo this job…"],
        "dialog",
        "Undo version 3, by job-4711",
    ),
}


@pytest.mark.sampled
def test_every_page_is_accessible_in_both_schemes_and_fits_a_narrow_screen(visit, picture):
    """axe finds nothing on any page, of whatever impact; at 390 px none is wider than the screen."""
    page = visit(color_scheme="light", reduced_motion="reduce")
    page.goto("/overview")
    found, in_both = {}, sampled(PAGES)
    for name in sampled(PAGES, every=3):
        address, role, label = PAGES[name]
        go(page, address)
        page.get_by_role(role, name=label, exact=True).first.wait_for()
        # What is around the panel is the same for all of them.
        is_panel = address.startswith(ACME) and name != "panel"
        within = page.get_by_role("dialog").last if is_panel else "html"
        schemes = SCHEMES if name in in_both else SCHEMES[:1]
        found |= findings_by_scheme(page, picture, name, within, schemes)
        require_narrow(page, picture, name)
    assert found == {}


@pytest.mark.sampled
def test_every_dialog_and_menu_is_accessible_in_both_schemes_and_gives_the_focus_back(visit, picture):
    """axe finds nothing; it fits 390 px; Esc closes it, and what opened it has the focus."""
    page = visit(color_scheme="light", reduced_motion="reduce")
    page.goto("/overview")
    found, in_both = {}, sampled(OPENED)
    for name in sampled(OPENED, every=3):
        address, pressed, role, label = OPENED[name]
        go(page, address)
        opener = page.get_by_role("button", name=pressed[0], exact=True).first
        opener.click()
        for entry in pressed[1:]:
            page.get_by_role("menuitem", name=entry).click()
        opened = page.get_by_role(role, name=label)
        expect(opened, name).to_be_visible()
        schemes = SCHEMES if name in in_both else SCHEMES[:1]
        found |= findings_by_scheme(page, picture, name, opened, schemes)
        require_narrow(page, picture, name)
        page.keyboard.press("Escape")
        expect(opened, name).to_have_count(0)
        expect(opener, name).to_be_focused()
    assert found == {}


# In each frame: whether the focus fell to the page itself.
WATCH_FOCUS = """() => {
    window.lost = [];
    const look = () => {
        if (document.activeElement === document.body) window.lost.push(location.search);
        requestAnimationFrame(look);
    };
    look();
}"""


def test_the_focus_stays_in_the_panel_whatever_opens_and_closes(page):
    """A stream, its views, a row and its end, a version's difference, a job: it never falls to the page."""
    page.goto("/tenants")
    page.get_by_role("grid", name="Tenants").wait_for()
    page.keyboard.type("acme")
    page.keyboard.press("Enter")
    snapshots = page.get_by_role("grid", name="Snapshots")
    expect(snapshots).to_be_focused()
    page.evaluate(WATCH_FOCUS)
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    rows = page.get_by_role("grid", name="Rows of Account")
    expect(rows).to_be_focused()
    page.keyboard.press("Enter")
    row = page.get_by_role("dialog", name="Account 000")
    expect(row).to_be_visible()
    page.keyboard.press("Escape")
    expect(row).to_have_count(0)
    expect(rows).to_be_focused()
    page.go_back()
    page.go_back()
    page.go_back()
    expect(snapshots).to_be_focused()
    page.get_by_role("tab", name="History").click()
    version = page.get_by_role("article", name="Version 3")
    version.get_by_role("button", name="Invoice", exact=True).click()
    expect(page.get_by_role("grid", name="Rows of Invoice that differ")).to_be_focused()
    page.go_back()
    version.get_by_role("button", name="job-4711").click()
    expect(page.get_by_role("button", name="What it changed")).to_be_visible()
    assert page.evaluate("window.lost") == []


# In each frame: what moves, and is no change of one frame.
WATCH_MOTION = """() => {
    window.moved = 0;
    const look = () => {
        window.moved += document.getAnimations()
            .filter((one) => one.effect.getComputedTiming().duration > 1).length;
        requestAnimationFrame(look);
    };
    look();
}"""


def test_less_motion_is_none(page):
    """The panel slides in; nothing slides, fades or turns where the system asks for less."""
    for wanted, moves in (("no-preference", True), ("reduce", False)):
        page.emulate_media(reduced_motion=wanted)
        page.goto("/tenants")
        page.get_by_role("gridcell", name="acme", exact=True).wait_for()
        page.evaluate(WATCH_MOTION)
        page.get_by_role("gridcell", name="acme", exact=True).click()
        page.get_by_role("grid", name="Snapshots").wait_for()
        page.get_by_role("button", name="More ways to upload").click()
        page.get_by_role("menuitem", name="Upload a folder").wait_for()
        assert (page.evaluate("window.moved") > 0) == moves, wanted


GRIDS = {
    "Tenants": "/tenants?q=acme",
    "Snapshots": f"{ACME}snapshots",
    "Versions of Invoice": f"{ACME}snapshots&stream=Invoice&view=versions",
    "Jobs": "/jobs?tenant=customer-0211",
}


@pytest.fixture(scope="module")
def ended_job(served):
    """A job that a worker has ended."""
    worker = Worker(served.root, served.root.parent / "scripts")
    worker.submit("customer-0211", "job-ended")
    worker.close()


def test_a_narrow_screen_has_every_column(page, ended_job):
    """Of each list the heads, and as many filled cells of the first row as on a wide screen."""
    wide = page.viewport_size
    page.goto("/overview")
    for label, address in GRIDS.items():
        page.set_viewport_size(wide)
        go(page, address)
        require_every_column(page, label)


def require_every_column(page, label):
    grid = page.get_by_role("grid", name=label, exact=True)
    cells = grid.get_by_role("row").nth(1).locator("[role=gridcell]:not(:empty)")
    page.wait_for_load_state("networkidle")
    expect(cells.first).to_be_visible()

    def heads():
        return sorted(grid.get_by_role("columnheader").all_inner_texts())

    wide, filled = heads(), cells.count()
    page.set_viewport_size(NARROW)
    expect(cells).to_have_count(filled)
    assert heads() == wide
    boxes = [row.bounding_box() for row in grid.locator(".grid-body > .grid-row").all()[:2]]
    ends = [box["y"] + box["height"] for box in boxes]
    assert all(end <= box["y"] + 1 for end, box in zip(ends, boxes[1:], strict=False))
