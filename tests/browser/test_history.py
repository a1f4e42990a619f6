"""A tenant's past in the browser: the chart and its brush, single rows brought back, tags, the way back."""

from datetime import UTC, datetime

import pyarrow as pa
import pytest
from playwright.sync_api import expect
from tests.browser.navigation import go

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def tenant(store):
    """A tenant of this module with three versions of a stream, and the path of its history."""
    tenant = store.tenant("history-acme", create=True)
    table = pa.table({"Id": [1, 2, 3], "City": ["Bern", "Basel", "Chur"]})
    tenant.stream("Account").update(table, "Id")
    for city, ids in (("Thun", [1, 2, 3]), ("Zug", [1, 3, 4])):
        with tenant.job(f"job-{city}", who="sync", message=f"to {city}") as job:
            job.stream("Account").update(
                pa.table({"Id": ids, "City": [city] * len(ids)}), "Id", override=True
            )
    return "/tenants/history-acme?panel=history"


def test_all_rows_of_a_long_difference_come_back(page, store, picture):
    """The box of the head ticks what is fetched and says so; one more click takes all that differ."""
    stream = store.tenant("history-pages", create=True).stream("Invoice")
    ids = list(range(300))
    for status in ("open", "wrong", "wrong again"):
        stream.update(pa.table({"Id": ids, "Status": [status] * 300}), "Id")
    stream.update(pa.table({"Id": [7, 8], "Status": ["paid", "paid"]}), "Id")
    page.goto("/tenants/history-pages?panel=history&before=0&after=2")
    grid = page.get_by_role("grid", name="Rows of Invoice that differ")
    box = grid.get_by_label("Select all", exact=True)

    box.click()
    bar = page.get_by_role("region", name="Selection")
    expect(bar.get_by_role("status")).to_have_text("200 of 300 selected")
    assert box.evaluate("box => box.indeterminate")
    picture(page, "rows-of-pages-selected")
    bar.get_by_role("button", name="Select all 300").click()
    expect(bar.get_by_role("status")).to_have_text("All 300 selected")
    expect(box).to_be_checked()
    bar.get_by_role("button", name="Restore all 300…").click()
    dialog = page.get_by_role("dialog", name="Restore all changed rows of Invoice as of version 0")
    expect(dialog.get_by_role("alert")).to_contain_text("2 rows changed again after version 2")
    expect(dialog.get_by_text("300 restored to old values.")).to_be_visible()
    picture(page, "restore-all-rows")

    def change_on_the_way(route):
        """Another changes a row between the click and the restore: an event would renew the preview."""
        if not route.request.post_data_json["dry_run"] and stream.stream_version == 3:
            stream.update(pa.table({"Id": [9], "Status": ["paid"]}), "Id")
        route.continue_()

    page.route("**/row-restorations", change_on_the_way)
    dialog.get_by_role("button", name="Restore", exact=True).click()
    expect(dialog.get_by_text("The tenant was changed after this preview was computed.")).to_be_visible()
    expect(dialog.get_by_role("alert").first).to_contain_text("3 rows changed again after version 2")
    dialog.get_by_role("button", name="Restore", exact=True).click()
    page.get_by_role("article", name="Version 5").wait_for()

    assert {"open"} == set(stream.read(as_="arrow")["Status"].to_pylist())


def test_one_job_is_undone_and_what_came_later_stays(page, store, picture):
    """All of its rows, or those that are ticked: first counts and cells, and what stays with its values."""
    tenant = store.tenant("history-undo", create=True)
    stream, ids = tenant.stream("Invoice"), list(range(300))
    stream.update(pa.table({"Id": ids, "Status": ["open"] * 300}), "Id")
    with tenant.job("bad-job") as job:
        job.stream("Invoice").update(pa.table({"Id": ids, "Status": ["wrong"] * 300}))
        job.stream("Mistake").update(pa.table({"Id": [1, 2, 3]}), "Id")
        job.files.write("map.csv", b"wrong")
    stream.update(pa.table({"Id": [7, 8], "Status": ["paid", "paid"]}))
    page.goto("/tenants/history-undo?panel=history&before=0&after=1")
    grid = page.get_by_role("grid", name="Rows of Invoice that differ")
    for number in (3, 7):
        grid.get_by_label(f"Select {number}", exact=True).check()

    page.get_by_role("button", name="Undo 2 rows…").click()
    dialog = page.get_by_role("dialog", name="Undo 2 rows of Invoice in version 1")
    expect(dialog).to_contain_text("1 row gets old values (1 cell)")
    expect(dialog.get_by_role("table", name="Cells of Invoice that stay")).to_contain_text("paid")
    expect(dialog.get_by_role("alert")).to_contain_text("1 row stays in part or whole")
    dialog.get_by_label("Reason").fill("Ticket 4711")
    dialog.get_by_role("button", name="Undo", exact=True).click()
    newest = page.get_by_role("article", name="Version 3")
    expect(newest).to_contain_text("revert version 1 (bad-job): Ticket 4711")

    page.get_by_role("button", name="Actions of version 1").click()
    page.get_by_role("menuitem", name="Undo this job…").click()
    dialog = page.get_by_role("dialog", name="Undo version 1, by bad-job")
    expect(dialog).to_contain_text("297 rows get old values (297 cells)")
    expect(dialog).to_contain_text("Mistake: the stream goes, 3 new rows go")
    expect(dialog).to_contain_text("New files that go: map.csv")
    picture(page, "undo-a-job")
    dialog.get_by_role("button", name="Undo", exact=True).click()
    page.get_by_role("article", name="Version 4").wait_for()

    found = stream.read(as_="arrow").to_pylist()
    assert [7, 8] == [row["Id"] for row in found if row["Status"] != "open"]
    assert [] == [file.path for file in tenant.files.list()]


