"""Whole tenants in the browser: made from another one, copied, and deleted after their id was typed."""

import pyarrow as pa
import pytest
from playwright.sync_api import expect
from tests.browser.accessibility import findings

from freezeframe.service.access.access import Stores
from freezeframe.settings import load_settings

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def store(served):
    """The served store, with a tenant of two versions, a stream and a file."""
    store = Stores(str(served.root), load_settings(root=str(served.root))).environment("default")
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

    page.goto("/tenants/whole-copy?panel=settings")
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
    expect(dialog.get_by_role("status")).to_contain_text("No stream of whole-person has such a row.")
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
