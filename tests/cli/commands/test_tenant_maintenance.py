"""``freezeframe tenant gc|erase|retention``: what goes for good, and what is kept."""

import json
import shutil
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest

import freezeframe
from freezeframe.cli.main import main
from freezeframe.script import open_tenant

GROUP = "tenant"


@pytest.fixture
def snapshots(tmp_path):
    """A tenant with a stream of two key columns, one of a single one, and a file with an older version."""
    tenant = open_tenant(tmp_path / "acme")
    with tenant.job() as job:
        lines = pd.DataFrame({"Order": ["A-1000", "A-1000", "B-2000"], "Line": [1, 2, 1], "v": [1, 2, 3]})
        job.stream("Line").update(lines, key=["Order", "Line"])
        job.stream("Account").update(pd.DataFrame({"Id": ["person-1", "person-2", "person-3"]}), key=["Id"])
        job.files.write("config.json", b"first")
    tenant.files.write("config.json", b"second")
    return str(tmp_path / "acme")


def test_retention_is_shown_and_set(told, snapshots):
    """Limits are set, told and taken off; contradictions are refused."""
    assert told("retention") == {"keep_versions": 1000, "keep_days": None}
    assert told("retention", "--keep-versions", "3", "--keep-days", "1.5") == {
        "keep_versions": 3,
        "keep_days": 1.5,
    }
    assert told("retention") == {"keep_versions": 3, "keep_days": 1.5}
    assert told("retention", "--keep-all") == {"keep_versions": None, "keep_days": None}
    assert main(["tenant", "retention", "--keep-all", "--keep-days", "1", "--dir", snapshots]) == 2
    assert main(["tenant", "retention", "--keep-versions", "0", "--dir", snapshots]) == 2


def test_gc_tells_and_deletes(capsys, told, snapshots, tmp_path, monkeypatch):
    """A dry run names the files; without a yes nothing goes; with it the old version's bytes do."""
    monkeypatch.setenv("FREEZEFRAME_GC_GRACE_SECONDS", "0")
    (tmp_path / "acme").rename(tmp_path / "other")  # a tenant is opened once for a process, with its settings
    place = ["--dir", str(tmp_path / "other"), "--json"]
    assert main(["tenant", "retention", "--keep-versions", "1", *place]) == 0
    capsys.readouterr()

    assert main(["tenant", "gc", "--dry-run", *place]) == 0
    preview = json.loads(capsys.readouterr().out)
    assert (preview["dry_run"], preview["files"], preview["bytes"]) == (True, 1, 5)
    assert main(["tenant", "gc", *place]) == 2
    assert (tmp_path / "other" / preview["names"][0]).exists()
    capsys.readouterr()

    assert main(["tenant", "gc", "--yes", *place]) == 0
    done = json.loads(capsys.readouterr().out)
    assert (False, preview["names"]) == (done["dry_run"], done["names"])
    assert not (tmp_path / "other" / preview["names"][0]).exists()


def test_erase_previews_and_proves(capsys, told, snapshots, tmp_path):
    """Keys by option and by file; the past is gone and the scan is clean."""
    more = tmp_path / "keys.csv"
    more.write_text("Name,Id\nx,person-3\n")
    keys = ["--key", "person-1", "--key", "person-9", "--keys-file", str(more)]

    preview = told("erase", "Account", *keys, "--dry-run")
    assert preview == {"stream": "Account", "keys": 3, "rows_now": 2, "versions_lost": 2}
    assert main(["tenant", "erase", "Account", *keys, "--dir", snapshots]) == 2
    assert open_tenant(snapshots).stream("Account").count() == 3
    capsys.readouterr()

    done = told("erase", "Account", *keys, "--yes", "--who", "ops")
    assert (done["keys"], done["rows_erased"], done["left"]["remaining"]) == (3, 2, 0)
    tenant = open_tenant(snapshots)
    assert tenant.stream("Account").read()["Id"].tolist() == ["person-2"]
    assert [entry.who for entry in tenant.history()] == ["ops"]


def test_a_key_of_several_columns_is_a_json_array(told, snapshots):
    """Each part is typed as its column; only the whole key counts."""
    told_of = told("erase", "Line", "--key", '["A-1000", 2]', "--key", '["B-2000", "2"]', "--dry-run")
    assert (told_of["keys"], told_of["rows_now"]) == (2, 1)


