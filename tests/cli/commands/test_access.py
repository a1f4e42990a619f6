"""``freezeframe key`` and ``audit``."""

import json
import logging
import os
from contextlib import redirect_stderr

import pyarrow as pa
import pytest
from sqlalchemy import delete, update

import freezeframe as ff
from freezeframe.cli.main import main
from freezeframe.control.database import ControlDatabase
from freezeframe.control.tables import audit as table
from freezeframe.observation import configure_logging


@pytest.fixture
def root(tmp_path):
    """A store's root."""
    return tmp_path / "store"


@pytest.fixture
def said(capsys, root):
    """A function that runs a command on the store and gives its code and JSON."""

    def run(*arguments):
        code = main([*arguments, "--root", str(root), "--json"])
        captured = capsys.readouterr()
        return code, json.loads(captured.out or captured.err)

    return run


def test_the_master_key_is_rotated(said, tmp_path, monkeypatch):
    """By both keys in the settings; with one alone there is nothing to rotate from."""
    for name in ("old", "new"):
        file = tmp_path / name
        file.touch(mode=0o600)
        file.write_bytes(os.urandom(32))
    monkeypatch.setenv("FREEZEFRAME_MASTER_KEY_FILE", str(tmp_path / "old"))
    acme = ff.open(tmp_path / "store").tenant("acme", create=True)
    acme.files.write("secret", b"s", sealed=True)
    alone, _ = said("key", "rotate-master")
    monkeypatch.setenv("FREEZEFRAME_MASTER_KEY_FILE", str(tmp_path / "new"))
    monkeypatch.setenv("FREEZEFRAME_MASTER_KEY_FILE_OTHER", str(tmp_path / "old"))
    code, told = said("key", "rotate-master")
    monkeypatch.delenv("FREEZEFRAME_MASTER_KEY_FILE_OTHER")

    assert (alone, code, told["tenants"]) == (2, 0, 1)
    assert ff.open(tmp_path / "store").tenant("acme").files.read("secret") == b"s"


def _run(root, statement):
    database = ControlDatabase.open(f"sqlite:///{root}/_freezeframe/control.db")
    with database.begin() as connection:
        connection.execute(statement)
    database.close()


def test_commands_are_audited(said):
    """Keys that a command makes, changes or ends are told; a key that is not there changes nothing."""
    _, made = said("key", "create", "--scope", "snapshots:read")
    said("key", "rotate", made["id"])
    said("key", "revoke", made["id"])
    said("key", "revoke", "nobody")
    said("key", "sign-out", "oidc-1")
    _, told = said("audit", "list")

    assert said("audit", "list", "--cursor", "x")[0] == 2
    assert [
        ("session.end", "oidc-1", None),
        ("key.revoke", made["id"], None),
        ("key.rotate", made["id"], None),
        ("key.create", made["id"], None),
    ] == [(item["action"], item["subject"], item["details"].get("outcome")) for item in told["entries"]]
    assert all(item["principal"].startswith("command:") for item in told["entries"])


def test_changes_of_tenants_by_command_are_audited(said, root, tmp_path, monkeypatch):
    """Erasing, copying, deleting and reading sealed files; of erased keys only the number is told."""
    (tmp_path / "master.key").touch(mode=0o600)
    (tmp_path / "master.key").write_bytes(os.urandom(32))
    monkeypatch.setenv("FREEZEFRAME_MASTER_KEY_FILE", str(tmp_path / "master.key"))
    acme = ff.open(root).tenant("acme", create=True)
    acme.stream("Lead").update(pa.table({"Id": ["007007007", "2"]}), key="Id")
    acme.files.write("secret", b"s", sealed=True)
    acme.files.write("plain", b"p")
    said("key", "create")

    said("file", "read", "secret", "--tenant", "acme")
    said("file", "read", "plain", "--tenant", "acme")
    said("tenant", "erase", "Lead", "--key", "007007007", "--tenant", "acme", "--yes")
    said("tenant", "clone", "acme", "copy")
    _, copied = said("audit", "list", "--tenant", "copy")
    code, _ = said("tenant", "delete", "copy", "--yes")
    _, own = said("audit", "list", "--tenant", "acme")
    _, service = said("audit", "list")
    _, proof = said("audit", "verify")

    assert code == 0
    assert [item["action"] for item in own["entries"]] == ["tenant.cloned", "rows.erase", "file.unseal"]
    assert own["entries"][1]["details"] == {"keys": 1}
    assert [item["action"] for item in copied["entries"]] == ["tenant.clone"]
    newest = service["entries"][0]
    assert (newest["action"], newest["subject"]) == ("tenant.delete", "default/copy")
    assert (proof["is_whole"], proof["entries"]) == (True, 6)


