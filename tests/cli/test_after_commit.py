"""A command whose change is committed ends with 0, whichever storage call fails afterwards."""

import uuid

import pyarrow as pa
import pytest
from tests.after_commit import OF_STORE, OF_TENANT, AfterCommit
from tests.examples import sampled

from freezeframe.cli.main import main
from freezeframe.script import tenants
from freezeframe.settings import Settings
from freezeframe.store import Store
from freezeframe.store.diff.counts import ArrowEngine

pytestmark = pytest.mark.long

COMMANDS = [
    "file write b.txt {rows}",
    'file patch c.json {{"a":1}}',
    "file delete a.txt",
    "file move a.txt b.txt",
    "tenant restore 0 --yes",
    "tenant tag second",
    "tenant untag first",
    "tenant retention --keep-versions 3",
    "tenant create {other}",
    "tenant clone {tenant} {other}",
    "stream restore Account 0 --yes",
    "stream import Account {rows} --key Id --yes",
    "stream release Account",
    "stream retype Account n double",
    "stream drop Account --yes",
    "import {rows} --key Id --yes",
]


@pytest.mark.sampled
@pytest.mark.parametrize("command", COMMANDS)
def test_a_committed_change_ends_well(tmp_path, monkeypatch, capsys, command):
    """It prints what it prints where nothing fails."""
    storage = AfterCommit()
    monkeypatch.setattr(tenants, "storage_at", lambda *_, **__: storage)
    (tmp_path / "Account.csv").write_text("Id,City\n2,Chur\n")
    settings, lines = Settings(checkpoint_interval=1, engine="auto"), set()
    for number in (-1, *sampled(range(200), every=8)):
        storage.expect(None, None)
        store = Store(storage, ArrowEngine(), settings)
        names = {"tenant": f"t{uuid.uuid4().hex}", "other": f"t{uuid.uuid4().hex}"}
        tenant = store.tenant(names["tenant"], create=True)
        for city in ("Basel", "Zug"):
            rows = pa.table({"Id": ["1"], "City": [city], "n": [1]})
            tenant.stream("Account").update(rows, key="Id")
        tenant.files.write_text("a.txt", "a")
        tenant.tag("first")
        words = [word.format(rows=tmp_path / "Account.csv", **names) for word in command.split()]
        has_tenant = not command.startswith("tenant c")
        words += ["--root", "s3://bucket/x", *(["--tenant", names["tenant"]] if has_tenant else [])]
        storage.expect(OF_TENANT if has_tenant else OF_STORE, number)
        assert main(words) == 0
        lines.add(len(capsys.readouterr().out.splitlines()))
        if storage.seen <= number:
            break
    assert number > 0
    assert len(lines) == 1
