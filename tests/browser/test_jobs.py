"""Jobs of all tenants and of one, as they become what they become; keys and the audit."""

import json
import re

import pyarrow as pa
import pytest
from playwright.sync_api import expect
from tests.browser.accessibility import findings, findings_by_scheme, require_narrow
from tests.browser.navigation import go
from tests.browser.queued import Worker

pytestmark = pytest.mark.browser


@pytest.fixture
def worker(served):
    """What puts jobs into the queue of the served store, and carries them out."""
    found = Worker(served.root, served.root.parent / "scripts")
    yield found
    found.close()


def test_a_script_is_picked_and_its_parameters_are_fields(page, picture):
    """Those that its header declares, with their defaults; what is not changed is not sent."""
    page.goto("/tenants/customer-0212?panel=jobs")
    page.get_by_role("button", name="Run a script").click()
    dialog = page.get_by_role("dialog", name="Run a script")
    dialog.get_by_role("combobox", name="Script").fill("inv")
    page.get_by_role("option", name="invoices.py").click()
    expect(dialog).to_contain_text("Brings invoices in.")
    expect(dialog.get_by_label("limit")).to_have_value("100")
    expect(dialog.get_by_role("combobox", name="mode")).to_have_value("upsert")
    dialog.get_by_label("limit").fill("7")
    dialog.get_by_role("checkbox", name="full").check()
    dialog.get_by_label("since").fill("today")
    picture(page, "run-a-script")
    assert findings(page, within=dialog) == []
    with page.expect_request(lambda request: request.method == "POST" and "/jobs" in request.url) as sent:
        dialog.get_by_role("button", name="Run", exact=True).click()
    assert sent.value.post_data_json == {
        "script": "invoices.py",
        "parameters": {"limit": 7, "full": True, "since": "today"},
        "dry_run": False,
        "message": "",
    }
    expect(page.get_by_role("button", name="All jobs")).to_be_visible()


def test_a_script_is_run_for_many_tenants(page, picture):
    """All of a prefix: the page shows how far they are, and the jobs of the group alone."""
    page.goto("/jobs")
    page.get_by_role("button", name="Run for many tenants").click()
    dialog = page.get_by_role("dialog", name="Run a script for many tenants")
    dialog.get_by_role("combobox", name="Script").fill("inv")
    page.get_by_role("option", name="invoices.py").click()
    dialog.get_by_label("since").fill("today")
    dialog.get_by_label("Tenants whose ids begin with").fill("customer-019")
    dialog.get_by_role("checkbox", name="Dry run").check()
    picture(page, "run-for-many-tenants")
    assert findings(page, within=dialog) == []
    dialog.get_by_role("button", name="Run", exact=True).click()
    page.wait_for_url(re.compile("group="))
    expect(page.get_by_role("region", name="Group")).to_contain_text(
        "Dry run of invoices.py for 10 tenants: 10 queued"
    )
    expect(page.get_by_role("grid", name="Jobs").get_by_role("row")).to_have_count(11)
    assert findings(page) == []


def test_a_group_tries_some_first_is_cancelled_and_undone(page, store, worker, picture):
    """How many tenants run first; what has not begun ends; what a job changed goes back tenant by tenant."""
    page.goto("/jobs")
    page.get_by_role("button", name="Run for many tenants").click()
    dialog = page.get_by_role("dialog", name="Run a script for many tenants")
    dialog.get_by_role("combobox", name="Script").fill("etl")
    page.get_by_role("option", name="etl.py").click()
    dialog.get_by_label("Tenants whose ids begin with").fill("customer-018")
    dialog.get_by_label("Tenants that run first").fill("2")
    with page.expect_request(lambda request: request.url.endswith("/job-groups")) as sent:
        dialog.get_by_role("button", name="Run", exact=True).click()
    assert sent.value.post_data_json["canary"] == 2
    page.wait_for_url(re.compile("group="))
    group, head = page.url.partition("group=")[2].partition("&")[0], page.get_by_role("region", name="Group")
    job = worker.claim(group)
    tenant = store.tenant(job.tenant)
    with tenant.job(group) as made:
        made.stream("Account").update(pa.table({"Id": ["001", "002"]}), "Id")
    worker.queue.finish(job, "succeeded", "{}")

    def leave_two(route):
        answer = route.fetch()
        route.fulfill(response=answer, json={**answer.json(), "left": 2})

    page.route("**/cancel", leave_two)
    head.get_by_role("button", name="Cancel all").click()
    question = page.get_by_role("dialog", name="Cancel 9 jobs of etl.py?")
    assert findings(page, within=question) == []
    question.get_by_role("button", name="Cancel all").click()
    expect(page.get_by_text("2 jobs are left; cancel again.")).to_be_visible()
    page.unroute("**/cancel")
    expect(head).to_contain_text("1 succeeded, 9 cancelled")

    head.get_by_role("button", name="Undo these jobs…").click()
    dialog = page.get_by_role("dialog", name="Undo the group's jobs")
    expect(dialog.get_by_role("status")).to_contain_text("1 tenant of 10 can go back.")
    picture(page, "undo-a-group")
    assert findings(page, within=dialog) == []
    dialog.get_by_role("button", name="Undo for 1 tenant").click()
    expect(dialog.get_by_role("row", name=job.tenant)).to_contain_text("undone as version")

    assert ["001"] == tenant.stream("Account").read(as_="arrow")["Id"].to_pylist()


