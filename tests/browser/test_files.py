"""A file in the browser: rows of a CSV file as a table, search, and what is typed while others save."""

import re

import pytest
from playwright.sync_api import expect
from tests.browser.navigation import go
from tests.browser.saving import saving

pytestmark = pytest.mark.browser
LIGHTNESS = """(element, property) => {
    const [red, green, blue] = getComputedStyle(element)[property].match(/[0-9.]+/g).map(Number);
    return 0.21 * red + 0.72 * green + 0.07 * blue;
}"""
PANEL = "/tenants/customer-0005?panel=snapshots"
SVG = """<svg xmlns="http://www.w3.org/2000/svg" width="40" height="30">
<script>window.hasRun = 1; parent.hasRun = 1</script><circle cx="20" cy="15" r="12" fill="teal"/></svg>"""


@pytest.fixture
def keep(page, served):
    """Keeps a file of the tenant, as somebody else would."""

    def write(path, text):
        url = f"{served.url}/api/v1/environments/default/tenants/customer-0005/files/{path}"
        answer = page.request.put(url, data=text, headers={"Origin": served.url})
        assert answer.ok, answer.text()
        return url

    return write


def test_a_csv_file_is_a_table_that_is_searched(page, keep):
    """Rows with their quotes resolved; the search is in the address; as text it can be edited."""
    keep("rates.csv", 'Id,Name\n1,"Bern, CH"\n2,Basel\n')
    page.goto(f"{PANEL}&file=rates.csv")
    grid = page.get_by_role("grid", name="Rows of rates.csv")
    expect(grid).to_contain_text("Bern, CH")
    page.get_by_label("Search this file").fill("basel")
    expect(page.get_by_text("1 of 2 rows")).to_be_visible()
    page.goto(page.url)
    expect(grid).not_to_contain_text("Bern")
    page.locator("label").filter(has_text="Edit as text").click()
    expect(page.get_by_label("Content of rates.csv")).to_contain_text('1,"Bern, CH"')
    page.get_by_label("Search rates.csv").click()
    expect(page.get_by_placeholder("Find")).to_be_focused()


def test_what_is_typed_stays_while_others_save_and_both_are_joined(page, keep):
    """The dialog has their changes of other lines on the right already; of the same line both texts."""
    url = keep("plan.json", '{\n  "a": 1,\n  "b": 2\n}\n')
    page.goto(f"{PANEL}&file=plan.json")
    text = page.get_by_label("Content of plan.json")
    text.get_by_text("2").dblclick()
    page.keyboard.type("22")
    keep("plan.json", '{\n  "a": 11,\n  "b": 2\n}\n')
    expect(page.get_by_text("This file was changed while you edited it.")).to_be_visible()
    expect(text).to_contain_text("22")
    page.get_by_role("button", name="Save").click()
    dialog = page.get_by_role("dialog", name="plan.json was changed while you edited it")
    expect(dialog.get_by_text("both changes, which are in different lines")).to_be_visible()
    with saving(page, "plan.json"):
        dialog.get_by_role("button", name="Save the right text").click()
    assert page.request.get(url).json() == {"a": 11, "b": 22}
    expect(text).to_contain_text('"a": 11')
    expect(page.get_by_role("button", name="Save")).to_be_disabled()
    text.get_by_text("22").dblclick()
    page.keyboard.type("33")
    keep("plan.json", '{\n  "a": 11,\n  "b": 44\n}\n')
    expect(page.get_by_text("This file was changed while you edited it.")).to_be_visible()
    page.get_by_role("button", name="Save").click()
    expect(dialog.get_by_label("Left text")).to_contain_text("44")
    expect(dialog.get_by_label("Right text")).to_contain_text("33")
    with saving(page, "plan.json"):
        dialog.get_by_role("button", name="Save the right text").click()
    assert page.request.get(url).json() == {"a": 11, "b": 33}


