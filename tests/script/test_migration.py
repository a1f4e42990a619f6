"""A directory of snapshot files becomes a tenant, whole or not at all."""

import json

import pandas as pd
import pytest

import freezeframe
from freezeframe.cli.main import main
from freezeframe.errors import AlreadyExists, BadInput, InputNotFound, InvalidOption, UnreadableInput
from freezeframe.script.adoption import plan_migration


@pytest.fixture
def before(tmp_path):
    """What a tenant of today has: snapshots as CSV and Parquet, a configuration, a mapping, a report."""
    folder = tmp_path / "snapshots"
    (folder / "mappings").mkdir(parents=True)
    (folder / "Account.snapshot.csv").write_text("Id,Name\n007,Bond\n008,Bill\n")
    (folder / "Lead.snapshot.csv").write_text("Id,Name\n9,old\n")
    pd.DataFrame({"Id": ["1"], "Score": [0.5]}).to_parquet(folder / "Lead.snapshot.parquet")
    (folder / "Report.snapshot.csv").write_text("Day;Total\n2026-01-01;3\n2026-01-01;3\n")
    (folder / "tenant-config.json").write_text('{"region": "eu"}')
    (folder / "mappings" / "a.csv").write_text("x\n1\n")
    return folder


def test_streams_files_and_keys_are_one_version(before, tmp_path, capsys):
    """Parquet wins over CSV, text stays text, a stream without the key's column has no key."""
    command = ["migrate", str(before), "--tenant", "acme", "--root", str(tmp_path / "store"), "--json"]
    assert main([*command, "--dry-run"]) == 0
    assert json.loads(capsys.readouterr().out)["tenant_version"] is None
    assert freezeframe.open(tmp_path / "store").tenants() == ()
    assert main(command) == 0
    told = json.loads(capsys.readouterr().out)
    acme = freezeframe.open(tmp_path / "store").tenant("acme")

    assert {item["stream"]: (item["key"], item["rows"]) for item in told["streams"]} == {
        "Account": (["Id"], 2),
        "Lead": (["Id"], 1),
        "Report": ([], 2),
    }
    assert (told["tenant_version"], acme.version) == (0, 0)
    assert acme.stream("Account").read()["Id"].tolist() == ["007", "008"]
    assert acme.stream("Lead").read()["Score"].tolist() == [0.5]
    assert [item.path for item in acme.files.list(recursive=True)] == ["mappings/a.csv", "tenant-config.json"]
    assert main(command) == 2
    assert "already has" in capsys.readouterr().err
    assert acme.version == 0


@pytest.mark.parametrize(
    ("damage", "error"),
    [
        (lambda folder: (folder / "A.snapshot.parquet").write_bytes(b"PAR1"), UnreadableInput),
        (lambda folder: (folder / "A.snapshot.csv.hg.partial_written.lock").touch(), UnreadableInput),
        (lambda folder: (folder / "_freezeframe").mkdir(), InvalidOption),
        (lambda folder: folder.rename(folder.with_name("elsewhere")), InputNotFound),
    ],
    ids=["a damaged file", "a file that gluestick was writing", "a tenant's directory", "no directory"],
)
def test_what_cannot_be_migrated_is_refused_before_anything_is_written(before, damage, error):
    """With a typed error that names the file or directory."""
    damage(before)
    with pytest.raises(error, match=str(before)):
        plan_migration(before, ["Id"], None)


def test_rows_that_cannot_be_taken_leave_the_tenant_as_it_was(before, tmp_path):
    """The file is named, and no stream of the others is there."""
    (before / "Zero.snapshot.csv").write_text("Id,Name\n,nobody\n")
    acme = freezeframe.open(tmp_path / "store").tenant("acme", create=True)
    plan = plan_migration(before, ["Id"], acme)
    with pytest.raises(BadInput, match=r"Zero\.snapshot\.csv"), acme.job() as job:
        plan.carried_out(job)
    assert (acme.streams(), acme.version) == ((), -1)


def test_a_tenant_keeps_what_it_has(before, tmp_path):
    """A stream or file of one of the names is in the way; others are not."""
    acme = freezeframe.open(tmp_path / "store").tenant("acme", create=True)
    acme.files.write("other.json", b"{}")
    plan_migration(before, ["Id"], acme)
    acme.files.write("tenant-config.json", b"{}")
    with pytest.raises(AlreadyExists, match=r"tenant-config\.json"):
        plan_migration(before, ["Id"], acme)