def test_jobs_of_all_tenants_are_followed_without_a_reload(page, worker, picture):
    """A job appears, runs and ends in the open page, whole at each width; its id is in Ctrl+K."""
    worker.submit("customer-0010", "first-one")
    page.goto("/tenants")
    page.get_by_role("navigation", name="Main").get_by_role("link", name="Jobs").click()
    grid = page.get_by_role("grid", name="Jobs")
    expect(grid.get_by_role("row").filter(has_text="first-one")).to_contain_text("queued")
    expect(page.get_by_text(re.compile("· live"))).to_be_visible()
    with worker.running("customer-0011", "job-4712") as (_, end):
        row = grid.get_by_role("row").filter(has_text="job-4712")
        expect(row).to_contain_text("running")
        expect(row).to_contain_text("customer-0011")
        end("succeeded")
        expect(row).to_contain_text("succeeded")
    first = grid.get_by_role("row").filter(has_text="first-one")
    for width in (390, 1024, 1440):
        page.set_viewport_size({"width": width, "height": 900})
        for seen in (first.get_by_role("button"), first.locator("time")):
            expect(seen, str(width)).to_be_in_viewport(ratio=1)
        picture(page, f"all-jobs-{width}")
    page.get_by_role("combobox", name="Status").click()
    page.get_by_role("option", name="succeeded").click()
    expect(grid.get_by_role("row").filter(has_text="first-one")).to_have_count(0)
    page.get_by_label("Tenant", exact=True).fill("customer-0011")
    page.wait_for_url(re.compile("status=succeeded.*tenant=customer-0011"))
    page.reload()
    expect(grid.get_by_role("row")).to_have_count(2)
    row.click()
    expect(page.get_by_role("dialog", name="customer-0011")).to_contain_text("job-4712")
    go(page, "/tenants")
    label = page.get_by_role("row").filter(has_text="customer-0011").get_by_text("succeeded")
    for width in (390, 1024, 1440):
        page.set_viewport_size({"width": width, "height": 900})
        assert label.evaluate("word => word.scrollWidth <= word.clientWidth"), width
    page.keyboard.press("Control+k")
    page.get_by_role("combobox", name="Tenant, stream, file, job, page, key or text").fill("first-one")
    expect(page.get_by_role("option", name="job customer-0010 / first-one")).to_be_visible()
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog", name="customer-0010")).to_contain_text("first-one")


