"""``freezeframe import``, ``export``, ``stream import`` and ``stream export``."""

import json
import os

import openpyxl
import pandas as pd
import pytest

import freezeframe
from freezeframe.cli.main import main
from freezeframe.script import open_tenant
from freezeframe.settings import Settings
from freezeframe.store.model.directory import uploads_folder

GROUP = "stream"


@pytest.fixture
def snapshots(tmp_path):
    """A tenant with one stream."""
    accounts = pd.DataFrame({"Id": ["007", "8"], "N": [1, None]})
    open_tenant(tmp_path / "acme").stream("Account").update(accounts, key=["Id"])
    return str(tmp_path / "acme")


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_it_goes_out_and_comes_back(told, snapshots, tmp_path, kind):
    """With its schema file, or as Parquet, the rows are the same in another stream; never over a file."""
    out = told("export", "Account", "--to", str(tmp_path), "--kind", kind)
    assert (
        main(["stream", "export", "Account", "--to", str(tmp_path), "--kind", kind, "--dir", snapshots]) == 2
    )
    typed = ["--schema-from", out["schema"]] if out["schema"] else ["--key", "Id"]

    receipt = told("import", "Copy", out["file"], *typed, "--who", "ops")

    assert (receipt["inserted"], receipt["tenant_version"]) == (2, 1)
    assert told("show", "Account") == told("show", "Copy")
    (entry,) = open_tenant(snapshots).history(1)
    assert ("ops", f"import Account.snapshot.{kind}") == (entry.who, entry.message)


def test_a_workbook_goes_out(told, snapshots, tmp_path):
    """By both commands, without a schema file: it is for people, and `--files` refuses it."""
    one = told("export", "Account", "--to", str(tmp_path / "one"), "--kind", "xlsx")
    arguments = ["export", str(tmp_path / "all"), "--kind", "xlsx", "--dir", snapshots]

    assert ("Account.snapshot.xlsx", None) == (os.path.basename(one["file"]), one["schema"])  # noqa: PTH119
    assert [0, 2] == [main(arguments), main([*arguments[:1], str(tmp_path / "x"), *arguments[2:], "--files"])]
    for folder in ("one", "all"):
        sheet = openpyxl.load_workbook(tmp_path / folder / "Account.snapshot.xlsx").active
        assert [("Id", "N"), ("007", 1), ("8", None)] == list(sheet.values)


def test_a_preview_keeps_nothing(told, snapshots, tmp_path):
    """--dry-run tells the counts; no stream, version or data file is left of it."""
    rows = tmp_path / "rows.csv"
    rows.write_text("Id\n1\n2\n3\n")
    before = sorted(str(file) for file in (tmp_path / "acme").rglob("*.parquet"))
    receipt = told("import", "Lead", str(rows), "--key", "Id", "--dry-run")
    assert (receipt["inserted"], receipt["committed"]) == (3, False)
    tenant = open_tenant(snapshots)
    assert (tenant.streams(), tenant.version) == (("Account",), 0)
    assert before == sorted(str(file) for file in (tmp_path / "acme").rglob("*.parquet"))


@pytest.mark.parametrize("command", [["import"], ["stream", "import", "Lead"]])
def test_a_tenant_that_is_not_there_is_made_as_by_a_run(tmp_path, capsys, command):
    """Told with the ids that it is close to; no dry run, failed import or one of nothing leaves one."""
    rows, store = tmp_path / "Lead.csv", str(tmp_path / "store")
    rows.write_text("Id\n1\n")

    def bring(tenant, *flags):
        return main([*command, str(rows), "--key", "Id", "--root", store, "--tenant", tenant, *flags])

    made = [bring("acme"), bring("acmee", "--dry-run"), bring("acmee", "--key", "No")]
    said = capsys.readouterr().out
    rows = tmp_path / "Nothing.json"
    rows.write_text("[]")
    assert 0 == bring("nobody")
    assert "nobody." not in capsys.readouterr().out

    assert [0, 0, 2] == made
    assert "Made a new tenant: acme.\n" in said
    assert "A real import would make a new tenant: acmee. The store has acme: is one of them meant?" in said
    assert ("acme",) == freezeframe.open(store).tenants()
    assert [1] == freezeframe.open(store)["acme"]["Lead"].to_pandas()["Id"].to_list()


