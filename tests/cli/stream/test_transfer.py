"""``freezeframe stream import|export``: a stream as one file."""

import pandas as pd
import pytest

from freezeframe.cli.main import main
from freezeframe.script import open_tenant

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


def test_a_name_is_one_however_its_letters_are_written(told, tmp_path):
    """A letter and its accent may come apart; import, history and diff find the one name."""
    apart, joined = "Gera\u0308t", "Ger\u00e4t"
    rows = tmp_path / "rows.csv"
    rows.write_text("Id\n1\n")
    assert joined == told("import", apart, str(rows), "--key", "Id")["stream"]
    assert 1 == len(told("history", apart)) == len(told("history", joined))
    assert len(told("diff", apart, "0")) == 1


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


@pytest.mark.parametrize("flags", [["--override"], ["--replace-where", "N = 1"]])
def test_replacing_rows_needs_a_yes(snapshots, tmp_path, flags):
    """Without a terminal --yes is asked for before the file is even read."""
    arguments = ["stream", "import", "Account", str(tmp_path / "none.csv"), "--dir", snapshots, *flags]
    assert (main(arguments), main([*arguments, "--yes"])) == (2, 4)


def test_deleting_by_a_full_extract_needs_a_yes(snapshots, tmp_path):
    """Without a terminal --yes is asked for before the file is even read; a missing file is not found."""
    arguments = ["stream", "import", "Account", str(tmp_path / "none.csv"), "--dir", snapshots]
    assert main([*arguments, "--mode", "full"]) == 2
    assert main([*arguments, "--mode", "full", "--yes"]) == 4
    assert main(arguments) == 4
    assert main([*arguments, "--mode", "nonsense"]) == 2
