"""People in the console: invited, changed, disabled, signed out; a password is its owner's to set."""

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.browser
FIRST, SECOND = "correct horse battery", "another long password"


@pytest.fixture
def invited(page):
    """A function that invites a person in the console: the address that is shown once."""

    def invite(name, role="viewer"):
        page.goto("/people")
        page.get_by_role("button", name="Invite a person").click()
        dialog = page.get_by_role("dialog", name="Invite a person")
        dialog.get_by_label("Name").fill(name)
        dialog.get_by_role("combobox", name="Role").click()
        page.get_by_role("option", name=role).click()
        dialog.get_by_role("button", name="Invite", exact=True).click()
        shown = page.get_by_role("dialog", name="The invitation is shown this once")
        link = shown.locator("pre").inner_text()
        page.keyboard.press("Escape")
        expect(shown).to_have_count(0)
        return link

    return invite


def person_row(page, name):
    """The row of a person."""
    return page.get_by_role("grid", name="People").get_by_role("row").filter(has_text=name)


def sign_in(page, name, password):
    """Fill in the form of the page for signing in, and send it."""
    page.get_by_role("textbox", name="Name").fill(name)
    page.locator("input[type=password]").fill(password)
    page.get_by_role("button", name="Sign in").click()


def test_who_is_invited_sets_a_password_and_signs_in(page, visit, invited, picture):
    """The address works once; what the role does not permit is not shown."""
    link = invited("grace")
    picture(page, "people")
    guest = visit(None)
    guest.goto(link)
    password = guest.get_by_label("New password")
    password.fill("short")
    guest.get_by_role("button", name="Set password").click()
    assert password.evaluate("field => field.validity.valid") is False
    password.fill(FIRST)
    picture(guest, "invitation")
    guest.get_by_role("button", name="Set password").click()
    expect(guest.get_by_role("button", name="Sign in")).to_be_visible()
    sign_in(guest, "grace", FIRST)
    expect(guest.get_by_role("link", name="Tenants")).to_be_visible()
    expect(guest.get_by_role("link", name="People")).to_have_count(0)

    again = visit(None)
    again.goto(link)
    again.get_by_label("New password").fill(SECOND)
    again.get_by_role("button", name="Set password").click()
    expect(again.get_by_role("alert")).to_contain_text("not valid")


def test_a_person_is_changed_disabled_and_enabled(page, invited):
    """Role and limits by one dialog; a disabled person has no password to reset."""
    invited("heidi")
    row = person_row(page, "heidi")
    row.get_by_role("button", name="Change: heidi").click()
    dialog = page.get_by_role("dialog", name="Change heidi")
    dialog.get_by_role("combobox", name="Role").click()
    page.get_by_role("option", name="editor").click()
    dialog.get_by_label("Tenants").first.fill("acme")
    page.keyboard.press("Enter")
    dialog.get_by_role("button", name="Change", exact=True).click()
    expect(dialog).to_have_count(0)
    expect(row).to_contain_text("editor")
    expect(row).to_contain_text("acme")

    row.get_by_role("button", name="Disable").click()
    page.get_by_role("dialog", name="Disable heidi?").get_by_role("button", name="Disable").click()
    expect(row).to_contain_text("disabled")
    expect(row.get_by_role("button", name="Reset password")).to_have_count(0)
    row.get_by_role("button", name="Enable").click()
    expect(row.get_by_role("button", name="Reset password")).to_be_visible()


def test_nobody_changes_or_disables_themselves(page):
    """A service without an admin could not be changed by anybody."""
    page.goto("/people")
    own = person_row(page, "(you)")
    expect(own.get_by_role("button", name="Sessions")).to_be_visible()
    expect(own.get_by_role("button", name="Change")).to_have_count(0)
    expect(own.get_by_role("button", name="Disable")).to_have_count(0)


def test_a_password_is_changed_by_its_owner_and_sessions_are_ended(page, visit, invited, picture):
    """The wrong old one is told; who changed it stays signed in; an admin sees the session and ends it."""
    link = invited("ivan")
    guest = visit(None)
    guest.goto(link)
    guest.get_by_label("New password").fill(FIRST)
    guest.get_by_role("button", name="Set password").click()
    sign_in(guest, "ivan", FIRST)
    guest.get_by_role("button", name="Change password").click()
    dialog = guest.get_by_role("dialog", name="Change password")
    dialog.get_by_role("textbox", name="Current password").fill("a wrong password")
    dialog.get_by_label("New password").fill(SECOND)
    dialog.get_by_role("button", name="Change").click()
    expect(dialog.get_by_role("alert")).to_contain_text("current password is another")
    guest.wait_for_timeout(500)  # a dialog to sign in again would have to be loaded
    expect(guest.get_by_role("dialog")).to_have_count(1)
    dialog.get_by_role("textbox", name="Current password").fill(FIRST)
    dialog.get_by_role("button", name="Change").click()
    expect(dialog).to_have_count(0)
    guest.reload()
    expect(guest.get_by_role("link", name="Tenants")).to_be_visible()

    page.goto("/people")
    person_row(page, "ivan").get_by_role("button", name="Sessions").click()
    sessions = page.get_by_role("dialog", name="Sessions of ivan")
    expect(sessions.get_by_role("row")).to_have_count(2)
    picture(page, "sessions")
    sessions.get_by_role("button", name="End session").click()
    expect(sessions).to_contain_text("signed in nowhere")
    guest.reload()
    expect(guest.get_by_role("button", name="Sign in")).to_be_visible()


def test_a_reset_password_is_an_invitation(page, visit, invited):
    """The old one is valid until the new one is set."""
    link = invited("judy")
    guest = visit(None)
    guest.goto(link)
    guest.get_by_label("New password").fill(FIRST)
    guest.get_by_role("button", name="Set password").click()
    expect(guest.get_by_role("button", name="Sign in")).to_be_visible()
    person_row(page, "judy").get_by_role("button", name="Reset password").click()
    reset = page.get_by_role("dialog", name="The invitation is shown this once").locator("pre").inner_text()
    guest.goto("/overview")
    sign_in(guest, "judy", FIRST)
    expect(guest.get_by_role("link", name="Tenants")).to_be_visible()
    other = visit(None)
    other.goto(reset)
    other.get_by_label("New password").fill(SECOND)
    other.get_by_role("button", name="Set password").click()
    sign_in(other, "judy", SECOND)
    expect(other.get_by_role("link", name="Tenants")).to_be_visible()
