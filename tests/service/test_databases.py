"""Keys, sessions, the audit and kept answers on SQLite and on PostgreSQL."""

import hashlib
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import select
from tests.control.conftest import database_url, postgresql_server  # noqa: F401 - fixtures

from freezeframe.control.database import ControlDatabase
from freezeframe.control.tables import keys as table
from freezeframe.errors import AlreadyExists, NotAuthenticated
from freezeframe.service.access.audit import Audit, AuditScope
from freezeframe.service.access.keys import Keys
from freezeframe.service.access.sessions import Person, Sessions
from freezeframe.service.signing import ServiceSecret

pytestmark = pytest.mark.long

SECRET = ServiceSecret(b"p" * 32)
ACME = AuditScope("dev", "acme")


@pytest.fixture
def database(database_url):  # noqa: F811 - the fixture
    """A control database of each kind, at its newest version."""
    found = ControlDatabase.open(database_url)
    yield found
    found.close()


def test_an_audit_of_many_writers_is_whole(database):
    """Eight writers at once, for two tenants, make one chain without a gap."""
    audit = Audit(database, SECRET)
    with ThreadPoolExecutor(8) as pool:
        for number in range(40):
            pool.submit(audit.write, ACME, principal="p", action="a", subject=str(number))
    audit.write(AuditScope("dev", "globex"), principal="p", action="a")

    assert list(range(39, -1, -1)) == [entry.number for entry in audit.entries(ACME)]
    assert {str(number) for number in range(40)} == {entry.subject for entry in audit.entries(ACME)}
    assert (True, 41) == (audit.verify().is_whole, audit.verify().entries)


def test_keys_are_known_by_their_secret_only(database):
    """The right secret is somebody; anything else is nobody. What is stored is its SHA-256."""
    keys = Keys(database)
    made = keys.create("sync", scopes=["tenants:read"], environments=["dev"], tenants=["acme"])
    secret = made.key.partition(".")[2]

    assert ("key", made.id) == (keys.authenticate(made.key).kind, keys.authenticate(made.key).id)
    assert keys.authenticate(made.key).tenants == {"acme"}
    for text in ("", ".", made.id, f"{made.id}.", f"{made.id}.{secret}x", f".{secret}"):
        with pytest.raises(NotAuthenticated):
            keys.authenticate(text)
    with database.read() as connection:
        stored = connection.execute(select(table.c.secret_hash)).scalar_one()
    assert hashlib.sha256(secret.encode()).hexdigest() == stored


def test_a_request_makes_and_rotates_a_key_once(database):
    """A repeat is told which key it was: a secret is given once, and neither kept nor derived."""
    keys = Keys(database)
    made = keys.create("sync", key_id=keys.new_id("a request"))
    with pytest.raises(AlreadyExists, match=made.id):
        keys.create("sync", key_id=keys.new_id("a request"))
    rotated = keys.rotate(made.id, request="another")
    with pytest.raises(AlreadyExists, match="rotated"):
        keys.rotate(made.id, request="another")

    assert [made.id] * 2 == [keys.authenticate(item.key).id for item in (made, rotated)]
    assert len({keys.new_id(), keys.new_id(), keys.new_id("a request")}) == 3


@pytest.mark.parametrize("end", ["expired", "was revoked"])
def test_who_has_a_keys_secret_is_told_how_it_ended(database, end):
    """Nobody else learns that there was such a key."""
    keys = Keys(database)
    made = keys.create("sync", scopes=["tenants:read"], days=1e-9 if end == "expired" else None)
    if end != "expired":
        keys.revoke(made.id)
    wrong = made.key[:-1] + ("a" if made.key[-1] != "a" else "b")

    assert _refusal(keys, wrong).problem == "The caller is not authenticated."
    told = _refusal(keys, made.key)
    assert (told.problem, f"It {end} at 20" in told.cause) == ("This key is no longer valid.", True)


def _refusal(keys, text):
    with pytest.raises(NotAuthenticated) as refused:
        keys.authenticate(text)
    return refused.value


def test_a_session_is_a_row_that_ends(database):
    """With its hours, or when it is ended; a person's has the role and limits of its beginning."""
    sessions = Sessions(database, Keys(database), 1.0)
    token = sessions.begin(Person("oidc-1", "ada", "editor", ("dev",), ()))
    over = Sessions(database, Keys(database), 0.0).begin(Person("oidc-2", "eve", "admin"))
    found = sessions.authenticate(token)

    assert ("person", "oidc-1", "ada", {"dev"}, set()) == (
        found.kind,
        found.id,
        found.name,
        found.environments,
        found.tenants,
    )
    sessions.end(token)
    for ended in (token, over, "made up"):
        with pytest.raises(NotAuthenticated):
            sessions.authenticate(ended)


def test_a_sign_in_is_used_once(database):
    """By one of any number that try at once."""
    sessions = Sessions(database, Keys(database), 1.0)

    def use(_):
        try:
            sessions.use_once("link", 2**52)
        except NotAuthenticated:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(use, range(8))) == 1
