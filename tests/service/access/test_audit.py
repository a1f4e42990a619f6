"""The audit: what was changed, taken out or cut off is found; each entry is a line of the log."""

import json
import logging

import pytest
from sqlalchemy import delete, select, update
from tests.given import fails

from freezeframe.control.tables import audit as table
from freezeframe.errors import SetupError
from freezeframe.service.access.audit import (
    Audit,
    AuditFilter,
    AuditScope,
    export_lines,
    load_audit_secret,
)
from freezeframe.service.signing import ServiceSecret
from freezeframe.settings import Settings

ACME, GLOBEX = AuditScope("dev", "acme"), AuditScope("dev", "globex")
SECRET = ServiceSecret(b"p" * 32)


@pytest.fixture
def audit(database):
    """An audit of five entries, of two tenants."""
    made = Audit(database, SECRET)
    for number in range(5):
        place = GLOBEX if number == 2 else ACME
        made.write(place, principal=f"key:{number} ada", action="file.write", subject=str(number))
    return made


def _run(database, statement):
    with database.begin() as connection:
        connection.execute(statement)


def _logged(audit):
    return {entry.number: {entry.hash} for place in (ACME, GLOBEX) for entry in audit.all_entries(place)}


def test_a_second_secret_is_not_made_beside_an_audit(audit, database, tmp_path):
    """A command without the service's setting would sign its entry with a secret of its own."""
    elsewhere = Settings(service_secret_file=tmp_path / "service.secret")
    with fails(SetupError, "is missing", remedy="service_secret_file"):
        load_audit_secret(Settings(), str(tmp_path / "store"), database)
    assert not (tmp_path / "store").exists()

    elsewhere.service_secret_file.write_bytes(b"q" * 32)
    elsewhere.service_secret_file.chmod(0o600)
    assert load_audit_secret(elsewhere, str(tmp_path / "store"), database).sign(b"a", b"b")


def test_an_audit_that_nobody_touched_is_whole(audit):
    """All entries are looked at, of every tenant, and compared with the log."""
    proof = audit.verify(_logged(audit))

    assert (proof.is_whole, proof.reason, proof.entries, proof.logged) == (True, "", 5, 5)
    assert (4, audit.entries(ACME)[0].hash) == (proof.head_number, proof.head_hash)


@pytest.mark.parametrize(
    ("attack", "broken_at"),
    [
        (update(table).where(table.c.number == 2).values(subject="other"), 2),
        (update(table).where(table.c.number == 2).values(tenant="acme"), 2),
        (update(table).where(table.c.number == 2).values(moment_ms=1), 2),
        (update(table).where(table.c.number == 2).values(hash="0" * 64), 2),
        (update(table).where(table.c.number == 4).values(number=7), 4),
        (delete(table).where(table.c.number == 2), 2),
        (delete(table).where(table.c.number < 2), 0),
    ],
)
def test_a_change_is_found(database, audit, attack, broken_at):
    """Changed, moved, taken out of the middle or the beginning: the entry is named."""
    _run(database, attack)

    assert broken_at == audit.verify().broken_at


def test_an_audit_written_anew_is_found(database, audit):
    """Without the secret no hash fits; with it the log has other ones."""
    logged = _logged(audit)
    with database.begin() as connection:
        rows = [dict(row) for row in connection.execute(select(table)).mappings()]
        connection.execute(delete(table))
    forged = Audit(database, ServiceSecret(b"x" * 32))
    for row in rows:
        forged.write(ACME, principal=row["principal"], action=row["action"], subject="forged")

    assert forged.verify().is_whole
    assert audit.verify().broken_at == 0
    assert forged.verify(logged).broken_at == 0


def test_two_hashes_of_one_entry_are_found(audit):
    """A log that has an entry's own hash and another one was written by somebody else too."""
    logged = {**_logged(audit), 3: _logged(audit)[3] | {"0" * 64}}

    proof = audit.verify(logged)

    assert (3, "the log has it with 2 hashes") == (proof.broken_at, proof.reason)


@pytest.mark.parametrize("left", [0, 3])
def test_an_audit_that_was_cut_off_is_found_by_the_log(database, audit, left):
    """Without its newest entries it is whole in itself, but not beside the lines of the log."""
    logged = _logged(audit)
    _run(database, delete(table).where(table.c.number >= left))

    assert audit.verify().is_whole
    proof = audit.verify(logged)
    assert (left, f"the audit ends here, the log has {5 - left} more") == (proof.broken_at, proof.reason)


def test_each_entry_is_a_line_of_the_log(audit, caplog):
    """With number and hash first, at the level info; the details are not in it."""
    with caplog.at_level(logging.INFO, "freezeframe.audit"):
        made = audit.write(
            ACME, principal="key:1", action="file.write", subject="a", details={"told": "secret"}
        )
    line = vars(caplog.records[-1])

    assert ("freezeframe.audit", "file.write") == (line["name"], line["msg"])
    assert (made.number, made.hash, "dev", "acme", "a") == tuple(
        line[name] for name in ("number", "hash", "environment", "tenant", "subject")
    )
    assert "secret" not in str(line)


def test_entries_are_filtered(audit):
    """By tenant, action, subject, a part of who asked, and time; all given must fit."""
    newest = audit.entries(ACME)[0].moment_ms

    assert [entry.subject for entry in audit.entries(ACME)] == ["4", "3", "1", "0"]
    assert [entry.subject for entry in audit.entries(ACME, AuditFilter(principal="key:3"))] == ["3"]
    assert len(audit.entries(ACME, AuditFilter(principal="ada", action="file.write"))) == 4
    assert audit.entries(ACME, AuditFilter(principal="key:%")) == ()
    assert audit.entries(ACME, AuditFilter(since_ms=newest + 1)) == ()
    assert len(audit.entries(ACME, AuditFilter(until_ms=newest + 1))) == 4
    assert [entry.subject for entry in audit.all_entries(GLOBEX, AuditFilter(subject="2"))] == ["2"]


def test_an_exported_table_has_no_formulas(database):
    """JSON lines are exact; in CSV a text that a spreadsheet would compute is marked as text."""
    audit = Audit(database, SECRET)
    audit.write(ACME, principal="p", action="file.write", subject="=HYPERLINK(1)")
    rows = "".join(export_lines(audit.all_entries(ACME), "csv")).splitlines()

    assert json.loads(next(export_lines(audit.all_entries(ACME), "jsonl")))["subject"] == "=HYPERLINK(1)"
    assert rows[0].startswith("number,moment,principal,action,subject")
    assert ",'=HYPERLINK(1)," in rows[1]