def test_rows_that_are_ticked_come_back_as_one_version(page, tenant, picture):
    """Ticked in the difference, shown before it happens, and afterwards a version that says what it undid."""
    page.goto(f"{tenant}&before=1&after=2")
    grid = page.get_by_role("grid", name="Rows of Account that differ")
    grid.get_by_label("Select 2").check()
    grid.get_by_label("Select 4").check()
    page.get_by_role("button", name="Undo 2 rows…").click()
    dialog = page.get_by_role("dialog", name="Undo 2 rows of Account in version 2")
    expect(dialog).to_contain_text("1 deleted row returns, 1 new row goes")
    expect(dialog.get_by_role("grid", name="Rows of Account that go back").get_by_role("row")).to_have_count(
        3
    )
    picture(page, "undo-rows")
    dialog.get_by_role("button", name="Undo", exact=True).click()
    newest = page.get_by_role("article", name="Version 3")
    expect(newest).to_contain_text("revert version 2 (job-Zug)")
    expect(newest).to_contain_text("admin")
    go(page, f"{tenant}&before=2&after=1")
    grid.get_by_label("Select 1").check()
    page.get_by_role("button", name="Restore 1 row…").click()
    expect(page.get_by_text("These rows have not changed since.")).to_be_visible()
    restore = page.get_by_role("dialog").last.get_by_role("button", name="Restore", exact=True)
    expect(restore).to_be_disabled()


def test_a_tag_is_set_and_taken_off_in_the_list(page, tenant):
    """The menu of a version names it, and its badge shows it."""
    page.goto(tenant)
    version = page.get_by_role("article", name="Version 0")
    version.get_by_role("button", name="Actions of version 0").click()
    page.get_by_role("menuitem", name="Tag…").click()
    page.get_by_role("dialog", name="Tag version 0").get_by_label("Tag").fill("go-live")
    page.keyboard.press("Enter")
    expect(version.get_by_text("go-live")).to_be_visible()
    version.get_by_role("button", name="Actions of version 0").click()
    page.get_by_role("menuitem", name="Remove the tag go-live").click()
    expect(version.get_by_text("go-live")).to_be_hidden()


def test_a_job_that_ran_elsewhere_is_told_as_that(page):
    """From the history to a job which this service's queue never had: what it changed, and no error."""
    page.goto("/tenants/acme?panel=history")
    page.get_by_role("button", name="job-4710", exact=True).click()
    expect(page.get_by_text("This job did not run in this service.")).to_be_visible()
    page.get_by_role("button", name="What it changed").click()
    expect(page.get_by_role("grid", name="Rows of Invoice that differ")).to_contain_text("paid")
    page.goto("/tenants/acme?panel=jobs&job=nobody")
    expect(page.get_by_text("acme has no job nobody.")).to_be_visible()
    expect(page.get_by_role("alert")).to_have_count(0)


def test_the_first_version_of_a_stream_is_shown_where_there_is_none_before(page):
    """Its name in version 0 leads to the stream as of then; a row of its versions to what it changed."""
    page.goto("/tenants/acme?panel=history")
    first = page.get_by_role("article", name="Version 0", exact=True)
    first.get_by_role("button", name="Invoice", exact=True).click()
    expect(page.get_by_text("(version 0), read only")).to_be_visible()
    expect(page.get_by_role("grid", name="Rows of Invoice")).to_be_visible()
    page.goto("/tenants/acme?panel=snapshots&stream=Invoice&view=versions")
    row = page.get_by_role("grid", name="Versions of Invoice").get_by_role("row").filter(has_text="job-4710")
    row.get_by_role("gridcell", name="job-4710").click()
    expect(page.get_by_role("grid", name="Rows of Invoice that differ")).to_contain_text("paid")