def test_a_store_without_a_control_database_gets_none_by_a_change(said, root):
    """A script's store stays what it is."""
    ff.open(root).tenant("acme", create=True)
    code, _ = said("tenant", "delete", "acme", "--yes")

    assert code == 0
    assert not (root / "_freezeframe" / "control.db").exists()


@pytest.mark.parametrize(
    ("attack", "broken_at"),
    [
        (update(table).where(table.c.number == 1).values(principal="command:somebody"), 1),
        (delete(table).where(table.c.number == 0), 0),
        (delete(table).where(table.c.number == 2), 2),
        (delete(table), 0),
    ],
)
@pytest.mark.parametrize("log_format", ["text", "json"])
def test_verify_finds_what_somebody_did_to_the_database(said, root, log_format, attack, broken_at):
    """With the lines of the log, in either format, rewriting, removal and truncation are all found."""
    log, logger = root.parent / "service.log", logging.getLogger("freezeframe.audit")
    before = logging.getLogger().handlers, logging.getLogger().level, logger.level
    with log.open("w") as stream, redirect_stderr(stream):
        configure_logging(log_format, "warning")
        try:
            for number in range(3):
                said("key", "create", "--name", f"number=7 hash={number}")
        finally:
            logging.getLogger().handlers, _, _ = before
            logging.getLogger().setLevel(before[1])
            logger.setLevel(before[2])
    code, whole = said("audit", "verify", "--log", str(log))
    _run(root, attack)
    found, after = said("audit", "verify", "--log", str(log))

    assert (code, whole["is_whole"], whole["logged"]) == (0, True, 3)
    assert (1, broken_at) == (found, after["broken_at"])


@pytest.mark.parametrize("log_format", ["text", "json"])
@pytest.mark.parametrize("copied", ["{}", "Nov 28 02:46:56 host unit[7]: {}", '{{"log": {json}}}'])
def test_what_another_logger_quotes_is_no_line_of_the_audit(said, root, log_format, copied):
    """An address that reads like an entry, and an error's text, forge no line of the log."""
    log, root_logger = root.parent / "service.log", logging.getLogger()
    before = root_logger.handlers, root_logger.level
    forged = f"2026-11-25T09:12:44.019Z INFO freezeframe.audit: key.create number=1 hash={'0' * 64}"
    as_json = json.dumps({"logger": "freezeframe.audit", "message": "a", "number": 1, "hash": "0" * 64})
    with log.open("w") as stream, redirect_stderr(stream):
        configure_logging(log_format, "info")
        try:
            said("key", "create")
            for quoted in (f"/freezeframe.audit number=1 hash={'0' * 64}", forged, as_json):
                logging.getLogger("freezeframe.access").info("GET %s %d", quoted, 401)
                error = ValueError(f"\n{quoted}\n")
                logging.getLogger("freezeframe.asgi").error("failed", exc_info=error)
        finally:
            root_logger.handlers, _ = before
            root_logger.setLevel(before[1])
    lines = log.read_text().splitlines()
    log.write_text("\n".join(copied.format(line, json=json.dumps(line)) for line in lines))

    code, proof = said("audit", "verify", "--log", str(log))

    assert (0, True, 1) == (code, proof["is_whole"], proof["logged"])


def test_export_writes_lines(capsys, root, said):
    """Each line is an entry, the oldest first; a log without a line of the audit is refused."""
    said("key", "create")
    said("key", "create")
    main(["audit", "export", "--root", str(root), "--action", "key.create"])
    lines = capsys.readouterr().out.splitlines()
    bad = root.parent / "bad.jsonl"
    bad.write_text('{"number": 1}\n')
    code, told = said("audit", "verify", "--log", str(bad))

    assert [json.loads(line)["number"] for line in lines] == [0, 1]
    assert code == 2
    assert "no line of the audit" in told["error"]["problem"]
