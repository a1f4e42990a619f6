"""The audit's chains: what was changed, taken out or cut off is found; entries from before keys are read."""

import hashlib
import http.server
import json
import socket
import threading

import pytest
from sqlalchemy import delete, insert, select, update

from freezeframe.control.database.database import ControlDatabase
from freezeframe.control.tables import audit as table
from freezeframe.errors import InvalidOption
from freezeframe.service.access.audit import Audit
from freezeframe.service.access.audit_entry import FIRST, AuditFilter, AuditKeys, AuditPlace, Head
from freezeframe.service.access.audit_export import export_lines
from freezeframe.service.access.audit_sink import audit_sink
from freezeframe.service.base.secret import ServiceSecret
from freezeframe.settings import Settings

ACME = AuditPlace("dev", "acme")
SECRET = ServiceSecret(b"p" * 32)
KEYS = AuditKeys.of(SECRET)


@pytest.fixture
def database(tmp_path):
    """A control database of its own."""
    found = ControlDatabase.open(f"sqlite:///{tmp_path}/control.db")
    yield found
    found.close()


@pytest.fixture
def audit(database):
    """An audit with a chain of five entries."""
    made = Audit(database, SECRET)
    for number in range(5):
        made.write(ACME, principal=f"key:{number} ada", action="file.write", subject=str(number))
    return made


def _run(database, statement):
    with database.begin() as connection:
        connection.execute(statement)


def _forge(database, keys, count=5):
    """Write the chain anew, each hash as it must be under other keys, with one subject changed."""
    with database.begin() as connection:
        rows = [dict(row) for row in connection.execute(select(table)).mappings()]
        connection.execute(delete(table))
        previous = FIRST
        for row in rows[:count]:
            row.update(previous_hash=previous, subject="forged", signing_key=keys.current if keys else "")
            record = {name: value for name, value in row.items() if name != "hash"}
            row["hash"] = previous = KEYS.hash(record) if keys is None else keys.hash(record)
            connection.execute(insert(table).values(row))


def test_a_chain_that_nobody_touched_is_whole(audit):
    """All entries are looked at, and a head that is kept elsewhere is compared."""
    newest = audit.entries(ACME)[0]
    proof = audit.prove(ACME, [Head(newest.number, newest.hash, "version 3")])

    assert (proof.is_whole, proof.reason, proof.entries, proof.heads) == (True, "", 5, 1)
    assert (4, newest.hash) == (proof.head_number, proof.head_hash)


@pytest.mark.parametrize(
    ("attack", "broken_at"),
    [
        (update(table).where(table.c.number == 2).values(subject="other"), 2),
        (update(table).where(table.c.number == 2).values(moment_ms=1), 2),
        (delete(table).where(table.c.number == 2), 2),
        (delete(table).where(table.c.number < 2), 0),
        (update(table).where(table.c.number == 3).values(signing_key=""), 3),
        (update(table).where(table.c.number == 3).values(signing_key="0" * 16), 3),
    ],
)
def test_a_change_in_a_chain_is_found(database, audit, attack, broken_at):
    """Changed, taken out of the middle or the beginning, or stripped of its key: the entry is named."""
    _run(database, attack)

    assert broken_at == audit.prove(ACME).broken_at


@pytest.mark.parametrize(("keys", "broken_at"), [(None, 4), (AuditKeys.of(ServiceSecret(b"x" * 32)), 0)])
def test_a_chain_written_anew_without_the_key_is_found(database, audit, keys, broken_at):
    """Neither plain hashes as of old, nor those of another key, pass for the service's own."""
    _forge(database, keys)

    assert broken_at == audit.prove(ACME).broken_at
    audit.seal("service")
    assert broken_at == audit.prove(ACME).broken_at or keys is None


def test_a_forged_chain_is_not_sealed_beside_signed_ones(database, audit):
    """While any chain is signed, one that is not never gets a signed entry."""
    _forge(database, None)
    audit.write(AuditPlace(), principal="p", action="a")
    audit.seal("service")

    assert audit.prove(ACME).broken_at == 4


@pytest.mark.parametrize("left", [0, 3])
def test_a_chain_that_was_cut_off_is_found_by_a_head(database, audit, left):
    """Without its newest entries a chain is whole in itself, but not for who knows one of them."""
    head = Head(4, audit.entries(ACME)[0].hash, "version 7")
    _run(database, delete(table).where(table.c.number >= left))

    assert audit.prove(ACME).is_whole
    proof = audit.prove(ACME, [head])
    assert (left, "the chain ends here; version 7 knows entry 4") == (proof.broken_at, proof.reason)


def test_a_head_with_another_hash_is_found(audit):
    """What is kept elsewhere of an entry has to be the entry that is here."""
    assert audit.prove(ACME, [Head(2, "0" * 64, "a sink")]).broken_at == 2


