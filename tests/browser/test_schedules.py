"""Schedules as a page: made, paused, run at once and deleted."""

import pytest
from playwright.sync_api import expect
from tests.browser.navigation import go

pytestmark = pytest.mark.browser


def test_a_schedule_is_made_paused_run_and_deleted(page, picture):
    """Made by a dialog; its row tells the next run; its run is a job of the tenant."""
    page.goto("/overview")
    page.get_by_role("navigation", name="Main").get_by_role("link", name="Schedules").click()
    page.get_by_role("button", name="Create schedule").click()
    dialog = page.get_by_role("dialog", name="Create schedule")
    dialog.get_by_role("combobox", name="Tenant").fill("customer-0200")
    page.get_by_role("option", name="customer-0200").click()
    dialog.get_by_role("combobox", name="Script").click()
    page.get_by_role("option", name="etl.py").click()
    expect(dialog.get_by_label("Name")).to_have_value("etl")
    dialog.get_by_label("Name").fill("nightly")
    dialog.get_by_role("combobox", name="When").fill("at noon")
    dialog.get_by_role("button", name="Create", exact=True).click()
    expect(dialog.get_by_role("alert")).to_contain_text("at noon")
    dialog.get_by_role("combobox", name="When").fill("0 6 * * *")
    dialog.get_by_role("button", name="Create", exact=True).click()
    row = page.get_by_role("grid", name="Schedules").get_by_role("row").filter(has_text="nightly")
    expect(row).to_contain_text("in ")
    for width in (1440, 1024, 390):
        page.set_viewport_size({"width": width, "height": 800})
        for name in ("Run now", "Pause", "Delete"):
            expect(row.get_by_role("button", name=name)).to_be_in_viewport(ratio=1)
        when = row.get_by_text("every day at 06:00").locator("..")
        assert width < 1024 or when.evaluate("cell => cell.scrollWidth <= cell.clientWidth"), width
        picture(page, f"schedules-{width}")
    row.get_by_role("button", name="Pause").click()
    expect(row).to_contain_text("paused")
    with page.expect_response(lambda answer: answer.url.endswith("/schedules/nightly/runs")) as answer:
        row.get_by_role("button", name="Run now").click()
    job = answer.value.json()["job_id"]
    go(page, "/jobs?tenant=customer-0200")
    expect(page.get_by_role("grid", name="Jobs")).to_contain_text(job)
    go(page, "/schedules")
    row.get_by_role("button", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(row).to_have_count(0)