def test_a_narrow_screen_has_a_menu_for_each_version(page):
    """Where buttons have no room the same can be done from a menu."""
    page.set_viewport_size({"width": 390, "height": 800})
    page.goto("/tenants/acme?panel=snapshots&stream=Account&view=versions")
    page.get_by_role("button", name="Actions of version 0").click()
    with page.expect_download() as download:
        page.get_by_role("menuitem", name="CSV").click()
    assert download.value.path().read_text().splitlines()[1] == "000,City 0"


REFUSED = (
    ("/tenants/acme?panel=settings", "**/tenants/acme/policy", "Newest versions"),
    ("/tenants/acme?panel=settings", "**/tenants/acme/tags", "No tag yet."),
    ("/tenants/acme?panel=jobs&job=nobody", "**/tenants/acme/history?*", "acme has no job nobody."),
)


def test_a_part_that_was_refused_is_requested_again(page):
    """It says what went wrong; Try again shows it."""
    refusal = {"status": 422, "json": {"title": "The storage is away."}}
    for address, request, shown in REFUSED:
        page.route(request, lambda route: route.fulfill(**refusal))
        page.goto(address)
        alert = page.get_by_role("alert").filter(has_text="The storage is away.")
        expect(alert).to_be_visible()
        expect(page.get_by_text(shown)).to_have_count(0)
        page.unroute(request)
        alert.get_by_role("button", name="Try again").click()
        expect(alert).to_have_count(0)
        expect(page.get_by_text(shown)).to_be_visible()


def test_a_part_that_does_not_load_leaves_the_rest_of_the_page(page):
    """The service has another console now: said in the panel, which stays; loaded again it is there."""
    gone = "**/assets/StreamPage-*"
    page.goto("/tenants/acme?panel=snapshots")
    page.get_by_role("grid", name="Snapshots").wait_for()
    page.route(gone, lambda route: route.fulfill(status=404))
    page.get_by_role("gridcell", name="Stream Invoice").click()
    expect(page.get_by_role("alert")).to_contain_text("could not be loaded")
    expect(page.get_by_role("tab", name="History")).to_be_visible()
    page.unroute(gone)
    page.get_by_role("button", name="Load the page again").click()
    expect(page.get_by_role("grid", name="Rows of Invoice")).to_be_visible()


@pytest.fixture(scope="module")
def long(store):
    """A tenant with 200 versions of a stream, of which the 100th dropped a file that the 50th wrote."""
    tenant = store.tenant("history-long", create=True)
    for version in range(200):
        with tenant.job(f"job-{version}", who="sync") as job:
            job.stream("Rate").update(pa.table({"Id": ["a", "b"], "Value": [version, 0]}), "Id")
            if version == 50:
                job.files.write("notes.txt", b"as it was")
            if version == 100:
                job.files.write("notes.txt", b"as it is")
    return tenant


def test_two_hundred_versions_are_some_that_are_seen(page, long):
    """Of the timeline those entries exist that are in view; at its end the older ones come by themselves."""
    page.goto("/tenants/history-long?panel=history")
    timeline = page.get_by_role("region", name="Versions")
    expect(timeline.get_by_role("article", name="Version 199")).to_be_visible()
    oldest = timeline.get_by_role("article", name="Version 0", exact=True)
    for _ in range(40):
        assert timeline.get_by_role("article").count() < 60
        if oldest.count():
            break
        timeline.evaluate("one => one.scrollBy(0, 3000)")
        page.wait_for_timeout(100)
    expect(oldest).to_be_visible()
    timeline.get_by_role("checkbox", name="Select version 0", exact=True).check()
    timeline.evaluate("one => one.scrollTo(0, 0)")
    timeline.get_by_role("checkbox", name="Select version 199").check()
    page.get_by_role("button", name="Compare", exact=True).click()
    expect(page.get_by_role("grid", name="Rows of Rate that differ").locator("ins")).to_have_text("199")


def test_any_two_versions_of_a_stream_are_compared_from_its_versions(page, long, picture):
    """Two are ticked, of which a third one takes the place of the first; the rows that differ are shown."""
    page.goto("/tenants/history-long?panel=snapshots&stream=Rate&view=versions")
    grid = page.get_by_role("grid", name="Versions of Rate")
    for version in (199, 198, 190):
        grid.get_by_label(f"Select version {version}").check()
    expect(grid.get_by_label("Select version 199")).not_to_be_checked()
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        picture(page, f"versions-{scheme}")
    page.get_by_role("button", name="Compare 190 with 198").click()
    differing = page.get_by_role("grid", name="Rows of Rate that differ")
    expect(differing.locator("del")).to_have_text("190")
    expect(differing.locator("ins")).to_have_text("198")