def test_a_log_is_read_as_it_is_written_and_a_job_run_again(page, worker, picture):
    """Lines come while it runs; then its notebook is shown as text, and it is run again and cancelled."""
    with worker.running("customer-0012", "job-4713") as (write, end):
        write("reading the input")
        page.goto("/tenants/customer-0012?panel=jobs&job=job-4713")
        log = page.get_by_role("log", name="Log")
        expect(log).to_contain_text("reading the input")
        write("4,711 rows")
        expect(log).to_contain_text("4,711 rows")
        picture(page, "job-log")
        end("succeeded")
    page.locator("label").filter(has_text="Executed notebook").click()
    notebook = page.get_by_role("region", name="Executed notebook")
    expect(notebook).to_contain_text("0   7  paid")
    expect(notebook).to_contain_text("ZeroDivisionError: division by zero")
    # Nothing of the notebook's own HTML is in the page, so nothing of it can run.
    expect(notebook.locator("img, script, iframe")).to_have_count(0)
    assert page.title().endswith(" · freezeframe")
    picture(page, "notebook")
    about = page.get_by_label("About the job")
    expect(about).to_contain_text("Script")
    page.get_by_role("button", name="Run again with changes…").click()
    changed = page.get_by_role("dialog", name="Run a script")
    expect(changed.get_by_role("combobox", name="Script")).not_to_have_value("")
    changed.get_by_role("button", name="Cancel").click()
    page.get_by_role("button", name="Run again", exact=True).click()
    page.wait_for_url(re.compile("job=(?!job-4713)"))
    page.get_by_role("button", name="Cancel").click()
    panel = page.get_by_role("tabpanel", name="Jobs")  # the list of tenants behind it soon says so too
    expect(panel.locator(".job-status", has_text="cancelled")).to_be_visible()
    page.get_by_role("button", name="All jobs").click()
    expect(page.get_by_role("grid", name="Jobs").get_by_role("row")).to_have_count(3)


REPLAYED = """import os
import pyarrow as pa
from freezeframe import update_snapshot
night = os.environ["JOB_ID"]
rows = {"Id": ["all", night], "Total": [len(night) * RATE] * 2}
update_snapshot("snapshots", "Order", "Id", pa.table(rows))
"""


def test_kept_jobs_are_replayed_with_a_mended_script(page, worker, served, picture, store):
    """By a button or, several, by the service: held with what differs and what stays; refused it says why."""
    script = served.root.parent / "scripts" / "orders.py"
    script.write_text(REPLAYED.replace("RATE", "10"))
    tenant = store.tenant("replayed", create=True)
    for job_id in ("monday", "tuesday"):
        worker.submit("replayed", job_id, script.name)
        assert "succeeded" == worker.perform(job_id).status
    with tenant.job("unkept") as job:
        job.stream("Order").update(pa.table({"Id": ["tuesday"], "Total": [42]}))
    worker.submit("replayed", "unkept", script.name)
    worker.queue.finish(worker.claim("unkept"), "succeeded", json.dumps({"tenant_version": tenant.version}))
    script.write_text(REPLAYED.replace("RATE", "1"))

    page.goto("/tenants/replayed?panel=jobs&job=unkept")
    replay = page.get_by_role("button", name="Replay", exact=True)
    replay.click()
    refusal = page.get_by_role("alert").filter(has_text="The input of the job unkept is not kept.")
    expect(refusal).to_contain_text("Set keep_inputs_days, so that the input of later jobs is kept.")
    go(page, "/tenants/replayed?panel=jobs&job=tuesday")
    about = page.get_by_label("About the job")
    expect(about).to_contain_text("1 of 3")
    picture(page, "replay-button")
    with page.expect_request("**/replays") as asked:
        replay.click()
    assert {"jobs": ["tuesday"], "script": "orders.py"} == asked.value.post_data_json
    expect(about).to_contain_text("replay tuesday with orders.py")
    expect(replay).to_have_count(0)
    page.get_by_role("button", name="Cancel", exact=True).click()

    place = f"{served.url}/api/v1/environments/default/tenants/replayed/replays"
    order = {"jobs": ["tuesday", "monday"], "script": "orders.py"}
    made = page.request.post(place, data=order, headers={"Origin": served.url}).json()["job_id"]
    assert "held" == worker.perform(made).status
    go(page, f"/tenants/replayed?panel=jobs&job={made}")
    expect(about).to_contain_text("replay monday, tuesday with orders.py")
    expect(about).to_contain_text("In Order 1 row keeps 1 cell, which was changed again since")
    rows = page.get_by_role("grid", name="Rows of Order that would change")
    expect(rows.locator("del")).to_have_text(["70", "60"])
    expect(rows.locator("ins")).to_have_text(["7", "6"])
    assert findings_by_scheme(page, picture, "replay-held", page.get_by_role("dialog", name="replayed")) == {}
    require_narrow(page, picture, "replay-held")
    page.get_by_role("button", name="Publish").click()
    expect(page.get_by_role("tabpanel", name="Jobs").locator(".job-status")).to_have_text("succeeded")

    totals = tenant.stream("Order").read(as_="arrow").to_pylist()
    assert {"all": 7, "monday": 6, "tuesday": 42} == {row["Id"]: row["Total"] for row in totals}