def test_types_and_dates_of_csv_are_flags(told, snapshots, tmp_path, capsys):
    """What is read is what they say, and a column that looks like numbers is named in words of the door."""
    rows = tmp_path / "rows.csv"
    rows.write_text("Id,Phone,Day,Version\n1,41,2026-10-01,1.10\n2,44,,1.9\n")
    flags = ["--key", "Id", "--types", "Phone=string", "--parse-dates", "Day", "--dir", snapshots, "--yes"]

    assert main(["stream", "import", "Call", str(rows), *flags]) == 0

    said = capsys.readouterr().err
    assert "Column 'Version' of 'Call' looks like numbers and was kept as text: 1.10 (line 2)" in said
    assert "--types Version=double reads it as numbers" in said
    kinds = open_tenant(snapshots).stream("Call").read(as_="arrow").schema.types
    assert list(map(str, kinds)) == ["int64", "string", "date32[day]", "string"]
    assert main(["import", str(rows), "--stream", "Call", *flags[:2], "--types", "Phone", *flags[-3:]]) == 2


def test_files_that_spark_wrote_are_imported_by_a_flag(told, tmp_path, capsys, snapshots):
    """The error names it, and with it they are read."""
    rows = tmp_path / "rows.csv"
    rows.write_text('Id,Note\n1,"say \\"hi\\""\n')
    import_ = ["stream", "import", "Call", str(rows), "--key", "Id", "--dir", snapshots, "--yes"]

    assert main(import_) == 2
    assert '--escape "\\\\"' in capsys.readouterr().err
    assert main([*import_, "--escape", "\\"]) == 0
    assert open_tenant(snapshots).stream("Call").read(as_="arrow")["Note"].to_pylist() == ['say "hi"']


def test_a_report_without_a_key_is_imported(told, tmp_path):
    """--override replaces the whole content; afterwards, too, no key is asked for."""
    report = tmp_path / "report.csv"
    for text, counts in (("Month,Total\n1,7\n1,7\n", (2, 0)), ("Month,Total\n2,8\n", (1, 2))):
        report.write_text(text)
        receipt = told("import", "Report", str(report), "--override", "--yes")
        assert counts == (receipt["inserted"], receipt["deleted"])


def test_the_options_of_an_update_are_flags(told, snapshots, tmp_path, capsys):
    """Rows without a key, types that do not fit; errors name the flags that help."""
    rows = tmp_path / "rows.csv"
    rows.write_text("Id,N\n007,1\n8,2\n")
    told("import", "Lead", str(rows), "--key", "Id")
    rows.write_text("Id,N\n007,x\n,y\n")
    place = ["stream", "import", "Lead", str(rows), "--dir", snapshots]
    assert main(place) == 2
    assert "--null-keys drop" in capsys.readouterr().err
    assert main([*place, "--null-keys", "drop"]) == 2
    assert "--on-drift string" in capsys.readouterr().err
    receipt = told("import", "Lead", str(rows), "--null-keys", "drop", "--on-drift", "string")
    assert (receipt["updated"], receipt["null_keys_dropped"]) == (1, 1)
    assert main([*place, "--override", "--mode", "full", "--yes"]) == 2
    assert "--override and --mode full cannot be used together." in capsys.readouterr().err


@pytest.mark.parametrize("flags", [["--override"], ["--replace-where", "N = 1"], ["--mode", "full"]])
def test_replacing_rows_needs_a_yes(snapshots, tmp_path, flags):
    """Without a terminal --yes is asked for before the file is even read."""
    arguments = ["stream", "import", "Account", str(tmp_path / "none.csv"), "--dir", snapshots, *flags]
    assert (main(arguments), main([*arguments, "--yes"])) == (2, 4)
    assert (main(arguments[:6]), main([*arguments[:6], "--mode", "nonsense"])) == (4, 2)


