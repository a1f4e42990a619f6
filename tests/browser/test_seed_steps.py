"""The seed's steps in its words: Tenants, a tenant, Snapshots; Upload, Create folder, Download, Delete."""

import re
import zipfile

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.browser


def open_snapshots(page, tenant="acme"):
    """The steps that the seed names, one after the other."""
    page.goto("/")
    page.get_by_role("navigation", name="Main").get_by_role("link", name="Tenants").click()
    page.get_by_label("Search tenants").fill(tenant)
    page.get_by_role("grid", name="Tenants").get_by_role("gridcell", name=tenant, exact=True).click()
    panel = page.get_by_role("dialog", name=tenant)
    panel.get_by_role("tab", name="Snapshots").click()
    return panel


def test_a_tenants_snapshots_are_found_as_the_seed_says(page, picture):
    """Tenants in the left navigation, a click on the tenant, a panel that slides in, the Snapshots tab."""
    panel = open_snapshots(page)
    names = panel.get_by_role("grid", name="Snapshots")
    for name in ("Account", "Invoice", "tenant-config.json", "mappings"):
        expect(
            names.get_by_role("gridcell", name=re.compile(f"^(File|Stream|Folder) {name}$"))
        ).to_be_visible()
    for button in ("Upload", "Create folder", "Download", "Delete"):
        expect(panel.get_by_role("button", name=button, exact=True)).to_be_visible()
    picture(page, "snapshots")
    page.keyboard.press("Escape")
    expect(panel).to_be_hidden()
    assert "/tenants?" in page.url


def test_files_are_uploaded_into_a_folder_and_downloaded(page, tmp_path):
    """Create folder, open it, Upload, Download: the same bytes come back, several of them as a zip."""
    panel = open_snapshots(page, "globex")
    panel.get_by_role("button", name="Create folder").first.click()
    page.get_by_role("dialog", name="Create folder").get_by_label("Name").fill("reports")
    page.keyboard.press("Enter")
    panel.get_by_role("gridcell", name="Folder reports").click()
    expect(panel.get_by_text("This folder is empty.")).to_be_visible()
    for name in ("a.bin", "b.bin"):
        (tmp_path / name).write_bytes(bytes(range(256)) * 7 + name.encode())
    panel.get_by_label("Files to upload").set_input_files([tmp_path / "a.bin", tmp_path / "b.bin"])
    panel.get_by_role("gridcell", name="File b.bin").wait_for()
    assert "path=reports" in page.url
    panel.get_by_label("Select a.bin").check()
    with page.expect_download() as one:
        panel.get_by_role("button", name="Download").first.click()
    assert (tmp_path / "a.bin").read_bytes() == one.value.path().read_bytes()
    panel.get_by_label("Select all").check()
    with page.expect_download() as both:
        panel.get_by_role("button", name="Download").first.click()
    with zipfile.ZipFile(both.value.path()) as bundle:
        assert set(bundle.namelist()) == {"reports/a.bin", "reports/b.bin"}
        assert (tmp_path / "b.bin").read_bytes() == bundle.read("reports/b.bin")


def test_a_file_is_deleted_at_once_and_brought_back_by_undo(page, served):
    """Delete asks nothing for one file; Undo has it back with its bytes, beside what is newer."""
    panel = open_snapshots(page)
    panel.get_by_label("Select readme.txt").check()
    panel.get_by_role("button", name="Delete").first.click()
    file = panel.get_by_role("gridcell", name="File readme.txt")
    expect(file).to_be_hidden()
    page.get_by_role("button", name="Undo").click()
    expect(file).to_be_visible()
    file.click()
    expect(panel.get_by_label("Content of readme.txt")).to_contain_text("from the ledger")
    address = f"{served.url}/api/v1/environments/default/tenants/customer-0016/files/mine.txt"
    origin = {"Origin": served.url}
    page.request.put(address, data="first", headers=origin)
    panel = open_snapshots(page, "customer-0016")
    panel.get_by_label("Select mine.txt").check()
    panel.get_by_role("button", name="Delete").first.click()
    undo = page.get_by_role("button", name="Undo")
    expect(undo).to_be_visible()
    page.request.put(address, data="theirs", headers=origin)
    undo.click()
    refusal = page.get_by_role("alert").filter(has_text="Something exists there already.")
    expect(refusal).to_contain_text("changed it at")
    refusal.get_by_role("button", name="Keep both").click()
    expect(panel.get_by_role("gridcell", name="File mine (2).txt")).to_be_visible()
    assert page.request.get(address).text() == "theirs"
    assert page.request.get(address.replace("mine", "mine (2)")).text() == "first"


