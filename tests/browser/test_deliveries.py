"""Which rows a target refused, and why: in the browser, and sent again from there."""

import pyarrow as pa
import pytest
from playwright.sync_api import expect
from tests.browser.navigation import go

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def tenant(store):
    """A tenant of whose leads the shop took one that is gone by now, and refused two."""
    tenant = store.tenant("delivered-acme", create=True)
    tenant.stream("Quiet").update(pa.table({"Id": ["1"]}), "Id")
    lead, delivery = tenant.stream("Lead"), tenant.delivery("shop")
    lead.update(pa.table({"Id": ["007", "008", "009"], "Stage": ["new", "won", "won"]}), "Id")
    rows = delivery.pending("Lead")
    delivery.accept("Lead", rows[rows["Id"] == "009"].assign(_target_id="s-9"))
    errors = rows["Id"].map({"007": "no email", "008": "Stage is too long"})
    delivery.reject("Lead", rows.assign(_error=errors)[rows["Id"] != "009"])
    kept = pa.table({"Id": ["007", "008", "010"], "Stage": ["new", "won", "new"]})
    lead.update(kept, "Id", override=True)
    return tenant


def test_refused_rows_are_listed_with_reasons_and_sent_again(page, tenant, picture):
    """From the stream: reasons, what only the target has, one row again, then all; no tab where none is."""
    page.goto("/tenants/delivered-acme?panel=snapshots&stream=Quiet")
    expect(page.get_by_role("radio", name="Versions")).to_be_attached()
    expect(page.get_by_role("radio", name="Delivery")).to_have_count(0)

    go(page, "/tenants/delivered-acme?panel=snapshots&stream=Lead")
    page.get_by_text("Delivery", exact=True).click()
    part = page.get_by_role("region", name="Delivery to shop")
    expect(part.get_by_role("status")).to_have_text("1 accepted · 2 refused · pending +11 new -1, 1 deleted")
    refused = part.get_by_role("table", name="Rows that shop refused")
    expect(refused.get_by_role("row", name="008")).to_contain_text("Stage is too long")
    alone = part.get_by_role("table", name="Rows that only shop has")
    expect(alone.get_by_role("row", name="009")).to_contain_text("s-9")
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        picture(page, f"delivery-{scheme}")

    part.get_by_role("button", name="Send 007 again").click()
    expect(page.get_by_text("1 row will be sent to shop again.")).to_be_visible()
    expect(refused.get_by_role("row", name="007")).to_have_count(0)
    part.get_by_role("button", name="Send all refused again").click()
    expect(part.get_by_text("shop refused no row as it is now.")).to_be_visible()
    assert tenant.delivery("shop").report("Lead").rejected == 0
    part.get_by_role("button", name="All answers").click()
    expect(page.get_by_role("grid", name="Rows of Lead.delivery.shop")).to_contain_text("no email")