def test_a_changed_cell_shows_both_values_whole(page, store, picture):
    """Old above new, in the page and in the dialog that restores: neither is cut off, whatever the width."""
    stream = store.tenant("history-cells", create=True).stream("Invoice")
    for hour, total in ((8, 4780.61), (19, 47805.25)):
        moments = pa.array([datetime(2026, 11, 20, hour, 5, 9, tzinfo=UTC)] * 2)
        stream.update(pa.table({"Id": ["a", "b"], "Total": [total, total + 1], "Due": moments}), "Id")
    page.goto("/tenants/history-cells?panel=history&before=0&after=1")
    grid = page.get_by_role("grid", name="Rows of Invoice that differ")
    grid.get_by_label("Select all", exact=True).click()
    dialog = page.get_by_role("dialog", name="Undo 2 rows of Invoice in version 1")
    for width in (390, 1440):
        page.set_viewport_size({"width": width, "height": 800})
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            expect(grid.locator("del").filter(has_text="4780.61")).to_be_visible()
            picture(page, f"difference-{width}-{scheme}")
        assert cells_cut(grid) == []
        page.get_by_role("button", name="Undo 2 rows…").click()
        expect(dialog.locator("ins").first).to_be_visible()
        picture(page, f"difference-undo-{width}")
        assert cells_cut(dialog) == []
        page.keyboard.press("Escape")
        expect(dialog).to_have_count(0)


def cells_cut(place):
    """Return the changed cells whose values are cut off or beside each other."""
    return place.locator(".cell-changed").evaluate_all(
        """all => all.filter((one) => {
            const [old, fresh] = one.children;
            const isCut = [old, fresh].some((value) => value.scrollWidth > value.clientWidth + 1);
            return isCut || fresh.offsetTop < old.offsetTop + old.offsetHeight;
        }).map((one) => one.textContent)"""
    )


def test_what_is_restored_is_what_is_looked_at(page, long, picture):
    """From a stream's versions that stream, from a file's history that file; everything on request."""
    page.goto("/tenants/history-long?panel=snapshots&stream=Rate&view=versions")
    grid = page.get_by_role("grid", name="Versions of Rate")
    grid.get_by_role("row").filter(has_text="job-198").get_by_role("button", name="Restore…").click()
    dialog = page.get_by_role("dialog", name="Restore Rate as of version 198")
    expect(dialog.locator("ins")).to_have_text("198")
    dialog.get_by_role("button", name="Cancel").click()
    go(page, "/tenants/history-long?panel=snapshots&file=notes.txt")
    page.get_by_role("button", name="Versions", exact=True).click()
    page.get_by_role("button", name="Actions of version 50").click()
    expect(page.get_by_role("menuitem", name="Restore everything…")).to_be_visible()
    picture(page, "restore-scoped")
    page.get_by_role("menuitem", name="Restore notes.txt…").click()
    dialog = page.get_by_role("dialog", name="Restore notes.txt as of version 50")
    expect(dialog.get_by_text("Restored files: notes.txt")).to_be_visible()
    dialog.get_by_role("button", name="Restore", exact=True).click()
    expect(page.get_by_text("Restored as version 200.")).to_be_visible()
    assert long.files.read("notes.txt") == b"as it was"
    assert long.stream("Rate").read(as_="arrow")["Value"].to_pylist() == [199, 0]


def test_several_versions_of_one_stream_are_undone_alone(page, store):
    """Where the history is of one stream the title names it; without the filter nothing is ticked."""
    tenant = store.tenant("history-filtered", create=True)
    for city in ("Bern", "Basel", "Chur"):
        with tenant.job() as job:
            for name in ("Account", "Lead"):
                job.stream(name).update(pa.table({"Id": [1], "City": [city]}), "Id")
    page.goto("/tenants/history-filtered?panel=history&stream=Account")
    for version in (1, 2):
        page.get_by_role("checkbox", name=f"Select version {version}").check()
    page.get_by_role("button", name="Undo 1 to 2…").click()
    dialog = page.get_by_role("dialog", name="Undo Account in versions 1 to 2")
    expect(dialog).to_contain_text("1 row gets old values")
    dialog.get_by_role("button", name="Cancel").click()
    page.get_by_role("button", name="Remove the filter Account").click()
    expect(page.get_by_text("Tick two versions to compare them.")).to_be_visible()
    for version in (1, 2):
        expect(page.get_by_role("checkbox", name=f"Select version {version}")).not_to_be_checked()
