"""``freezeframe person``: made, invited, changed, disabled, signed out; each change is audited."""

import io
import json

import pytest

from freezeframe.cli.places.audited import opened_audit
from freezeframe.service.identity.people import People
from freezeframe.service.identity.people_administration import PeopleAdministration

PASSWORD = "correct horse battery"


@pytest.fixture
def ada(said, monkeypatch):
    """A person with a password: as it was printed."""
    monkeypatch.setattr("sys.stdin", io.StringIO(PASSWORD + "\n"))
    return said("person", "create", "ada")[1]


@pytest.fixture
def people(tmp_path):
    """The store's people and their administration, as its service has them."""
    with opened_audit(str(tmp_path / "store"), create=True) as found:
        database = found.control.database
        known = People(database, 1.0)
        yield known, PeopleAdministration(database, known, found.pepper)


def test_a_short_password_is_refused(said, monkeypatch):
    """It comes from standard input where there is no terminal, and is never printed."""
    monkeypatch.setattr("sys.stdin", io.StringIO("short\n"))
    refused, _ = said("person", "create", "ada")
    monkeypatch.setattr("sys.stdin", io.StringIO(PASSWORD + "\n"))
    code, made = said("person", "create", "ada", "--role", "admin")

    assert (refused, code, made["role"]) == (2, 0, "admin")
    assert "password" not in json.dumps(made)
    assert "invitation" not in made


def test_an_invitation_sets_the_password(said, people):
    """Of a new person, and of one who has forgotten it; the older one is worth nothing then."""
    _, made = said("person", "create", "eve", "--invite")
    known, administration = people
    administration.accept(made["invitation"], PASSWORD)
    _, again = said("person", "invite", "eve")
    administration.accept(again["invitation"], "another long password")

    assert again["name"] == "eve"
    assert known.verify("eve", "another long password").id == made["id"]


def test_roles_and_limits_are_changed(said, ada):
    """What is left out stays; --everywhere removes both limits."""
    _, limited = said("person", "change", "ada", "--env", "production", "--tenant", "acme", "--tenant", "b")
    _, raised = said("person", "change", "ada", "--role", "editor", "--tenant", "acme")
    _, freed = said("person", "change", "ada", "--everywhere")

    assert (ada["role"], limited["role"], raised["role"], freed["role"]) == (
        "viewer",
        "viewer",
        "editor",
        "editor",
    )
    assert (limited["environments"], limited["tenants"]) == (["production"], ["acme", "b"])
    assert (raised["environments"], raised["tenants"]) == (["production"], ["acme"])
    assert (freed["environments"], freed["tenants"]) == (None, None)


def test_a_disabled_person_is_enabled(said, ada, people):
    """The moment of the first time stays; the password is the one of before."""
    _, first = said("person", "disable", ada["name"])
    _, second = said("person", "disable", "ada")
    _, enabled = said("person", "enable", "ada")
    known, _ = people

    assert first["disabled"]
    assert (second["disabled"], enabled["disabled"]) == (first["disabled"], None)
    assert known.verify("ada", PASSWORD).id == ada["id"]


def test_sessions_are_listed_and_ended(said, ada, people):
    """One by its id, or all; the list never has a token."""
    known, administration = people
    tokens = [known.begin_session(known.named("ada")).token for _ in range(3)]
    _, listed = said("person", "sessions", "ada")
    _, one = said("person", "sign-out", "ada", "--session", listed[0]["id"])
    left = len(administration.sessions(ada["id"]))
    _, rest = said("person", "sign-out", "ada")

    assert (len(listed), one["sessions_ended"], left, rest["sessions_ended"]) == (3, 1, 2, 2)
    assert not any(token in json.dumps(listed) for token in tokens)
    assert said("person", "sessions", "ada") == (0, [])


def test_each_change_is_audited(said, ada):
    """By the names that the service uses."""
    for words in (("invite",), ("change", "--role", "editor"), ("disable",), ("enable",), ("sign-out",)):
        said("person", words[0], ada["name"], *words[1:])
    _, told = said("audit", "list")

    assert [one["action"] for one in told[::-1]] == [
        "person.create",
        "person.invite",
        "person.change",
        "person.disable",
        "person.enable",
        "session.end",
    ]
    assert "invitation" not in json.dumps(told).replace("person.invite", "")


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("change", "ada"), 2),
        (("change", "ada", "--everywhere", "--tenant", "acme"), 2),
        (("change", "ada", "--role", "king"), 2),
        (("change", "ada", "--env", "../x"), 2),
        (("change", "bob", "--role", "editor"), 4),
        (("invite", "bob"), 4),
        (("disable", "bob"), 4),
        (("enable", "bob"), 4),
        (("sessions", "bob"), 4),
        (("sign-out", "bob"), 4),
    ],
)
def test_a_change_that_cannot_be(said, ada, arguments, code):
    """Nothing, both, an unknown role, environment or person: told with a remedy, and nobody is changed."""
    found, told = said("person", *arguments)
    _, listed = said("person", "list")

    assert code == found
    assert told["error"]["remedy"]
    assert listed == [ada]


def test_a_disabled_person_is_not_invited(said, ada):
    """An invitation would be worth nothing; the message says what to do first."""
    said("person", "disable", ada["name"])
    code, told = said("person", "invite", "ada")
    assert (code, "enable the person first" in told["error"]["remedy"]) == (2, True)
