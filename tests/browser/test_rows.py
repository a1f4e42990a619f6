"""One row in the browser: its fields, every version that touched it, and the way back."""

import pyarrow as pa
import pytest
from playwright.sync_api import expect
from tests.browser.navigation import go

pytestmark = pytest.mark.browser
PANEL = "/tenants/rows-acme?panel=snapshots&stream=Lead"


@pytest.fixture(scope="module")
def tenant(store):
    """A tenant whose row 007 changes at version 1, in two cells, and at version 2; 008 goes at version 2."""
    tenant = store.tenant("rows-acme", create=True)
    steps = (
        (["007", "008", "a/b", '["x"]'], "new", 1.5),
        (["007", "008", "a/b", '["x"]'], "open", 2.5),
        (["007", "a/b", '["x"]'], "won", 2.5),
    )
    for number, (ids, stage, score) in enumerate(steps):
        table = pa.table({"Id": ids, "Stage": [stage] * len(ids), "Score": [score] * len(ids)})
        with tenant.job(f"job-{number}", who="sync", message=f"step {number}") as job:
            job.stream("Lead").update(table, "Id", override=True)
    return tenant


def test_what_happened_to_a_row_is_seen_in_three_actions(visit, tenant, picture):
    """The tenant, the stream, the row: its fields, and old and new values with the job that made them."""
    page = visit(color_scheme="light")
    page.goto("/tenants/rows-acme?panel=snapshots")
    page.get_by_role("gridcell", name="Stream Lead").click()
    page.get_by_role("grid", name="Rows of Lead").get_by_text("007").click()
    sheet = page.get_by_role("dialog", name="Lead 007")
    expect(sheet.get_by_role("table", name="Fields")).to_contain_text("Stage")
    newest = sheet.get_by_role("article", name="Version 2")
    expect(newest.locator("del")).to_have_text("open")
    expect(newest.locator("ins")).to_have_text("won")
    expect(newest).to_contain_text("job-2")
    expect(sheet.get_by_role("article")).to_have_count(3)
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        picture(page, f"row-{scheme}")
    page.set_viewport_size({"width": 390, "height": 800})
    expect(newest.locator("ins")).to_be_in_viewport()
    picture(page, "row-narrow")
    page.keyboard.press("Escape")
    expect(sheet).to_have_count(0)
    expect(page.get_by_role("grid", name="Rows of Lead")).to_be_visible()


def test_one_cell_is_changed_in_its_row(page, tenant, picture):
    """The pencil, the value, why: one version; beside another's change it asks to look again."""
    page.goto(f"{PANEL}&row=a%2Fb")
    sheet = page.get_by_role("dialog", name="Lead a/b")
    sheet.get_by_role("button", name="Change Stage").click()
    dialog = page.get_by_role("dialog", name="Change Stage of Lead a/b")
    dialog.get_by_label("Stage").fill("lost")
    dialog.get_by_label("Reason").fill("typed wrong")
    picture(page, "change-a-cell")

    def change_on_the_way(route):
        """Another changes the stream after what was shown."""
        if tenant.version == 2:
            tenant.stream("Lead").update(pa.table({"Id": ["z"], "Stage": ["new"], "Score": [0.5]}), "Id")
        route.continue_()

    page.route("**/row-changes", change_on_the_way)
    dialog.get_by_role("button", name="Save").click()
    expect(dialog.get_by_role("alert")).to_be_visible()
    dialog.get_by_role("button", name="Save").click()
    expect(dialog).to_have_count(0)
    newest = sheet.get_by_role("article", name="Version 4")
    expect(newest).to_contain_text("typed wrong")
    expect(newest.locator("ins")).to_have_text("lost")
    assert [("lost", 2.5)] == [
        (row["Stage"], row["Score"])
        for row in tenant.stream("Lead").read(as_="arrow").to_pylist()
        if row["Id"] == "a/b"
    ]


def test_a_row_has_an_address_whatever_its_key(page, tenant):
    """A link to it opens it; the link that a click makes names the same row."""
    page.goto("/overview")
    for key in ("a/b", '["x"]'):
        go(page, PANEL)
        page.get_by_role("grid", name="Rows of Lead").get_by_text(key, exact=True).click()
        fields = page.get_by_role("table", name="Fields")
        expect(fields).to_contain_text(key)
        page.goto(page.url)
        expect(fields).to_contain_text(key)


def test_a_row_that_is_gone_and_single_cells_are_brought_back(page, tenant, picture):
    """By the address of its key; a version is undone in it, and each value says where it comes from."""
    page.goto(f"{PANEL}&row=008")
    sheet = page.get_by_role("dialog", name="Lead 008")
    expect(sheet.get_by_role("status")).to_have_text("The row does not exist in the newest version.")
    sheet.get_by_role("article", name="Version 2").get_by_role("button", name="Restore this row…").click()
    dialog = page.get_by_role("dialog", name="Restore 1 row of Lead as of version 1")
    expect(dialog.get_by_text("1 inserted again")).to_be_visible()
    dialog.get_by_role("button", name="Restore", exact=True).click()
    expect(page.get_by_role("article", name="Version 3")).to_be_visible()
    assert tenant.stream("Lead").row_history("008").row["Stage"] == "open"
    go(page, f"{PANEL}&row=007")
    sheet = page.get_by_role("dialog", name="Lead 007")
    sheet.get_by_role("article", name="Version 2").get_by_role("button", name="Undo this change…").click()
    dialog = page.get_by_role("dialog", name="Undo version 2 in Lead 007")
    expect(dialog.locator("ins").first).to_have_text("open")
    dialog.get_by_role("button", name="Undo", exact=True).click()
    expect(page.get_by_role("article", name="Version 4")).to_be_visible()
    assert tuple(tenant.stream("Lead").row_history("007").row[name] for name in ("Stage", "Score")) == (
        "open",
        2.5,
    )
    page.goto(f"{PANEL}&row=007")
    page.get_by_role("button", name="Where each value comes from").click()
    fields = page.get_by_role("table", name="Fields")
    expect(fields.get_by_role("row", name="Score")).to_contain_text("version 1 · job-1")
    expect(fields.get_by_role("row", name="Score")).to_contain_text("the job's input is not kept")
    expect(fields.get_by_role("row", name="Stage")).to_contain_text(f"version {tenant.version} · key admin")
    picture(page, "row-origin")