def test_a_folder_goes_in_one_version_and_undo_brings_it_back(page, served):
    """The question names it; all its files go as one version of the tenant, and come back as one."""
    place = f"{served.url}/api/v1/environments/default/tenants/customer-0003"
    for name in ("a.txt", "b.txt"):
        page.request.put(f"{place}/files/export/{name}", data=name, headers={"Origin": served.url})
    panel = open_snapshots(page, "customer-0003")
    panel.get_by_label("Select export").check()
    panel.get_by_role("button", name="Delete", exact=True).first.click()
    page.get_by_role("dialog", name="Delete 2 files?").get_by_role("button", name="Delete").click()
    expect(panel.get_by_role("gridcell", name="Folder export")).to_be_hidden()
    assert page.request.get(f"{place}/overview").json()["version"] == 2
    page.get_by_role("button", name="Undo").click()
    expect(panel.get_by_role("gridcell", name="Folder export")).to_be_visible()
    assert tuple(page.request.get(f"{place}/overview").json()[name] for name in ("version", "files")) == (
        3,
        2,
    )


def test_a_file_is_renamed_and_moved(page, served):
    """One file or folder selected: another path, with the folders that it needs; Undo takes it back."""
    place = f"{served.url}/api/v1/environments/default/tenants/customer-0004"
    page.request.put(f"{place}/files/old.txt", data="kept", headers={"Origin": served.url})
    panel = open_snapshots(page, "customer-0004")
    panel.get_by_label("Select old.txt").check()
    panel.get_by_role("button", name="Rename or move").click()
    dialog = page.get_by_role("dialog", name="Rename or move old.txt")
    dialog.get_by_label("Path").fill("archive/new.txt")
    dialog.get_by_role("button", name="Move").click()
    panel.get_by_role("gridcell", name="Folder archive").click()
    expect(panel.get_by_role("gridcell", name="File new.txt")).to_be_visible()
    assert page.request.get(f"{place}/files/archive/new.txt").text() == "kept"
    panel.get_by_role("navigation", name="Folders").get_by_role("button", name="All").click()
    panel.get_by_label("Select archive").check()
    panel.get_by_role("button", name="Rename or move").click()
    dialog = page.get_by_role("dialog", name="Rename or move archive")
    dialog.get_by_label("Path").fill("past/2026")
    dialog.get_by_role("button", name="Move").click()
    expect(panel.get_by_role("gridcell", name="Folder past")).to_be_visible()
    assert page.request.get(f"{place}/files/past/2026/new.txt").text() == "kept"
    page.get_by_role("alert").filter(has_text="Moved to past/2026").get_by_role("button", name="Undo").click()
    expect(panel.get_by_role("gridcell", name="Folder archive")).to_be_visible()


def test_a_name_that_is_there_is_asked_about(page, tmp_path):
    """Of the same name: keeping both gives the new file a name of its own, nothing is replaced unasked."""
    panel = open_snapshots(page, "customer-0001")
    file = tmp_path / "rates.txt"
    for text in ("first", "second"):
        file.write_text(text)
        panel.get_by_label("Files to upload").set_input_files([file])
        panel.get_by_role("gridcell", name="File rates.txt").wait_for()
    panel.get_by_role("button", name="Keep both").click()
    panel.get_by_role("gridcell", name="File rates (2).txt").wait_for()
    panel.get_by_role("gridcell", name="File rates.txt").click()
    expect(panel.get_by_label("Content of rates.txt")).to_contain_text("first")


def test_text_that_is_no_json_cannot_be_saved(page):
    """The place of the mistake is told while one types, and there is nothing to save."""
    page.goto("/tenants/acme?panel=snapshots&file=tenant-config.json")
    page.get_by_label("Content of tenant-config.json").click()
    page.keyboard.press("Control+End")
    page.keyboard.type("}")
    expect(page.get_by_text(re.compile("Invalid JSON: line"))).to_be_visible()
    expect(page.get_by_role("button", name="Save")).to_be_disabled()
