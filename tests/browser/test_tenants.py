"""Whole tenants in the browser: made from another one, copied, and deleted after their id was typed."""

import pyarrow as pa
import pytest
from playwright.sync_api import expect
from tests.browser.accessibility import findings
from tests.browser.navigation import go

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def store(store):
    """The served store, with a tenant of two versions, a stream and a file."""
    template = store.tenant("whole-template", create=True)
    for city in ("Bern", "Chur"):
        with template.job() as job:
            job.stream("Account").update(pa.table({"Id": ["1", "2"], "City": [city] * 2}), "Id")
            job.files.write_text("map.csv", city)
    return store


def content(tenant):
    """The cities and the file of a tenant, and its number of versions."""
    cities = tenant.stream("Account").read(as_="arrow")["City"].to_pylist()
    return cities, bytes(tenant.files.read("map.csv")), tenant.version + 1


def test_a_new_tenant_begins_as_a_copy_of_another(page, store, picture):
    """Chosen by a part of its id: the newest streams and files, none of the past; a taken id is told."""
    page.goto("/tenants")
    page.get_by_role("button", name="Create tenant").click()
    dialog = page.get_by_role("dialog", name="Create a tenant in default")
    dialog.get_by_role("textbox", name="Id").fill("whole-template")
    dialog.get_by_role("combobox", name="Copy from").fill("whole-t")
    page.get_by_role("option", name="whole-template").click()
    picture(page, "new-from")
    assert findings(page, within=dialog) == []
    dialog.get_by_role("button", name="Create", exact=True).click()
    expect(dialog.get_by_role("alert")).to_contain_text("whole-template")
    dialog.get_by_role("textbox", name="Id").fill("whole-new")
    dialog.get_by_role("button", name="Create", exact=True).click()
    panel = page.get_by_role("dialog", name="whole-new")
    expect(panel.get_by_role("gridcell", name="Stream Account")).to_be_visible()

    assert (["Chur", "Chur"], b"Chur", 1) == content(store.tenant("whole-new"))


def test_a_tenant_is_copied_and_deleted_in_its_settings(page, store, picture):
    """The copy opens; its end names what goes, and waits for its id; changed meanwhile, it stays."""
    page.goto("/tenants/whole-template?panel=settings")
    page.get_by_role("button", name="Copy to a new tenant…").click()
    dialog = page.get_by_role("dialog", name="Copy whole-template")
    dialog.get_by_label("Id of the new tenant").fill("whole-copy")
    dialog.get_by_role("button", name="Copy", exact=True).click()
    expect(page.get_by_role("dialog", name="whole-copy")).to_be_visible()
    copy = store.tenant("whole-copy")
    assert (["Chur", "Chur"], b"Chur", 1) == content(copy)

    go(page, "/tenants/whole-copy?panel=settings")
    page.get_by_role("button", name="Delete this tenant…").click()
    dialog = page.get_by_role("dialog", name="Delete whole-copy for good?")
    expect(dialog).to_contain_text("1 stream with 2 rows, 1 file, all 1 version")
    picture(page, "delete-a-tenant")
    assert findings(page, within=dialog) == []
    name, verb = (
        dialog.get_by_label("Type whole-copy to confirm"),
        dialog.get_by_role("button", name="Delete"),
    )
    name.fill("whole-cop")
    expect(verb).to_be_disabled()
    name.fill("whole-copy")
    copy.stream("Account").update(pa.table({"Id": ["3"]}))
    verb.click()
    expect(dialog.get_by_role("alert")).to_contain_text("does not match If-Match")
    assert "whole-copy" in store.tenants()
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Delete this tenant…").click()
    expect(dialog).to_contain_text("1 stream with 3 rows")
    name.fill("whole-copy")
    verb.click()
    page.wait_for_url("**/tenants?env=default")
    expect(page.get_by_role("grid", name="Tenants")).to_be_visible()

    assert "whole-copy" not in store.tenants()
    assert "whole-template" in store.tenants()