def test_a_file_that_somebody_else_saves_is_shown_anew(page, keep):
    """As long as nothing is typed, the newest text is shown, also if it came before the rest of the page."""
    keep("news.txt", "first")
    held = []
    overview = "**/tenants/customer-0005/overview**"
    page.route(overview, lambda route: held.insert(0, route))
    page.goto(f"{PANEL}&file=news.txt")
    text = page.get_by_label("Content of news.txt")
    expect(text).to_contain_text("first")
    keep("news.txt", "second")
    while held:
        held.pop().continue_()
    page.unroute(overview)
    expect(text).to_contain_text("second")
    keep("news.txt", "third")
    expect(text).to_contain_text("third")
    expect(page.get_by_text("This file was changed while you edited it.")).to_have_count(0)


def test_a_list_that_comes_late_leaves_the_focus_in_the_dialog_that_is_open(page):
    """A slow list took it, so that what was typed went nowhere and Esc lost the button."""
    held = []
    listing = re.compile(r"/tenants/acme/files(\?|$)")
    page.route(listing, lambda route: held.append(route))  # noqa: PLW0108 - Playwright counts its parameters
    page.goto("/tenants/acme?panel=snapshots")
    button = page.get_by_role("button", name="Create folder").first
    button.click()
    name = page.get_by_role("dialog", name="Create folder").get_by_label("Name")
    expect(name).to_be_focused()
    while held:
        held.pop().continue_()
    page.unroute(listing)
    expect(page.get_by_role("grid", name="Snapshots", include_hidden=True)).to_be_visible()
    expect(name).to_be_focused()
    page.keyboard.press("Escape")
    expect(button).to_be_focused()


def test_what_was_revealed_is_hidden_after_its_time_but_not_while_unsaved(visit, served):
    """Nothing of it is shown before Reveal, and the audit has its reader; an unsaved change keeps it open."""
    page = visit(alone=True)  # the clock is the context's
    page.clock.install()
    page.goto("/tenants/acme?panel=snapshots&file=api-config.json")
    expect(page.get_by_text("This file is sealed.")).to_be_visible()
    page.get_by_role("button", name="Reveal").click()
    text = page.get_by_label("Content of api-config.json")
    expect(text).to_contain_text("the secret")
    expect(page.get_by_text("It is hidden again in")).to_be_visible()
    text.click()
    page.keyboard.type(" ")
    page.clock.run_for(60_000)
    expect(text).to_contain_text("the secret")
    assert page.evaluate("Object.keys(localStorage).filter((key) => key.includes('draft'))") == []
    page.get_by_role("button", name="Discard").click()
    page.clock.run_for(31_000)
    expect(page.get_by_text("This file is sealed.")).to_be_visible()
    expect(text).to_have_count(0)
    audit = f"{served.url}/api/v1/environments/default/tenants/acme/audit?action=file.unseal"
    assert page.request.get(audit).json()["entries"][0]["subject"] == "api-config.json"


def test_what_is_typed_survives_every_way_out(page, keep, picture):
    """Closing asks; what was left as a draft is there again, joined where the file was saved meanwhile."""
    url = keep("draft.txt", "one\ntwo\nthree\n")
    page.goto(f"{PANEL}&file=draft.txt")
    text = page.get_by_label("Content of draft.txt")
    text.get_by_text("three").dblclick()
    page.keyboard.type("3")
    question = page.get_by_role("dialog", name="draft.txt has unsaved changes")
    page.get_by_role("tab", name="History").click()
    picture(page, "unsaved-asked")
    question.get_by_role("button", name="Stay").click()
    expect(question).to_have_count(0)
    page.get_by_role("button", name="Close the panel").click()
    question.get_by_role("button", name="Leave, keep the draft").click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.goto(f"{PANEL}&file=draft.txt")
    expect(page.get_by_text("This is your draft, typed")).to_be_visible()
    expect(text).to_contain_text("3")
    page.goto("/tenants")
    keep("draft.txt", "1\ntwo\nthree\n")
    page.goto(f"{PANEL}&file=draft.txt")
    page.get_by_role("button", name="Show both").click()
    picture(page, "draft-joined")
    with saving(page, "draft.txt"):
        page.get_by_role("button", name="Save the right text").click()
    assert page.request.get(url).text() == "1\ntwo\n3\n"
    expect(page.get_by_role("button", name="Save")).to_be_disabled()
    expect(page.get_by_text("never saved")).to_have_count(0)


