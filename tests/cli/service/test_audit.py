"""``freezeframe audit``: what commands leave in it, what verify finds, export and trim."""

import json
import os

import pyarrow as pa
import pytest
from sqlalchemy import delete, update

import freezeframe as ff
from freezeframe.cli.main import main
from freezeframe.control.database.database import ControlDatabase
from freezeframe.control.tables import audit as table
from freezeframe.service.access.access import audit_place
from freezeframe.service.service import open_service
from freezeframe.settings import Settings
from freezeframe.store.model.request_context import AuditHead, RequestContext


def _run(root, statement):
    database = ControlDatabase.open(f"sqlite:///{root}/_freezeframe/control.db")
    with database.begin() as connection:
        connection.execute(statement)
    database.close()


def test_commands_are_audited(said):
    """Keys that a command makes, changes or ends are told, refusals too."""
    _, made = said("key", "create", "--scope", "snapshots:read")
    said("key", "rotate", made["id"])
    said("key", "revoke", made["id"])
    said("key", "revoke", "nobody")
    said("key", "sign-out", "oidc-1")
    _, told = said("audit", "list")

    assert [
        ("session.end", "oidc-1", None),
        ("key.revoke", "nobody", "refused"),
        ("key.revoke", "nobody", None),
        ("key.revoke", made["id"], None),
        ("key.rotate", made["id"], None),
        ("key.create", made["id"], None),
    ] == [(one["action"], one["subject"], one["details"].get("outcome")) for one in told]
    assert all(one["principal"].startswith("command:") for one in told)


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
    assert [one["action"] for one in own] == ["tenant.cloned", "rows.erase", "file.unseal"]
    assert own[1]["details"] == {"keys": 1}
    assert [one["action"] for one in copied] == ["tenant.clone"]
    assert (service[0]["action"], service[0]["subject"]) == ("tenant.delete", "default/copy")
    assert service[0]["details"]["audit"]["number"] > 0
    assert all(one["is_whole"] for one in proof)


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
def test_verify_finds_what_somebody_did_to_the_database(said, root, monkeypatch, attack, broken_at):
    """With the lines that a sink has, rewriting, removal and truncation are all found."""
    sink = root.parent / "sink.jsonl"
    monkeypatch.setenv("FREEZEFRAME_AUDIT_SINK", f"file://{sink}")
    for _ in range(3):
        said("key", "create")
    code, before = said("audit", "verify", "--heads", str(_flushed(sink)))
    _run(root, attack)
    found, after = said("audit", "verify", "--heads", str(sink))

    assert (code, [one["is_whole"] for one in before], [one["heads"] for one in before]) == (0, [True], [3])
    assert (1, [broken_at]) == (found, [one["broken_at"] for one in after])


def _flushed(path):
    assert len(path.read_text().splitlines()) == 3
    return path


def test_verify_goes_through_the_tenants_too(said, root):
    """A tenant's chain that is cut off is missed by its versions."""
    said("key", "create")
    database = ControlDatabase.open(f"sqlite:///{root}/_freezeframe/control.db")
    service = open_service(str(root), Settings(state_dir=root.parent / "state"), database)
    tenant = service.stores.environment("dev").tenant("acme", create=True)
    place = audit_place(service.stores, "dev", "acme")
    entry = service.audit.write(place, principal="key:1", action="file.write", subject="a")
    request = RequestContext("r", audit=AuditHead(entry.number, entry.hash))
    tenant.on(request).files.write("a", b"x")
    database.close()
    whole, _ = said("audit", "verify")
    _run(root, delete(table).where(table.c.environment == "dev"))
    cut, told = said("audit", "verify")
    one, _ = said("audit", "verify", "--env", "dev", "--tenant", "acme")

    assert (whole, cut, one) == (0, 1, 1)
    assert {each["environment"]: each["is_whole"] for each in told} == {"": True, "dev": False}


def test_trim_needs_a_yes_and_keeps_what_is_young(said):
    """Nothing is deleted without --yes, nor what is not old enough; a tenant that is not there is told."""
    said("key", "create")
    asked, _ = said("audit", "trim", "--days", "30")
    done, told = said("audit", "trim", "--days", "30", "--yes")
    absent, _ = said("audit", "list", "--tenant", "nobody")

    assert (asked, done, told, absent) == (2, 0, {"deleted": 0}, 4)


def test_export_writes_lines(capsys, root, said):
    """Each line is an entry, the oldest first; a bad file of heads is refused by its line."""
    said("key", "create")
    said("key", "create")
    main(["audit", "export", "--root", str(root), "--action", "key.create"])
    lines = capsys.readouterr().out.splitlines()
    bad = root.parent / "bad.jsonl"
    bad.write_text('{"number": 1}\n')
    code, told = said("audit", "verify", "--heads", str(bad))

    assert [json.loads(line)["number"] for line in lines] == [0, 1]
    assert code == 2
    assert "Line 1" in told["error"]["problem"]
