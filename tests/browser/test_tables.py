"""Tables in the browser: a key that stays, widths, the way to a row, what a column holds."""

import pyarrow as pa
import pytest
from playwright.sync_api import expect
from tests.browser.accessibility import findings

pytestmark = pytest.mark.browser
ROWS = 100_000
PANEL = "/tenants/tables-acme?panel=snapshots&stream=Ledger"


@pytest.fixture(scope="module", autouse=True)
def tenant(store):
    """A ledger of 100,000 rows and 30 columns, whose key is its last but one."""
    tenant = store.tenant("tables-acme", create=True)
    columns = {f"Field {number:02d}": pa.array([f"value {number}"] * ROWS) for number in range(28)}
    keys = pa.array([f"L-{number:06d}" for number in range(0, 2 * ROWS, 2)])
    amounts = pa.array([None if number % 4 == 0 else number for number in range(ROWS)])
    tenant.stream("Ledger").update(pa.table({**columns, "Number": keys, "Amount": amounts}), "Number")
    return tenant


def grid_of(page):
    grid = page.get_by_role("grid", name="Rows of Ledger")
    expect(grid.get_by_role("row").nth(3)).to_contain_text("L-")
    return grid


def test_the_key_stays_while_the_other_columns_are_scrolled(visit, picture):
    """On a wide and on a narrow screen: it comes first, is in view, and a click on it opens the row."""
    page = visit(color_scheme="light")
    page.goto(PANEL)
    for width in (1280, 390):
        page.set_viewport_size({"width": width, "height": 800})
        grid = grid_of(page)
        head = grid.get_by_role("columnheader", name="Number")
        cell = grid.get_by_role("gridcell", name="L-000004", exact=True)
        grid.evaluate("one => one.scrollTo(1500, 0)")
        expect(grid.get_by_role("columnheader", name="Field 00")).not_to_be_in_viewport()
        for item in (head, cell):
            box, frame = item.bounding_box(), grid.bounding_box()
            assert frame["x"] <= box["x"] < frame["x"] + 12
            assert 56 <= box["width"] <= 0.5 * frame["width"]
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            expect(page.locator("html")).to_have_attribute("data-mantine-color-scheme", scheme)
            picture(page, f"table-{width}-{scheme}")
        cell.click()
        expect(page.get_by_role("dialog", name="Ledger L-000004")).to_be_visible()
        page.keyboard.press("Escape")


def test_a_width_is_dragged_or_moved_by_keys_and_kept(page):
    """Each column has its own; it is there after a reload, and a double click gives the first one back."""
    page.goto(PANEL)
    grid = grid_of(page)
    head = grid.get_by_role("columnheader", name="Field 00")
    edge = grid.get_by_role("separator", name="Width of Field 00")
    before = head.bounding_box()["width"]
    box = edge.bounding_box()
    page.mouse.move(box["x"] + 4, box["y"] + 10)
    page.mouse.down()
    page.mouse.move(box["x"] + 84, box["y"] + 10, steps=4)
    page.mouse.up()
    assert abs(head.bounding_box()["width"] - before - 80) <= 2
    edge.focus()
    page.keyboard.press("ArrowLeft")
    assert abs(head.bounding_box()["width"] - before - 64) <= 2
    page.reload()
    grid_of(page)
    assert abs(head.bounding_box()["width"] - before - 64) <= 2
    edge.dblclick()
    expect(edge).to_have_attribute("aria-valuenow", "148")
    assert abs(head.bounding_box()["width"] - before) <= 2
    grid.get_by_role("columnheader", name="Number").get_by_role("button").first.focus()
    page.keyboard.press("ArrowRight")
    expect(head.get_by_role("button").first).to_be_focused()
    assert grid.locator(".grid-head [tabindex='0']").count() == 3, "Thirty columns are one stop of Tab."
    last = grid.get_by_role("columnheader", name="Amount")
    expect(last).to_have_count(0)  # of the columns those in view are drawn, and the keys reach all
    for number in range(1, 28):
        page.keyboard.press("ArrowRight")
        expect(grid.get_by_role("columnheader", name=f"Field {number:02d}")).to_be_in_viewport()
    page.keyboard.press("ArrowRight")
    expect(last.get_by_role("button").first).to_be_focused()


def test_any_row_is_reached_by_its_number_its_key_or_the_end(page):
    """Of 100,000 rows only the pages on the way are read: at most some hundred rows for each jump."""
    page.goto(PANEL)
    grid = grid_of(page)
    asked = []
    page.on("request", lambda item: asked.append(item.url) if "/rows?" in item.url else None)
    go = page.get_by_role("button", name="Go to")
    go.click()
    page.get_by_role("textbox", name="Row, 1 to 100,000").fill("77778")
    page.keyboard.press("Enter")
    active = grid.locator("[data-active]")
    expect(active).to_contain_text("L-155554")
    expect(active).to_have_attribute("aria-rowindex", "77779")
    go.click()
    page.get_by_role("button", name="Last row").click()
    expect(active).to_contain_text("L-199998")
    go.click()
    page.get_by_role("textbox", name="Number", exact=True).fill("L-050000")
    page.get_by_role("button", name="Find").click()
    expect(active).to_contain_text("L-050000")
    expect(grid).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog", name="Ledger L-050000")).to_be_visible()
    page.keyboard.press("Escape")
    go.click()
    page.get_by_role("textbox", name="Number", exact=True).fill("L-050001")
    page.get_by_role("button", name="Find").click()
    expect(page.get_by_text("No row has this key; the next row is marked.")).to_be_visible()
    expect(active).to_contain_text("L-050002")
    assert len(asked) <= 14


def test_what_a_column_holds_is_told_at_its_head(page, picture):
    """Missing and distinct values, ends and shape; what the log knows comes before the column is read."""
    page.goto(PANEL)
    grid = grid_of(page)
    asked = []
    page.on("request", lambda item: asked.append(item.url) if "/statistics?" in item.url else None)
    head = grid.get_by_role("columnheader", name="Amount")
    grid.evaluate("grid => grid.scrollTo({ left: grid.scrollWidth })")
    head.get_by_role("button", name="Values of Amount").click()
    about = page.get_by_role("dialog", name="Values of Amount")
    expect(about).to_contain_text("25,000 of 100,000 (25 %)")
    expect(about).to_contain_text("75,000")
    expect(about).to_contain_text("99999")
    expect(about.get_by_role("status")).to_have_text("Of all 100,000 rows.")
    assert sorted("read=false" in url for url in asked) == [False, True]
    picture(page, "column-about")
    assert findings(page, within=about) == []
    page.keyboard.press("Escape")
    expect(about).to_have_count(0)