def test_a_session_that_ends_takes_nothing_that_is_typed(visit, keep, picture, served):
    """Signing in happens over the page, with the same key, and the save is sent again."""
    url = keep("typed.txt", "first")
    page = visit(alone=True)
    page.goto(f"{PANEL}&file=typed.txt")
    page.get_by_label("Content of typed.txt").click()
    page.keyboard.type("typed ")
    page.context.clear_cookies()
    page.get_by_role("button", name="Save").click()
    dialog = page.get_by_role("dialog", name="Your session has ended")
    picture(page, "session-ended")
    dialog.get_by_label("API key").fill(served.keys["admin"])
    dialog.get_by_role("button", name="Sign in").click()
    expect(dialog).to_have_count(0)
    with saving(page, "typed.txt"):
        page.get_by_role("button", name="Save").click()
    assert "typed" in page.request.get(url).text()


def test_what_is_typed_on_a_dark_page_is_seen(page, keep):
    """Caret and letters stand out from the dark ground, those of JSON and of a line as it was too."""
    keep("dark.json", '{"a": 1}')
    page.emulate_media(color_scheme="dark")
    page.goto(f"{PANEL}&file=dark.json")
    text = page.get_by_label("Content of dark.json")
    text.click()
    page.keyboard.press("Control+End")
    page.keyboard.press("ArrowLeft")
    page.keyboard.type(', "b": [true, null, "text"]')
    expect(text).to_contain_text('{"a": 1, "b": [true, null, "text"]}')
    light = text.evaluate(LIGHTNESS, "caretColor")
    assert light > 150, "The caret is dark on a dark ground."
    for item in text.locator("span").all():
        assert item.evaluate(LIGHTNESS, "color") > 150, item.inner_text()
    with saving(page, "dark.json"):
        page.keyboard.press("Control+s")


def test_the_first_lines_of_a_long_file_are_shown(page, keep):
    """Of a file above 5 MiB one MiB is read and shown, whole lines, as the table that it is; read only."""
    line = "x" * 97
    keep("long.csv", "Id,Note\n" + "".join(f"{number},{line}\n" for number in range(60_000)))
    page.goto(f"{PANEL}&file=long.csv")
    expect(page.get_by_role("note")).to_have_text(
        "These are the first lines, up to 1 MiB of 5.9 MiB. Download the file to see all of it."
    )
    grid = page.get_by_role("grid", name="Rows of long.csv")
    grid.focus()
    page.keyboard.press("End")
    expect(grid.locator("[data-active]")).to_contain_text(line)
    page.locator("label").filter(has_text="Text").click()
    expect(page.get_by_label("Content of long.csv")).to_have_attribute("aria-readonly", "true")
    expect(page.get_by_role("button", name="Save")).to_have_count(0)


def test_text_of_other_encodings_is_read_and_not_edited(page, keep):
    """The page names the encoding; saving would make it UTF-8 without a word."""
    page.goto("/overview")
    for encoding, name in (("latin-1", "Latin-1"), ("utf-16", "UTF-16"), ("utf-16-le", "UTF-16")):
        keep(f"{encoding}.csv", "Id,Ort\n1,Zürich\n".encode(encoding))
        go(page, f"{PANEL}&file={encoding}.csv")
        expect(page.get_by_role("grid", name=f"Rows of {encoding}.csv")).to_contain_text("Zürich")
        expect(page.get_by_role("note")).to_have_text(
            f"The file is encoded as {name}. Only UTF-8 files can be edited here."
        )
        page.locator("label").filter(has_text="Text").click()
        expect(page.get_by_label(f"Content of {encoding}.csv")).to_have_attribute("aria-readonly", "true")


def test_a_picture_is_shown_and_what_is_none_is_told(page, keep, picture):
    """With its size in pixels; scripts in it do not run; a file that only has the name is told."""
    keep("logo.svg", SVG)
    page.goto(f"{PANEL}&file=logo.svg")
    expect(page.get_by_role("img", name="Content of logo.svg")).to_be_visible()
    expect(page.get_by_text(re.compile("40 . 30 pixels"))).to_be_visible()
    assert page.evaluate("window.hasRun") is None
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        picture(page, f"picture-{scheme}")
    keep("broken.png", b"\x89PNG no more")
    go(page, f"{PANEL}&file=broken.png")
    expect(page.get_by_text("This file is not an image that the browser can show.")).to_be_visible()
