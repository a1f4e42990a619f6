"""Uploads: dropped, asked about, large, and interrupted by the end of the service."""

import functools
import hashlib
import os
import re
import time
from urllib.parse import urlsplit

import psutil
import pytest
from playwright.sync_api import expect
from tests.browser.navigation import go
from tests.browser.process import Process
from tests.waiting import until

from freezeframe.control.database import ControlDatabase, database_url
from freezeframe.service.access.access import Stores
from freezeframe.service.access.keys import Keys
from freezeframe.settings import load_settings

pytestmark = pytest.mark.browser
MEBIBYTE = 1024**2
FLAT_BYTES = 200 * MEBIBYTE
DROP = """([element, files]) => {
    const data = new DataTransfer();
    for (const [name, text] of files) data.items.add(new File([text], name));
    for (const kind of ["dragenter", "dragover", "drop"])
        element.dispatchEvent(new DragEvent(kind, { dataTransfer: data, bubbles: true, cancelable: true }));
}"""


def drop_zone(page):
    """The list of a panel that is there, filled and at rest: what still slides in is soon elsewhere."""
    page.get_by_role("button", name="Upload", exact=True).wait_for()
    zone = page.locator(".drop-zone")
    zone.hover(trial=True)
    return zone


def test_dropped_files_appear_and_known_names_are_asked_about_once(page, picture):
    """Files dropped on the list are uploaded; of names that are there all are settled by one answer."""
    page.goto("/tenants/customer-0020?panel=snapshots")
    zone = drop_zone(page)
    grid = page.get_by_role("grid", name="Snapshots")
    page.evaluate(DROP, [zone.element_handle(), [[f"{name}.txt", "first"] for name in "abc"]])
    expect(grid).to_have_attribute("aria-rowcount", "4")
    page.evaluate(DROP, [zone.element_handle(), [[f"{name}.txt", "second"] for name in "abcd"]])
    expect(page.get_by_text("3 already exist:")).to_be_visible()
    picture(page, "names-asked")
    page.get_by_role("button", name="Replace all").click()
    expect(page.get_by_text("4 uploaded")).to_be_visible()
    expect(grid).to_have_attribute("aria-rowcount", "5")
    page.get_by_role("gridcell", name="File a.txt").click()
    expect(page.get_by_label("Content of a.txt")).to_contain_text("second")


def test_a_file_that_somebody_replaced_meanwhile_is_asked_about_again(page, store, picture):
    """Replace rests on the file that was shown: who saved in between is named, nothing is lost."""
    tenant = store.tenant("customer-0021", create=True)
    files = tenant.files
    files.write("shared.txt", b"first")
    page.goto("/tenants/customer-0021?panel=snapshots")
    page.evaluate(DROP, [drop_zone(page).element_handle(), [["shared.txt", "my text"]]])
    uploads = page.get_by_role("region", name="Uploads", exact=True)
    expect(uploads.get_by_text("Yours: 7 B")).to_be_visible()
    with tenant.job(who="carla") as job:
        job.files.write("shared.txt", b"of a colleague")

    uploads.get_by_role("button", name="Replace", exact=True).click()
    expect(uploads.get_by_text("There: 14 B, by carla")).to_be_visible()
    assert b"of a colleague" == files.read("shared.txt")
    uploads.get_by_role("button", name="Compare").click()
    dialog = page.get_by_role("dialog", name="shared.txt: there and yours")
    expect(dialog.get_by_text("of a colleague")).to_be_visible()
    expect(dialog.get_by_text("my text")).to_be_visible()
    picture(page, "upload-compared")
    page.keyboard.press("Escape")
    picture(page, "upload-asked-again")
    uploads.get_by_role("button", name="Replace", exact=True).click()
    expect(page.get_by_text("1 uploaded")).to_be_visible()

    assert b"my text" == files.read("shared.txt")


def test_a_file_dropped_where_nothing_takes_it_changes_nothing(page):
    """Beside the list and on a file's view the browser is kept from leaving the page for the file."""
    heard = """([name, kind]) => {
        const data = new DataTransfer();
        data.items.add(new File(["text"], name));
        const event = new DragEvent(kind, { dataTransfer: data, bubbles: true, cancelable: true });
        document.querySelector(".panel-tabs").dispatchEvent(event);
        return [event.defaultPrevented, data.dropEffect];
    }"""
    page.goto("/overview")
    for address, shown in (
        ("panel=settings", page.get_by_role("region", name="Retention")),
        ("panel=snapshots&v=0", page.get_by_role("grid", name="Snapshots")),
        ("panel=snapshots&file=readme.txt", page.get_by_label("Content of readme.txt")),
    ):
        go(page, f"/tenants/acme?{address}")
        shown.wait_for()
        assert page.evaluate(heard, ["a.txt", "dragover"]) == [True, "none"]
        assert page.evaluate(heard, ["a.txt", "drop"]) == [True, "none"]
        expect(page.get_by_role("region", name="Uploads", exact=True)).to_have_count(0)