@pytest.fixture
def place(tmp_path):
    """A store with the empty tenant acme, as options."""
    freezeframe.open(tmp_path / "store").tenant("acme", create=True)
    return ["--root", str(tmp_path / "store"), "--tenant", "acme"]


@pytest.fixture
def sync(tmp_path):
    """Three files of two streams, as a sync names them."""
    folder = tmp_path / "sync"
    folder.mkdir()
    (folder / "Account-20261001T060000.csv").write_text("Id,Name\n007,Ada\n")
    (folder / "Lead-20261001T060000.CSV").write_text("Id,Name\n1,Lin\n2,Mo\n")
    (folder / "notes.txt").write_text("Id\n1\n")
    return folder


def test_several_files_are_one_version(place, sync, capsys, tmp_path):
    """Each file goes to the stream of its name; all become visible together, with one receipt each."""
    files = [str(file) for file in sorted(sync.glob("*.[cC]*"))]
    assert main(["import", *files, "--key", "Id", "--dry-run", "--json", *place]) == 0
    looked = json.loads(capsys.readouterr().out)
    assert [(item["stream"], item["inserted"], item["committed"]) for item in looked] == [
        ("Account", 1, False),
        ("Lead", 2, False),
    ]
    assert main(["import", *files, "--key", "Id", "--json", *place]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [(item["stream"], item["inserted"], item["committed"]) for item in told] == [
        ("Account", 1, True),
        ("Lead", 2, True),
    ]
    tenant = freezeframe.open(tmp_path / "store").tenant("acme")
    assert len(list(tenant.history())) == 1
    assert tenant.stream("Account").read()["Id"].tolist() == ["007"]


def test_one_wrong_file_imports_none(place, sync, capsys, tmp_path):
    """A file of another kind and one that is not there are told; nothing is written."""
    first = str(sync / "Account-20261001T060000.csv")
    for other, code in ((sync / "notes.txt", 2), (sync / "no.csv", 4)):
        assert code == main(["import", first, str(other), "--key", "Id", *place])
    assert freezeframe.open(tmp_path / "store").tenant("acme").streams() == ()
    assert main(["import", first, first, "--stream", "A", *place]) == 2


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_what_export_writes_import_takes_in(place, sync, capsys, tmp_path, kind):
    """All streams of a version go to a folder, and the folder comes back whole; never over a file."""
    out = ["export", str(tmp_path / "out"), "--kind", kind, "--version", "0", *place]
    assert main(["import", str(sync), "--key", "Id", *place]) == 0
    assert main(["tenant", "create", "copy", "--root", place[1]]) == 0
    capsys.readouterr()

    assert main([*out, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    names = ["Account", "Lead"]
    assert [(name, str(tmp_path / f"out/{name}.snapshot.{kind}")) for name in names] == [
        (item["stream"], item["file"]) for item in told
    ]
    assert main(out) == 2
    assert main(["export", str(tmp_path / "other"), "--stream", "Account", "--stream", "No", *place]) == 4
    assert not (tmp_path / "other").exists()
    (tmp_path / "file").touch()
    assert main(["export", str(tmp_path / "file"), *place]) == 2
    assert main(["export", str(tmp_path / "file" / "below"), *place]) == 1
    assert ".part" not in capsys.readouterr().err

    assert main(["import", str(tmp_path / "out"), "--key", "Id", *place[:3], "copy"]) == 0
    store = freezeframe.open(tmp_path / "store")
    copies, before = store.tenant("copy"), store.tenant("acme")
    twice = ["export", str(tmp_path / "twice"), "--stream", "Lead", "--stream", "Lead", *place]
    assert main(twice) == 0
    assert [before.stream(item).read(as_="arrow") for item in names] == [
        copies.stream(item).read(as_="arrow") for item in names
    ]


def test_files_that_would_replace_each_other_are_refused(place, sync, capsys):
    """Two files of a stream are updates one after the other, but never two full contents."""
    (sync / "Lead-20261002T060000.csv").write_text("Id,Name\n2,Moe\n3,Li\n")
    files = ["import", str(sync), "--key", "Id", *place]
    for flags in (["--mode", "full"], ["--override"]):
        assert main([*files, *flags, "--yes"]) == 2
        assert "2 files are of the stream 'Lead'." in capsys.readouterr().err
    assert main([*files, "--json"]) == 0
    told = {
        load["stream"]: (load["inserted"], load["updated"]) for load in json.loads(capsys.readouterr().out)
    }
    assert told == {"Account": (1, 0), "Lead": (3, 0)}


def test_a_name_with_a_dash_comes_back(place, sync, tmp_path):
    """A file that export wrote is of the stream of its whole name; a folder without rows is told."""
    file = str(sync / "Lead-20261001T060000.CSV")
    assert main(["import", file, "--stream", "new-lead", "--key", "Id", *place]) == 0
    assert main(["export", str(tmp_path / "out"), *place]) == 0
    assert main(["import", str(tmp_path / "out"), *place]) == 0
    assert freezeframe.open(tmp_path / "store").tenant("acme").streams() == ("new-lead",)
    (tmp_path / "empty").mkdir()
    assert main(["import", str(tmp_path / "empty"), *place]) == 4


def test_the_first_mistakes_are_told_in_words_of_the_command_line(place, sync, tmp_path, capsys, monkeypatch):
    """No tenant at all, and a new stream without a key."""
    monkeypatch.chdir(tmp_path)
    file = str(sync / "Lead-20261001T060000.CSV")
    assert main(["import", file, "--key", "Id"]) == 4
    assert "--tenant (freezeframe tenant create" in capsys.readouterr().err
    assert main(["import", file, *place]) == 2
    assert "--key Id" in capsys.readouterr().err


def test_all_tenants_are_cleaned_and_a_damaged_one_stops_none(place, capsys, tmp_path):
    """A row for each tenant; the exit code tells that one could not be read."""
    root = place[:2]
    for name in ("b", "c"):
        assert main(["tenant", "create", name, *root]) == 0
    freezeframe.open(root[1]).tenant("b").files.write("f", b"1")
    entries = (file for file in (tmp_path / "store").rglob("*.json") if "/log/" in str(file))
    next(file for file in entries if b'"f"' in file.read_bytes()).write_bytes(b"{")
    capsys.readouterr()

    assert main(["gc", "--all", "--yes", *place]) == 2
    assert main(["gc", "--all", *root]) == 2
    capsys.readouterr()
    assert main(["gc", "--all", "--yes", "--json", *root]) == 1
    told = json.loads(capsys.readouterr().out)
    assert [(item["tenant"], not item["error"]) for item in told] == [
        ("acme", True),
        ("b", False),
        ("c", True),
    ]


def test_cleaning_all_tenants_removes_what_crashes_left_of_tenants(place, tmp_path):
    """A folder that belongs to no tenant, of a creation or a dry run that died long ago; and sent bytes.

    What was sent to the service and never published is removed by a worker as well.
    """
    left = tmp_path / "store" / "tenants" / ("a" * 32) / "half"
    left.parent.mkdir()
    left.write_bytes(b"1")
    os.utime(left, (0, 0))
    blob = uploads_folder(str(tmp_path / "store"), Settings()) / ("b" * 32) / ("c" * 32)
    blob.mkdir(parents=True)
    os.utime(blob, (0, 0))

    assert main(["gc", "--all", "--dry-run", *place[:2]]) == 0
    assert (left.exists(), blob.exists()) == (True, True)
    assert main(["gc", "--all", "--yes", *place[:2]]) == 0
    assert (left.parent.exists(), blob.parent.exists()) == (False, False)
    blob.mkdir(parents=True)
    os.utime(blob, (0, 0))
    assert main(["worker", "--drain", *place[:2]]) == 0
    assert not blob.parent.exists()