def test_a_person_is_erased_after_the_rows_were_shown(page, store, picture):
    """By condition or key, over all streams; the tenant's id is typed, and what is left is told."""
    tenant = store.tenant("whole-person", create=True)
    rows = pa.table({"Id": ["c1", "c2"], "Email": ["ann@example.org", "bo@example.org"]})
    for _ in range(2):
        tenant.stream("Contact").update(rows, "Id")
        tenant.stream("Lead").update(rows.append_column("Source", [["fair", "web"]]), "Id")
    tenant.stream("Invoice").update(pa.table({"No": [1], "Id": ["c1"]}), "No")
    page.goto("/tenants/whole-person?panel=settings")
    page.get_by_role("button", name="Erase a person…").click()
    dialog = page.get_by_role("dialog", name="Erase a person from whole-person")
    find, text = dialog.get_by_role("button", name="Find"), dialog.get_by_role("textbox").first
    dialog.get_by_text("By condition").click()
    text.fill("Email = ")
    find.click()
    expect(dialog.get_by_role("alert")).to_contain_text("not a predicate")
    text.fill("Email = 'nobody@example.org'")
    find.click()
    expect(dialog.get_by_role("status")).to_have_text(
        "No such row in the 2 streams searched. Not searched: Invoice (it has no such column)."
    )
    text.fill("Source = 'fair'")
    find.click()
    table = dialog.get_by_role("table", name="Streams with the person")
    expect(table.get_by_role("row", name="Erase from Lead")).to_contain_text(
        "the same key is in Contact, Invoice"
    )
    dialog.get_by_text("By key").click()
    text.fill("c1")
    find.click()
    expect(table.get_by_role("row")).to_have_count(3)  # the key of invoices is a number
    expect(table.get_by_role("row", name="Erase from Contact")).to_contain_text(
        "the same key is in Invoice, Lead"
    )
    grid = dialog.get_by_role("grid", name="Rows of Contact that are erased")
    expect(grid.get_by_text("ann@example.org")).to_be_visible()
    picture(page, "erase-a-person")
    assert findings(page, within=dialog) == []
    verb = dialog.get_by_role("button", name="Erase 2 rows for good")
    expect(verb).to_be_disabled()
    dialog.get_by_label("Reason").fill("asked for it")
    dialog.get_by_label("Type whole-person to confirm").fill("whole-person")
    verb.click()
    for name in ("Contact", "Lead"):
        expect(table.get_by_role("row", name=f"Erase from {name}")).to_contain_text("no row is left")
    picture(page, "erased-a-person")
    assert findings(page, within=dialog) == []
    dialog.get_by_role("button", name="Done").click()

    assert [["c2"], ["c2"]] == [
        tenant.stream(name).read(as_="arrow")["Id"].to_pylist() for name in ("Contact", "Lead")
    ]
    assert ["erase 1 keys of Lead: asked for it"] == [entry.message for entry in tenant.history()]


@pytest.fixture(scope="module")
def mixed(store):
    """A tenant whose streams have one number of several things, a delivery, and one without a key."""
    tenant = store.tenant("whole-mixed", create=True)
    tenant.stream("Customer").update(pa.table({"Id": [7], "Email": ["ann@example.org"]}), "Id")
    tenant.stream("Orders").update(pa.table({"No": [7], "Email": [1]}), "No")
    tenant.stream("Loose").update(pa.table({"Email": ["ann@example.org"]}), override=True)
    lines = pa.table({"No": [2**53, 2**53 + 1], "Line": [1, 1]})
    tenant.stream("Line").update(lines, ["No", "Line"])
    tenant.stream("Account").update(pa.table({"Code": ["a", "b"]}), "Code")
    shop = tenant.delivery("shop")
    shop.accept("Account", shop.pending("Account"))
    return tenant


def erase_dialog(page, tenant):
    """Open the dialog; return it, its field and its table of streams."""
    page.goto(f"/tenants/{tenant}?panel=settings")
    page.get_by_role("button", name="Erase a person…").click()
    dialog = page.get_by_role("dialog", name=f"Erase a person from {tenant}")
    table = dialog.get_by_role("table", name="Streams with the person")
    return dialog, dialog.get_by_role("textbox").first, table