def test_another_ones_change_is_seen_without_a_reload(page, visit, served):
    """What somebody else uploads appears in an open panel; who may not run jobs sees no button for it."""
    page.goto("/tenants/customer-0013?panel=snapshots")
    expect(page.get_by_text("customer-0013 has no streams or files yet.")).to_be_visible()
    place = f"{served.url}/api/v1/environments/default/tenants/customer-0013"
    uploaded = page.request.put(f"{place}/files/rates.csv", data="a", headers={"Origin": served.url})
    assert uploaded.ok, uploaded.text()
    expect(page.get_by_role("gridcell", name="File rates.csv")).to_be_visible()
    viewer = visit("viewer")
    viewer.goto("/jobs")
    expect(viewer.get_by_role("heading", name="Jobs")).to_be_visible()
    expect(viewer.get_by_role("button", name=re.compile("^(Run again|Cancel)"))).to_have_count(0)
    go(viewer, "/tenants/customer-0013?panel=jobs")
    expect(viewer.get_by_text("No job for customer-0013 yet.")).to_be_visible()
    expect(viewer.get_by_role("button", name="Run a script")).to_have_count(0)


def test_keys_are_made_rotated_and_revoked(page):
    """A secret is shown once; the one from before a rotation is another; a revoked key says so."""
    page.goto("/keys")
    page.get_by_role("button", name="Create key").click()
    page.get_by_role("dialog", name="Create key").get_by_label("Name").fill("nightly export")
    page.keyboard.press("Enter")
    shown = page.get_by_role("dialog", name="Copy the key now: it is not shown again")
    expect(shown).to_be_visible()
    first = shown.locator("pre").inner_text()
    page.keyboard.press("Escape")
    row = page.get_by_role("grid", name="Keys").get_by_role("row").filter(has_text="nightly export")
    row.get_by_role("button", name="Rotate").click()
    second = shown.locator("pre")
    expect(second).to_contain_text(first.partition(".")[0])
    assert first != second.inner_text()
    page.keyboard.press("Escape")
    row.get_by_role("button", name="Revoke").click()
    page.get_by_role("dialog", name="Revoke nightly export?").get_by_role("button", name="Revoke").click()
    expect(row).to_contain_text("revoked")
    expect(row.get_by_role("button")).to_have_count(0)


def test_the_audit_tells_what_was_done_and_that_nothing_is_missing(page, served):
    """By tenant and action, in the address; the chain is whole; the service's own is a CSV file as well."""
    place = f"{served.url}/api/v1/environments/default/tenants/customer-0015"
    for name in ("a.txt", "b.txt"):
        uploaded = page.request.put(f"{place}/files/{name}", data=name, headers={"Origin": served.url})
        assert uploaded.ok, uploaded.text()
    deleted = page.request.delete(f"{place}/files/a.txt", headers={"Origin": served.url})
    assert deleted.ok, deleted.text()
    page.goto("/audit?tenant=customer-0015")
    grid = page.get_by_role("grid", name="Audit of customer-0015")
    expect(grid.get_by_role("row")).to_have_count(4)
    page.get_by_role("button", name="Verify all entries").click()
    expect(page.get_by_text("No entry was changed or deleted.")).to_be_visible()
    page.get_by_role("combobox", name="Action").click()
    page.get_by_role("option", name="File deleted").click()
    expect(grid.get_by_role("row")).to_have_count(2)
    expect(grid).to_contain_text("a.txt")
    page.wait_for_url(re.compile("action=file.delete"))
    page.get_by_label("To (UTC)").fill("2020-01-01")
    expect(page.get_by_text("No entry matches.")).to_be_visible()
    page.get_by_label("To (UTC)").fill("")
    expect(grid).to_contain_text("a.txt")
    go(page, "/audit")
    expect(page.get_by_role("grid", name="Audit of the service")).to_contain_text("Signed in")
    with page.expect_download() as download:
        page.get_by_role("link", name="Download CSV").click()
    assert "session.begin" in download.value.path().read_text()