def test_a_key_that_is_no_number_is_written_as_rows_show_it(told, snapshots):
    """NaN, and each sign of a zero, counts the row that the erasure finds."""
    rows = pa.table({"No": [-0.0, 5.0, float("nan")]})
    open_tenant(snapshots).stream("Level").update(rows, key="No")
    keys = ("NaN", "0", "7")
    counts = [told("erase", "Level", "--key", key, "--dry-run")["rows_now"] for key in keys]
    assert [1, 1, 0] == counts


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["Account"], 2),
        (["Nope", "--key", "1"], 4),
        (["Line", "--key", "A-1000"], 2),
        (["Line", "--key", '["A-1000"]'], 2),
        (["Line", "--key", '["A-1000", "x"]'], 2),
        (["Line", "--key", '["A-1000", null]'], 2),
        (["Account", "--keys-file", "/nonexistent/keys.csv"], 4),
    ],
)
def test_keys_that_are_none_are_refused(snapshots, arguments, code):
    """No key, an unknown stream, a key of the wrong shape or type: nothing is erased."""
    assert code == main(["tenant", "erase", *arguments, "--yes", "--dir", snapshots])
    assert open_tenant(snapshots).version == 1


def test_verify_reads_a_whole_tenant(capsys, told, snapshots, tmp_path):
    """Sound with the counts of what was read; damage is named by its file, exit code 1."""
    whole = told("verify")
    assert (
        whole["sound"],
        whole["entries"],
        whole["streams"],
        whole["blobs"],
        whole["findings"],
    ) == (True, 2, 2, 2, [])
    assert main(["tenant", "verify", "--dir", snapshots]) == 0
    assert "is sound: 2 entries, 2 streams" in capsys.readouterr().out
    (data, *_) = (tmp_path / "acme" / "Account.snapshot").glob("*/*.parquet")
    data.write_bytes(data.read_bytes()[:-9] + b"X" * 9)

    assert main(["tenant", "verify", "--dir", snapshots, "--json"]) == 1

    (finding,) = json.loads(capsys.readouterr().out)["findings"]
    assert str(data.relative_to(tmp_path / "acme")) == finding["file"]


def test_verify_finds_a_store_tenant_that_does_not_open(capsys, tmp_path):
    """Its log is damaged: the entry is named; a folder without a tenant is an error."""
    root = str(tmp_path / "store")
    tenant = freezeframe.open(root).tenant("acme", create=True)
    tenant.files.write("a", b"1")
    entry = Path(tenant.context.storage.root) / "_freezeframe" / "log" / f"{0:020d}.json"
    entry.write_bytes(entry.read_bytes().replace(b"commit", b"commie"))
    place = ["--root", root, "--tenant", "acme"]

    assert main(["tenant", "show", *place]) == 1
    assert main(["tenant", "verify", *place, "--json"]) == 1

    told = json.loads(capsys.readouterr().out)
    assert [f"_freezeframe/log/{0:020d}.json"] == [item["file"] for item in told["findings"]]
    (tmp_path / "empty").mkdir()
    assert main(["tenant", "verify", "--dir", str(tmp_path / "empty")]) == 4
    assert main(["tenant", "verify", "--root", root, "--tenant", "nobody"]) == 4


def test_all_tenants_of_a_store_are_verified_and_compared(capsys, tmp_path):
    """A copy has the same lines in all environments; damage and a lost commit change them."""
    store, copy = str(tmp_path / "store"), str(tmp_path / "copy")
    for environment in ("dev", "production"):
        freezeframe.open(store, environment).tenant("acme", create=True).files.write("a", b"first")
    shutil.copytree(store, copy)

    def verified(root, *options):
        code = main(["tenant", "verify", "--all", "--root", root, "--json", *options])
        return code, json.loads(capsys.readouterr().out)

    assert verified(store) == verified(copy)
    assert [item["environment"] for item in verified(copy)[1]] == ["dev", "production"]
    assert [item["environment"] for item in verified(copy, "--env", "dev")[1]] == ["dev"]
    freezeframe.open(store, "dev").tenant("acme").files.write("a", b"second")
    assert verified(store)[1][1:] == verified(copy)[1][1:]
    assert verified(store)[1][0] != verified(copy)[1][0]

    damaged = next(file for file in Path(copy).rglob("*") if file.is_file() and file.read_bytes() == b"first")
    damaged.write_bytes(b"fir$t")
    code, rows = verified(copy)
    assert (code, sum(len(item["findings"]) for item in rows)) == (1, 1)
    assert main(["tenant", "verify", "--all", "--root", copy, "--tenant", "acme"]) == 2