def test_a_whole_folder_that_is_dropped_keeps_its_paths(page, tmp_path):
    """A folder as file managers give it, read to the bottom."""
    folder = tmp_path / "maps"
    (folder / "deep").mkdir(parents=True)
    (folder / "first.txt").write_text("x")
    (folder / "deep" / "last.txt").write_text("deepest")
    (tmp_path / "beside.txt").write_text("x")
    page.goto("/tenants/customer-0022?panel=snapshots")
    box = drop_zone(page).bounding_box()
    drag = {
        "items": [],
        "files": [str(folder), str(tmp_path / "beside.txt")],
        "dragOperationsMask": 1,
    }
    place = {"x": box["x"] + box["width"] / 2, "y": box["y"] + box["height"] / 2}
    browser = page.context.new_cdp_session(page)
    for kind in ("dragEnter", "dragOver", "drop"):
        browser.send("Input.dispatchDragEvent", {"type": kind, "data": drag, **place})
    expect(page.get_by_text("3 uploaded")).to_be_visible()
    expect(page.get_by_role("gridcell", name="File beside.txt")).to_be_visible()
    page.get_by_role("gridcell", name="Folder maps").click()
    expect(page.get_by_role("grid", name="Snapshots")).to_have_attribute("aria-rowcount", "3")
    go(page, "/tenants/customer-0022?panel=snapshots&file=maps/deep/last.txt")
    expect(page.get_by_label("Content of maps/deep/last.txt")).to_contain_text("deepest")


def test_an_upload_that_failed_is_tried_again_and_one_under_way_is_cancelled(page, tmp_path):
    """What the service refused is told in the row; Try again sends it anew, Cancel stops it."""
    file = tmp_path / "a.txt"
    file.write_text("kept")
    place = "**/tenants/customer-0021/blobs**"
    page.route(place, lambda route: route.fulfill(status=413, body="<html>413</html>"))
    page.goto("/tenants/customer-0021?panel=snapshots")
    page.get_by_label("Files to upload").set_input_files(file)
    expect(page.get_by_text("A proxy refuses a body of this size")).to_be_visible()
    page.unroute(place)
    away = {"title": "The storage is away.", "cause": "It is full.", "remedy": "Free space."}
    page.route(place, lambda route: route.fulfill(status=422, json=away))
    page.get_by_role("button", name="Try again").click()
    expect(page.get_by_text("The storage is away.")).to_be_visible()
    expect(page.get_by_text("It is full. Free space.")).to_be_visible()
    page.unroute(place)
    page.get_by_role("button", name="Try again").click()
    expect(page.get_by_role("gridcell", name="File a.txt")).to_be_visible()
    page.route(place, lambda _: None)  # it is sent, and never answered
    file.rename(tmp_path / "b.txt")
    page.get_by_label("Files to upload").set_input_files(tmp_path / "b.txt")
    page.get_by_role("region", name="Uploads", exact=True).get_by_role(
        "button", name="Cancel", exact=True
    ).click()
    expect(page.get_by_text("0 uploaded")).to_be_visible()
    expect(page.get_by_role("gridcell", name="File b.txt")).to_have_count(0)


def test_an_upload_is_seen_from_everywhere_and_one_that_a_reload_cut_off_is_listed(page, tmp_path, picture):
    """Elsewhere a tray has it; the browser asks before the page goes, and afterwards its name is told."""
    file = tmp_path / "slow.txt"
    file.write_text("kept")
    place = "**/tenants/customer-0023/blobs**"
    page.route(place, lambda _: None)  # it is sent, and never answered
    page.goto("/tenants/customer-0023?panel=snapshots")
    page.get_by_label("Files to upload").set_input_files(file)
    tray = page.get_by_role("region", name="Uploads of all tenants")
    expect(page.get_by_role("button", name="Cancel all")).to_be_visible()
    expect(tray).to_have_count(0)
    page.get_by_role("button", name="Close the panel").click()
    expect(tray).to_contain_text("customer-0023: Uploading: 0 of 1 files")
    picture(page, "upload-tray")
    asked = []
    page.on("dialog", lambda dialog: (asked.append(dialog.type), dialog.accept()))
    page.reload()
    assert asked == ["beforeunload"]
    expect(tray).to_contain_text("slow.txt. Choose them again")
    page.set_viewport_size({"width": 390, "height": 800})
    page.emulate_media(color_scheme="dark")
    picture(page, "upload-tray-narrow")
    page.unroute(place)
    tray.get_by_role("link", name="Open customer-0023").click()
    page.get_by_label("Files to upload").set_input_files(file)
    expect(page.get_by_role("gridcell", name="File slow.txt")).to_be_visible()
    expect(tray).to_have_count(0)