def test_only_what_was_found_by_the_words_in_the_field_is_erased(page, mixed, picture):
    """A number of several things is not ticked; other words forget what was found."""
    dialog, text, table = erase_dialog(page, "whole-mixed")
    find = dialog.get_by_role("button", name="Find")
    text.fill("7")
    find.click()
    for name, key in (("Customer", "Id"), ("Orders", "No")):
        row = table.get_by_role("row", name=f"Erase from {name}")
        expect(row.get_by_role("cell").nth(2)).to_have_text(key)
        expect(row.get_by_role("checkbox")).not_to_be_checked()
    expect(dialog.get_by_text("The streams have different key columns")).to_be_visible()
    expect(dialog.get_by_text("Not searched:")).to_contain_text(
        "Line (its key has 2 columns), Loose (it has no key)"
    )
    picture(page, "erase-by-hand")
    table.get_by_label("Erase from Customer").check()
    verb = dialog.get_by_role("button", name="Erase 1 row for good")
    dialog.get_by_label("Type whole-mixed to confirm").fill("whole-mixed")
    expect(verb).to_be_enabled()
    text.fill("8")
    expect(table).to_have_count(0)
    text.fill("7")
    expect(dialog.get_by_role("button", name="Erase", exact=True)).to_be_disabled()

    text.fill("[7")
    find.click()
    expect(dialog.get_by_role("alert")).to_contain_text("no JSON array")
    dialog.get_by_text("By condition").click()
    text.fill("Email = 'ann@example.org'")
    find.click()
    expect(table.get_by_label("Erase from Customer")).to_be_checked()
    expect(dialog.get_by_text("Not searched:")).to_contain_text("Orders (its column has another type)")


def test_an_erasure_keeps_to_what_was_shown(page, mixed, picture):
    """All digits of a key; a delivery goes with its stream; changed meanwhile, a stream is shown anew."""
    dialog, text, table = erase_dialog(page, "whole-mixed")
    find = dialog.get_by_role("button", name="Find")
    text.fill(f"[{2**53 + 1}, 1]")
    find.click()
    grid = dialog.get_by_role("grid", name="Rows of Line that are erased")
    expect(grid.get_by_text(str(2**53 + 1))).to_be_visible()
    text.fill("a")
    find.click()
    state = table.get_by_role("row", name="Erase from Account.delivery.shop")
    expect(state).to_contain_text("goes with Account")
    expect(state.get_by_role("checkbox")).to_be_disabled()
    expect(table.get_by_label("Erase from Account", exact=True)).to_be_checked()
    mixed.stream("Account").update(pa.table({"Code": ["c"]}))
    dialog.get_by_label("Type whole-mixed to confirm").fill("whole-mixed")
    verb = dialog.get_by_role("button", name="Erase 2 rows for good")
    verb.click()
    expect(dialog.get_by_role("alert").last).to_contain_text("does not match If-Match")
    verb.click()
    expect(state).to_contain_text("went with Account")
    expect(dialog.get_by_role("alert")).to_have_count(0)
    picture(page, "erased-with-a-delivery")
    dialog.get_by_role("button", name="Done").click()

    names = ("Account", "Account.delivery.shop")
    assert [["b", "c"], ["b"]] == [
        sorted(mixed.stream(name).read(as_="arrow")["Code"].to_pylist()) for name in names
    ]


def test_a_dialog_stays_while_it_erases(page, mixed):
    """Neither Escape nor Cancel hides what becomes of it."""
    dialog, text, table = erase_dialog(page, "whole-mixed")
    text.fill("7")
    dialog.get_by_role("button", name="Find").click()
    table.get_by_label("Erase from Orders").check()
    dialog.get_by_label("Type whole-mixed to confirm").fill("whole-mixed")
    held = []
    page.route("**/Orders/erasures", lambda route: held.append(route))  # noqa: PLW0108 - it is marked
    dialog.get_by_role("button", name="Erase 1 row for good").click()
    expect(dialog.get_by_role("button", name="Cancel")).to_be_disabled()
    page.keyboard.press("Escape")
    expect(text).to_be_disabled()
    held[0].continue_()
    expect(table.get_by_role("row", name="Erase from Orders")).to_contain_text("no row is left")