def test_entries_from_before_keys_are_read_and_sealed(database):
    """A chain of plain hashes is whole once it has a signed entry at its end; a change in it is found."""
    old = Audit(database, SECRET)
    record = {
        "environment": "dev",
        "tenant": "acme",
        "number": 0,
        "moment_ms": 1_700_000_000_000,
        "principal": "key:1",
        "action": "file.write",
        "subject": "a.txt",
        "request_id": "r",
        "details": "{}",
        "previous_hash": FIRST,
    }
    text = json.dumps(record, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    plain = hashlib.sha256(text.encode()).hexdigest()
    _run(database, insert(table).values(**record, hash=plain))
    unsealed = old.prove(ACME).broken_at
    old.seal("service")
    old.seal("service")

    assert unsealed == 0
    assert [one.action for one in old.entries(ACME)] == ["audit.seal", "file.write"]
    assert old.prove(ACME).is_whole
    _run(database, update(table).where(table.c.number == 0).values(principal="key:2"))
    assert old.prove(ACME).broken_at == 0


def test_trimming_leaves_a_chain_that_is_provable(database, audit):
    """Old entries go, the newest stays; heads of what went are passed over; more taken out is found."""
    cut = audit.entries(ACME)[0].moment_ms + 1
    _run(database, update(table).where(table.c.number > 99).values(subject=""))
    heads = [Head(one.number, one.hash, "v") for one in audit.entries(ACME)]
    gone = audit.trim(ACME, cut, "command:root")

    assert gone == 4
    assert [one.action for one in audit.entries(ACME)] == ["audit.trim", "file.write"]
    proof = audit.prove(ACME, heads)
    assert (proof.is_whole, proof.heads) == (True, 2)
    assert audit.trim(AuditPlace("dev", "nobody"), cut, "command:root") == 0
    _run(database, delete(table).where(table.c.number == 4))
    assert audit.prove(ACME).broken_at == 0


def test_entries_are_filtered(audit):
    """By action, subject, a part of who asked, and time; all given must fit."""
    newest = audit.entries(ACME)[0].moment_ms

    assert [one.subject for one in audit.entries(ACME, AuditFilter(principal="key:3"))] == ["3"]
    assert len(audit.entries(ACME, AuditFilter(principal="ada", action="file.write"))) == 5
    assert audit.entries(ACME, AuditFilter(principal="key:%")) == ()
    assert audit.entries(ACME, AuditFilter(since_ms=newest + 1)) == ()
    assert len(audit.entries(ACME, AuditFilter(until_ms=newest + 1))) == 5
    assert [one.subject for one in audit.all_entries(ACME, AuditFilter(subject="2"))] == ["2"]


def test_an_exported_table_has_no_formulas(database):
    """JSON lines are exact; in CSV a text that a spreadsheet would compute is marked as text."""
    audit = Audit(database, SECRET)
    audit.write(ACME, principal="p", action="file.write", subject="=HYPERLINK(1)")
    rows = "".join(export_lines(audit.all_entries(ACME), "csv")).splitlines()

    assert json.loads(next(export_lines(audit.all_entries(ACME), "jsonl")))["subject"] == "=HYPERLINK(1)"
    assert rows[0].startswith("number,moment,principal,action,subject")
    assert ",'=HYPERLINK(1)," in rows[1]


def test_a_file_gets_every_entry(database, tmp_path):
    """The sink's lines have number and hash of what the chain holds; a service that stops has sent all."""
    path = tmp_path / "audit.jsonl"
    send = audit_sink(Settings(audit_sink=f"file://{path}"))
    audit = Audit(database, SECRET, send)
    for _ in range(3):
        audit.write(ACME, principal="p", action="a")
    send.close()
    lines = [json.loads(line) for line in path.read_text().splitlines()]

    kept = [(one.number, one.hash) for one in audit.all_entries(ACME)]
    assert kept == [(one["number"], one["hash"]) for one in lines]
    assert (lines[0]["environment"], lines[0]["tenant"], lines[0]["action"]) == ("dev", "acme", "a")


def test_a_url_gets_every_entry_and_may_be_down(database):
    """An entry is posted as JSON; that nobody listens keeps nothing from being written."""
    got = []

    class Sink(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            got.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_):
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Sink) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}/"
        send = audit_sink(Settings(audit_sink=address))
        Audit(database, SECRET, send).write(ACME, principal="p", action="a")
        send.close()
        server.shutdown()
    down = audit_sink(Settings(audit_sink=address))
    written = Audit(database, SECRET, down).write(ACME, principal="p", action="b")
    down.close()

    assert [one["number"] for one in got] == [0]
    assert written.number == 1


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_UNIX])
def test_syslog_gets_every_entry(database, tmp_path, family):
    """Each entry is one datagram of authpriv.info, over UDP or a local socket."""
    with socket.socket(family, socket.SOCK_DGRAM) as daemon:
        daemon.settimeout(60)
        is_local = family == socket.AF_UNIX
        daemon.bind(str(tmp_path / "log") if is_local else ("127.0.0.1", 0))
        place = daemon.getsockname() if is_local else f"127.0.0.1:{daemon.getsockname()[1]}"
        send = audit_sink(Settings(audit_sink=f"syslog://{place}"))
        written = Audit(database, SECRET, send).write(ACME, principal="p", action="a")
        send.close()
        priority, _, line = daemon.recv(65536).decode().partition(">")

    assert f"<{10 << 3 | 6}" == priority
    told = json.loads(line.rstrip("\0"))
    assert (written.number, written.hash, "acme") == (told["number"], told["hash"], told["tenant"])


def test_a_local_syslog_that_is_down_loses_entries_and_counts_them(database, tmp_path):
    """The service starts and writes without it; each entry that did not arrive is counted."""
    send = audit_sink(Settings(audit_sink=f"syslog://{tmp_path}/none"))
    written = Audit(database, SECRET, send).write(ACME, principal="p", action="a")
    send.close()

    assert (written.number, send.lost_count) == (0, 1)


@pytest.mark.parametrize("address", ["audit.log", "file://host/x", "ftp://host/x", "https://"])
def test_what_is_no_sink_is_refused(address):
    """A setting that names neither a file, syslog nor a URL stops the service's start."""
    with pytest.raises(InvalidOption, match="audit_sink"):
        audit_sink(Settings(audit_sink=address))
