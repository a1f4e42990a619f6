"""The overview, whose lines lead to their causes, and the chips of the list of tenants."""

import json
import re

import pyarrow as pa
import pytest
from playwright.sync_api import expect
from tests.browser.navigation import go
from tests.browser.queued import Worker

from freezeframe.control.groups import submit_group
from freezeframe.control.submission import Submission
from freezeframe.runs.request import RunRequest
from freezeframe.service.access.access import Stores
from freezeframe.settings import load_settings

pytestmark = pytest.mark.browser
PLACE = "?env=attention"


@pytest.fixture(scope="module")
def attention(served):
    """An environment with a failed job, drift, growth, an unsealed configuration; and a quiet tenant."""
    settings = load_settings(root=str(served.root))
    store = Stores(str(served.root), settings).environment("attention")
    loud = store.tenant("loud", create=True)
    stream = loud.stream("Invoice")
    stream.update(pa.table({"Id": list(range(200))}), "Id")
    stream.update(pa.table({"Id": [1], "Note": ["checked"]}), "Id")
    stream.update(pa.table({"Id": list(range(1000))}), "Id")
    loud.files.write("flow/tenant-config.json", b"{}")
    store.tenant("quiet", create=True)
    worker = Worker(served.root, served.root.parent / "scripts")
    error = {"code": "SCRIPT_FAILED", "problem": "The script failed.", "cause": "KeyError: 'Amount'\nmore"}
    script = served.root.parent / "scripts" / "etl.py"

    def request(tenant, job_id):
        order = RunRequest(str(served.root), "attention", tenant, script=script, job_id=job_id)
        return json.dumps(order.to_json())

    worker.queue.submit(
        Submission(request("loud", "job-9"), "attention", "loud", "job-9", attempts_max=1, priority=9)
    )
    while (job := worker.queue.claim("worker")).job_id != "job-9":
        worker.queue.finish(job, "failed", "{}")
    worker.queue.finish(job, "failed", json.dumps({"error": error}))
    submit_group(
        worker.queue.database,
        [
            Submission(request(name, "night"), "attention", name, "night", priority=9, group="night")
            for name in ("loud", "quiet")
        ],
    )
    for status in ("succeeded", "failed"):
        worker.queue.finish(worker.queue.claim("worker"), status, json.dumps({"error": error}))
    worker.close()


def part(page, name):
    return page.get_by_role("region", name=name)


def test_chips_leave_the_tenants_of_which_they_say_so(page, attention):
    """Failed, stale, changed today; the chip is in the address and taken off by another click."""
    page.goto(f"/tenants{PLACE}")
    grid = page.get_by_role("grid", name="Tenants")
    chips = page.get_by_role("group", name="Only tenants that are")
    expect(grid.get_by_role("gridcell", name="quiet")).to_be_visible()
    chips.get_by_role("button", name="Failed").click()
    page.wait_for_url(re.compile("only=failed"))
    # The last job of loud succeeded, after one that failed.
    expect(grid.get_by_role("gridcell", name="loud")).to_have_count(0)
    expect(grid.get_by_role("gridcell", name="quiet")).to_be_visible()
    chips.get_by_role("button", name="Stale").click()
    expect(page.get_by_text("No tenant is “stale”.")).to_be_visible()
    chips.get_by_role("button", name="Changed today").click()
    expect(grid.get_by_role("row")).to_have_count(2)
    chips.get_by_role("button", name="Changed today").click()
    expect(grid.get_by_role("gridcell", name="quiet")).to_be_visible()


def test_the_overview_leads_to_each_cause(page, attention, picture):
    """A failed job with its error, growth, drift and an unsealed configuration: each line is a link to it."""
    page.goto("/")
    page.wait_for_url(re.compile("/overview"))
    go(page, f"/overview{PLACE}")
    reason = part(page, "Failed jobs").get_by_role("article", name="KeyError: 'Amount'")
    expect(reason.get_by_role("link")).to_have_text(["quiet", "loud"])
    expect(part(page, "Failed jobs").get_by_role("heading")).to_contain_text("Failed jobs 2")
    expect(part(page, "Schema drift").get_by_role("link")).to_contain_text("+ Note (string)")
    expect(part(page, "Unusual changes").get_by_role("link")).to_contain_text("+800 of 200 rows (400 %)")
    # What is quiet is said in one line, with the rule by which it is.
    expect(page.get_by_role("status")).to_contain_text("no stale tenants (no sync for twice the usual time")
    expect(part(page, "Stale tenants")).to_have_count(0)
    growth = part(page, "Growth of tenants").get_by_role("link").first
    expect(growth).to_contain_text(re.compile(r"loud.*\+1,000 rows"))
    expect(growth.get_by_role("img", name="loud: 0 rows 30 days ago, 1,000 now")).to_be_visible()
    expect(page.get_by_role("status")).to_contain_text("2 tenants examined")
    picture(page, "overview-causes")
    for name, shown in (
        ("Failed jobs", lambda panel: panel.get_by_text("job-9").first),
        ("Schema drift", lambda panel: panel.get_by_role("grid", name="Rows of Invoice that differ")),
        ("Unsealed configurations", lambda panel: panel.get_by_text("tenant-config.json").first),
    ):
        part(page, name).get_by_role("link", name="loud").click()
        expect(shown(page.get_by_role("dialog", name="loud"))).to_be_visible()
        go(page, f"/overview{PLACE}")
    group = part(page, "Runs for many tenants").get_by_role("link")
    expect(group).to_contain_text("etl.py")
    expect(group).to_contain_text("for 2 tenants1 succeeded, 1 failed")
    group.click()
    expect(part(page, "Group")).to_contain_text("etl.py for 2 tenants: 1 succeeded, 1 failed")
    rows = page.get_by_role("grid", name="Jobs").get_by_role("row")
    expect(rows.nth(1)).to_contain_text("quiet")
    picture(page, "job-group")
    rows.nth(1).click()
    panel = page.get_by_role("dialog", name="quiet")
    expect(panel.get_by_role("button", name="Dry run")).to_be_visible()
    panel.get_by_label("About the job").get_by_role("link", name="night").click()
    part(page, "Group").get_by_role("button", name="All jobs").click()
    expect(rows.filter(has_text="job-9")).to_have_count(1)
    go(page, f"/overview{PLACE}")
    page.locator("label").filter(has_text="24 h").click()
    page.wait_for_url(re.compile("days=1"))
    reason.get_by_role("button", name="Run again for these 2").click()
    expect(page.get_by_text("2 jobs queued.")).to_be_visible()
