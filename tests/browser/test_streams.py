"""A stream in the browser: rows sorted, filtered, stepped through time; what columns hold; an import."""

import hashlib
import re

import pyarrow as pa
import pytest
from playwright.sync_api import expect
from tests.browser.accessibility import findings
from tests.browser.navigation import go
from tests.browser.seeding import ROWS, invoices

from freezeframe.service.rows.row_previews import COUNTED_ROWS_MAX

pytestmark = pytest.mark.browser
STREAM = "/tenants/streams-of-invoices?panel=snapshots&stream=Invoice"
MORE = pa.table({"Id": [1, 3], "State": ["new", "new"]})


@pytest.fixture(scope="module", autouse=True)
def tenant(store):
    """A tenant of this module: invoices at three versions."""
    stream = store.tenant("streams-of-invoices", create=True).stream("Invoice")
    for states, count in (
        ({}, ROWS),
        ({7: "paid", 8: "paid", 9: "paid"}, ROWS),
        ({7: "void", 11: "void"}, ROWS - 3),
    ):
        stream.update(invoices(states, count), "Id", override=True)


def rows(page):
    return page.get_by_role("grid", name="Rows of Invoice")


def test_rows_are_sorted_filtered_and_chosen_and_the_address_says_so(page):
    """Each step is in the address: who opens it sees the same rows, columns and order."""
    page.goto(STREAM)
    head = rows(page).get_by_role("button", name="Amount double")
    head.click()
    expect(rows(page).get_by_role("columnheader", name="Amount")).to_have_attribute("aria-sort", "ascending")
    head.click()
    first = rows(page).get_by_role("row").nth(1)
    expect(first).to_contain_text("9007199254749993")  # no number of a browser: 2^53 and more are even there
    expect(first).to_contain_text("7494")
    page.get_by_role("button", name="Add a filter").click()
    page.get_by_role("combobox", name="Column").fill("Amo")
    page.get_by_role("option", name="Amount").click()
    page.get_by_role("combobox", name="Comparison").click()
    page.get_by_role("option", name="≤").click()
    page.get_by_role("textbox", name="Value").fill("100")
    page.get_by_role("button", name="Filter", exact=True).click()
    expect(page.get_by_text("67 rows meet the conditions")).to_be_visible()
    expect(first).to_contain_text("99")
    page.get_by_role("button", name="Columns").click()
    page.get_by_role("checkbox", name="Note").uncheck()
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="3 of 4 columns")).to_be_visible()
    page.goto(page.url)
    expect(first).to_contain_text("99")
    expect(rows(page).get_by_role("columnheader")).to_have_count(3)
    page.get_by_label("Remove the condition Amount <= 100").click()
    page.get_by_role("button", name="Order by key").click()
    expect(first).to_contain_text("9007199254740001")
    go(page, f"{STREAM}&by=Nobody")
    expect(page.get_by_role("alert")).to_contain_text("There is no column 'Nobody'")
    page.get_by_role("button", name="Order by key").click()
    expect(rows(page)).to_be_visible()


def test_the_stream_is_stepped_through_time(page):
    """Earlier and later versions of this stream; the panel says that it shows the past."""
    page.goto(f"{STREAM}&where=%5B%22State+%21%3D+%27open%27%22%5D")
    expect(page.get_by_text("2 rows meet the conditions")).to_be_visible()
    page.get_by_label("Previous version").click()
    expect(page.get_by_text(re.compile("version 1.*read only"))).to_be_visible()
    expect(page.get_by_text("3 rows meet the conditions")).to_be_visible()
    page.get_by_label("Previous version").click()
    expect(page.get_by_text("No row meets these conditions.")).to_be_visible()
    expect(page.get_by_label("Previous version")).to_be_disabled()
    page.get_by_label("Next version").click()
    page.get_by_label("Next version").click()
    expect(page.get_by_text("2 rows meet the conditions")).to_be_visible()