@pytest.fixture
def restarting(tmp_path):
    """A service of one process and one tenant, to be ended in the middle of something."""
    root = tmp_path / "store"
    settings = load_settings(root=str(root))
    Stores(str(root), settings).environment("default").tenant("acme", create=True)
    database = ControlDatabase.open(database_url(settings, str(root)))
    key = Keys(database).create(scopes=["admin"]).key
    database.close()
    with Process(root, dict(os.environ), workers=1) as process:
        process.keys = {"admin": key}
        yield process


@pytest.mark.parametrize("mebibytes", [16, pytest.param(300, marks=pytest.mark.nightly)])
def test_a_large_file_is_cancelled_tried_again_over_a_restart_and_asked_about(
    browser, restarting, tmp_path, mebibytes
):
    """Begun anew when the service is there again, at flat memory (300 MB); then its name is taken."""
    service, size, file = restarting, mebibytes * MEBIBYTE, tmp_path / "big.bin"
    expected = invented(file, size)
    context = browser.new_context(base_url=service.url, viewport={"width": 1280, "height": 800})
    context.request.post(
        "/api/v1/session",
        data={"key": service.keys["admin"]},
        headers={"Origin": service.url},
        timeout=120_000,
    )
    page = context.new_page()
    page.goto("/tenants/acme?panel=snapshots")
    page.get_by_text("acme has no streams or files yet.").wait_for()
    region = page.get_by_role("region", name="Uploads", exact=True)
    network = context.new_cdp_session(page)
    send_at(network, size / 20)
    page.get_by_label("Files to upload").set_input_files(file)
    wait_for_bytes(service, size / 16)
    region.get_by_role("button", name="Cancel", exact=True).click()
    expect(page.get_by_text("0 uploaded")).to_be_visible()
    before = memory(service)
    page.get_by_label("Files to upload").set_input_files(file)
    wait_for_bytes(service, size / 16)
    service.kill()
    send_at(network, -1)
    service.start(urlsplit(service.url).port)
    most = highest_memory(service, page.get_by_role("gridcell", name="File big.bin"), seconds=240)
    expect(page.get_by_text(re.compile("1 uploaded"))).to_be_visible()
    (kept,) = context.request.get("/api/v1/environments/default/tenants/acme/files").json()["files"]
    assert (size, expected) == (kept["size"], kept["sha256"])
    assert most[0] - before[0] < FLAT_BYTES, "The service's memory grew with the file."
    assert most[1] - before[1] < FLAT_BYTES, "The browser's memory grew with the file."
    sent = []
    page.on("request", lambda item: sent.append(item.url) if "/blobs" in item.url else None)
    page.get_by_label("Files to upload").set_input_files(file)
    expect(page.get_by_text("already exists")).to_be_visible()
    assert sent == [], "Bytes were sent before the name was asked about."
    region.get_by_role("button", name="Skip").click()
    context.close()


def send_at(network, bytes_per_second):
    """Let the browser send no faster than that; -1: as fast as it can."""
    limits = {"offline": False, "latency": 0, "downloadThroughput": -1}
    network.send("Network.emulateNetworkConditions", {**limits, "uploadThroughput": bytes_per_second})


def wait_for_bytes(service, enough):
    """Wait until so many bytes of a file are there."""
    files = functools.partial(service.root.glob, "_freezeframe/uploads/*/*/*")
    until(lambda: any(path.stat().st_size > enough for path in files()))


def invented(file, size):
    """Write a file of random pieces with holes between them; its SHA-256."""
    digest, hole = hashlib.sha256(), bytes(MEBIBYTE)
    with file.open("wb") as content:
        for number in range(size // MEBIBYTE):
            piece = os.urandom(MEBIBYTE) if number % 8 == 0 else hole
            digest.update(piece)
            content.seek(number * MEBIBYTE)
            if number % 8 == 0:
                content.write(piece)
        content.truncate(size)
    return digest.hexdigest()


def memory(service):
    """What the service and the browser hold of the machine's memory, in bytes."""
    here = psutil.Process()
    chromium = [child for child in here.children(recursive=True) if "chrom" in child.name()]
    return psutil.Process(service.process.pid).memory_info().rss, sum(
        item.memory_info().rss for item in chromium
    )


def highest_memory(service, locator, seconds):
    """The highest memory of both until something can be seen."""
    end, most = time.monotonic() + seconds, (0, 0)
    while not locator.is_visible():
        assert time.monotonic() < end, "It was not to be seen in time."
        most = tuple(max(pair) for pair in zip(most, memory(service), strict=True))
        locator.page.wait_for_timeout(100)  # how often memory is looked at
    return most