def test_columns_tell_what_they_hold(page, picture):
    """Types, missing and distinct values and ends; nothing of it inaccessible, also when narrow."""
    page.goto(f"{STREAM}&view=schema")
    table = page.get_by_role("table", name="Columns of Invoice")
    note = table.get_by_role("row", name=re.compile("^Note"))
    expect(note).to_contain_text(re.compile("66 %|not read yet"))
    unread = table.get_by_text("not read yet")
    while count := unread.count():  # a busy machine had no time for all of them
        page.get_by_role("button", name="Read more columns").click()
        expect(unread).not_to_have_count(count)
    expect(note).to_contain_text("66 %")
    expect(table.get_by_role("row", name=re.compile("^Id"))).to_contain_text("9007199254740001")
    expect(page.get_by_text("Statistics of all 4,997 rows.")).to_be_visible()
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        expect(page.locator("html")).to_have_attribute("data-mantine-color-scheme", scheme)
        picture(page, f"schema-{scheme}")
    page.set_viewport_size({"width": 390, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_an_import_is_seen_before_it_is_started(page, tmp_path, picture):
    """Counts, odd columns and changed cells; a full extract that would delete too much cannot be started."""
    file = tmp_path / "invoices.csv"
    file.write_text("Id,State,Extra\n9007199254740001,void,x\n9007199254740003,open,\n1,new,\n")
    page.goto(STREAM)
    page.get_by_role("button", name="Import", exact=True).click()
    dialog = page.get_by_role("dialog", name="Import rows into Invoice")
    dialog.locator("input[type=file]").set_input_files([file])
    expect(dialog.get_by_text("Unchanged")).to_be_visible()
    expect(dialog.locator("dd").nth(0)).to_have_text("1")
    expect(dialog.get_by_role("listitem").filter(has_text="Extra")).to_contain_text("new column")
    changed = dialog.get_by_role("grid", name="Rows that change")
    expect(changed.locator("del").first).to_have_text("open")
    expect(changed.locator("ins").first).to_have_text("void")
    expect(dialog.get_by_role("button", name="Start the import")).to_be_enabled()
    picture(page, "import")
    assert findings(page, within=dialog) == []
    dialog.get_by_label("Delete (the file is a full extract)").check()
    expect(dialog.get_by_role("alert")).to_contain_text("would delete 4995 of 4997 rows")
    expect(dialog.get_by_role("button", name="Start the import")).to_be_disabled()


def test_rows_that_nobody_counted_are_told_as_at_least(page, store):
    """Under a condition a large stream is not counted: "At least", until its last row has been reached."""
    numbers = range(COUNTED_ROWS_MAX + 1)
    ledger = pa.table({"Id": list(numbers), "State": ["void" if n < 300 else "open" for n in numbers]})
    store.tenant("streams-of-invoices").stream("Ledger").update(ledger, "Id")
    page.goto(STREAM.replace("Invoice", "Ledger") + "&where=%5B%22State%20%3D%20%27void%27%22%5D")
    grid = page.get_by_role("grid", name="Rows of Ledger")
    expect(page.get_by_text("At least 201 rows meet the conditions")).to_be_visible()
    expect(grid).to_have_attribute("aria-rowcount", "-1")
    grid.focus()
    page.keyboard.press("End")
    expect(page.get_by_text("300 rows meet the conditions", exact=True)).to_be_visible()
    expect(grid).to_have_attribute("aria-rowcount", "301")
    page.get_by_label("Remove the condition State = 'void'").click()
    expect(page.get_by_text(f"{len(ledger):,} rows", exact=True)).to_be_visible()


def test_rows_of_more_than_a_request_takes_are_sent_in_pieces_and_imported(page, served, tmp_path, store):
    """A larger file goes up as a row of its own; an import that failed is tried without it again."""
    file = tmp_path / "notes.csv"
    line = "x" * 65_535
    file.write_text("Id,Note\n" + "".join(f"{number},{line}\n" for number in range(130)))
    place = "**/streams/Note/import?**"
    pieces = []
    page.on("request", lambda item: pieces.append(item.url) if item.url.endswith("/blobs") else None)
    store.tenant("streams-of-invoices").stream("Note").update(pa.table({"Id": [-1], "Note": ["first"]}), "Id")
    page.goto(STREAM.replace("Invoice", "Note"))
    page.get_by_role("button", name="Import", exact=True).click()
    dialog = page.get_by_role("dialog", name="Import rows into Note")
    dialog.locator("input[type=file]").set_input_files([file])
    expect(dialog.get_by_text("Only the beginning was looked at")).to_be_visible()
    page.route(place, lambda route: route.fulfill(status=422, json={"title": "The storage is away."}))
    dialog.get_by_role("button", name="Start the import").click()
    expect(dialog).to_be_hidden()
    uploads = page.get_by_role("region", name="Uploads", exact=True)
    expect(uploads).to_contain_text("Rows for Note: notes.csv")
    expect(uploads).to_contain_text("The storage is away.")
    page.unroute(place)
    sent = len(pieces)
    uploads.get_by_role("button", name="Try again").click()
    expect(page.get_by_text("The import of notes.csv is job")).to_be_visible()
    assert sent == len(pieces) == 1
    (job,) = page.request.get("/api/v1/environments/default/tenants/streams-of-invoices/jobs").json()["jobs"]
    assert job["status"] == "queued"
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    (kept,) = [path for path in served.root.rglob("input/*") if path.stat().st_size == file.stat().st_size]
    assert digest == hashlib.sha256(kept.read_bytes()).hexdigest()


def test_an_arrow_file_is_imported(page, tmp_path):
    """Its effect is shown as of any other kind, Escape closes the dialog alone, its job is shown."""
    with pa.OSFile(str(tmp_path / "more.arrow"), "wb") as sink, pa.ipc.new_file(sink, MORE.schema) as writer:
        writer.write_table(MORE)
    page.goto(STREAM)
    page.get_by_role("button", name="Import", exact=True).click()
    dialog = page.get_by_role("dialog", name="Import rows into Invoice")
    dialog.locator("input[type=file]").set_input_files([tmp_path / "more.arrow"])
    expect(dialog.locator("dd").nth(0)).to_have_text("2")
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    page.get_by_role("button", name="Import", exact=True).click()
    dialog.locator("input[type=file]").set_input_files([tmp_path / "more.arrow"])
    expect(dialog.get_by_text("Unchanged")).to_be_visible()
    dialog.get_by_role("button", name="Start the import").click()
    expect(page.get_by_role("tab", name="Jobs", selected=True)).to_be_visible()
    expect(page.get_by_text("queued").first).to_be_visible()
