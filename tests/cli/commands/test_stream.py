"""``freezeframe stream``: what a tenant holds, told without Spark."""

import json
import math
from decimal import Decimal

import deltalake
import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import freezeframe
from freezeframe.cli.main import main
from freezeframe.script import open_tenant
from freezeframe.service.rows.streams import json_value


@pytest.fixture
def snapshots(tmp_path):
    """A tenant with two streams; a first write needs no Spark."""
    tenant = open_tenant(tmp_path)
    accounts = pd.DataFrame({"Id": ["007", "008"], "Name": ["[Ada]", None]})
    tenant.stream("Account").update(accounts, key=["Id"])
    tenant.stream("Owner").update(pd.DataFrame({"Id": [1]}), key=["Id"])
    return str(tmp_path)


def told(capsys, *arguments):
    """The JSON that a command prints."""
    assert main([*arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_list_names_each_stream_once(capsys, snapshots):
    """Versions, key, rows and columns of each stream, by name."""
    account = {"stream": "Account", "tenant_version": 0, "stream_version": 0, "key": ["Id"], "rows": 2}
    owner = {"stream": "Owner", "tenant_version": 1, "stream_version": 0, "key": ["Id"], "rows": 1}
    assert told(capsys, "stream", "list", "--dir", snapshots) == [
        {**account, "columns": 2},
        {**owner, "columns": 1},
    ]


def test_a_version_is_the_tenants_on_every_command(capsys, snapshots, tmp_path):
    """``--version`` is what histories and restore count; a stream's own version has an option of its own."""
    open_tenant(snapshots).stream("Account").update(pd.DataFrame({"Id": ["009"]}), key=["Id"])
    show = ["stream", "show", "Account", "--dir", snapshots]

    assert len(told(capsys, *show, "--version", "1")) == 2
    assert len(told(capsys, *show, "--stream-version", "0")) == 2
    assert len(told(capsys, *show, "--stream-version", "1")) == 3
    assert main([*show, "--stream-version", "2"]) == 4
    assert main([*show, "--stream-version", "1", "--version", "1"]) == 2
    out = ["stream", "export", "Account", "--dir", snapshots, "--to", str(tmp_path / "out")]
    (tmp_path / "out").mkdir()
    capsys.readouterr()
    file = told(capsys, *out, "--stream-version", "0")["file"]
    assert len(pd.read_csv(file)) == 2
    shown = told(capsys, "tenant", "show", "--dir", snapshots)["streams"]
    assert [(item["stream"], item["tenant_version"], item["stream_version"]) for item in shown] == [
        ("Account", 2, 1),
        ("Owner", 1, 0),
    ]


def test_an_empty_folder_has_no_streams(capsys, tmp_path):
    """A tenant without a first update is an empty list, not an error."""
    assert told(capsys, "stream", "list", "--dir", str(tmp_path)) == []
    assert main(["stream", "list", "--dir", str(tmp_path)]) == 0
    assert "holds no streams yet" in capsys.readouterr().out


def test_show_keeps_values_as_they_are(capsys, snapshots):
    """Leading zeros, brackets and nulls are shown as stored; --limit and --column narrow the answer."""
    everything = told(capsys, "stream", "show", "Account", "--dir", snapshots)
    narrow = told(capsys, "stream", "show", "Account", "--dir", snapshots, "--column", "Id", "--limit", "1")

    assert everything == [{"Id": "007", "Name": "[Ada]"}, {"Id": "008", "Name": None}]
    assert narrow == [{"Id": "007"}]
    assert main(["stream", "show", "Account", "--dir", snapshots]) == 0
    assert "[Ada]" in capsys.readouterr().out


def test_history_is_newest_first_and_by_stream(capsys, snapshots):
    """Each commit with the fate of its rows; a name narrows it to one stream."""
    both = told(capsys, "stream", "history", "--dir", snapshots)
    one = told(capsys, "stream", "history", "Account", "--dir", snapshots)

    assert [(row["version"], row["streams"]["Owner"]["inserted"]) for row in both["versions"][:1]] == [(1, 1)]
    assert one["versions"] == both["versions"][1:]


def test_explain_tells_what_becomes_of_each_file(capsys, snapshots):
    """Without a batch no Spark is needed: the files, their fate under new rows, and the reason."""
    told_of = told(capsys, "stream", "explain", "Account", "--dir", snapshots)
    assert (told_of["route"], told_of["counts"], told_of["stream_version"]) == ("upsert", None, 0)
    (file,) = told_of["files"]
    assert (file["fate"], file["rows"], file["deleted"]) == ("rewritten", 2, 0)
    assert main(["stream", "explain", "Account", "--dir", snapshots]) == 0
    assert "smaller than" in capsys.readouterr().out


def test_explain_takes_a_batch_from_a_file(capsys, snapshots, tmp_path):
    """A CSV file is read in the stream's types; for a new stream it is the whole content."""
    batch = tmp_path / "batch.csv"
    batch.write_text("Id,Name\n009,Ada\n")
    arguments = ["stream", "explain", "Lead", "--batch", str(batch), "--key", "Id", "--dir", snapshots]
    told_of = told(capsys, *arguments)
    assert (told_of["route"], told_of["stream_version"]) == ("overwrite", -1)
    assert told_of["counts"]["inserted"] == 1
    assert main([*arguments[:4], str(tmp_path / "none.csv"), "--dir", snapshots]) == 4
    assert (
        main(["stream", "explain", "Account", *arguments[3:5], "--deletes", "flag", "--dir", snapshots]) == 2
    )
    assert "--deletes flag goes with --mode full only." in capsys.readouterr().err


def test_explain_counts_what_an_override_deletes(capsys, snapshots, tmp_path):
    """Stored rows that the batch lacks."""
    batch = tmp_path / "batch.csv"
    batch.write_text("Id,Name\n009,Ada\n")
    over = ["stream", "explain", "Account", "--batch", str(batch), "--override", "--dir", snapshots]
    assert told(capsys, *over)["counts"]["deleted"] == 2


def test_path_is_the_folder_of_the_table(tmp_path, capsys):
    """With a line for each tool; an unknown stream is an error."""
    open_tenant(tmp_path).stream("Account").update(pd.DataFrame({"Id": [1]}), key=["Id"])
    shown = told(capsys, "stream", "path", "Account", "--dir", str(tmp_path))

    assert (tmp_path / "Account.snapshot" / "_delta_log").is_dir()
    assert (str(tmp_path / "Account.snapshot"), 0) == (shown["path"], shown["stream_version"])
    assert all(shown["path"] in shown[tool] for tool in ("duckdb", "polars", "delta_rs", "spark"))
    assert main(["stream", "path", "No", "--dir", str(tmp_path)]) == 4


@pytest.mark.parametrize("name", ["Account", "a b", "a%20b", "é'x"])
def test_the_lines_of_path_can_be_run(tmp_path, capsys, name):
    """Also where other tools decode or encode the name of the folder."""
    open_tenant(tmp_path).stream(name).update(pd.DataFrame({"Id": [1]}), key=["Id"])
    shown = told(capsys, "stream", "path", name, "--dir", str(tmp_path))
    tools = {"freezeframe": freezeframe, "polars": pl, "deltalake": deltalake, "duckdb": duckdb}
    lines = ["polars", "delta_rs", *(["duckdb"] if name != "Account" else [])]  # its extension is fetched
    polars, delta, *duck = [eval(shown[line], dict(tools)) for line in lines]
    rows = delta.execute("select * from t").read_all() if name == "Account" else delta

    assert [1] == polars.collect()["Id"].to_list() == pl.DataFrame(rows)["Id"].to_list()
    assert [(1,)] * len(duck) == [row for relation in duck for row in relation.fetchall()]


def test_json_of_rows_is_that_of_exports(capsys, tmp_path):
    """What JSON has no value for is the same text from every command, and as exports write it."""
    rows = pa.table(
        {
            "Id": [1, 2],
            "Amount": [math.inf, math.nan],
            "Parts": [[-math.inf], [math.nan]],
            "Price": [Decimal("1E-10"), None],
            "Raw": [b"\xff", None],
            "Counts": pa.array([[("a", math.nan)], None], pa.map_(pa.string(), pa.float64())),
        }
    )
    place = ["--dir", str(tmp_path)]
    tenant = open_tenant(tmp_path)
    tenant.stream("Note").update(pa.table({"Id": [0]}), key="Id")
    tenant.stream("Account").update(rows, key="Id")
    wanted = [
        {
            "Id": 1, "Amount": "Infinity", "Parts": ["-Infinity"], "Price": "0.0000000001", "Raw": "/w==",
            "Counts": {"a": "NaN"},
        },
        {"Id": 2, "Amount": "NaN", "Parts": ["NaN"], "Price": None, "Raw": None, "Counts": None},
    ]  # fmt: skip

    def strict(*arguments):
        assert main([*arguments, *place, "--json"]) == 0
        return json.loads(capsys.readouterr().out, parse_constant=pytest.fail)

    assert strict("stream", "show", "Account") == wanted
    for changes in (strict("stream", "diff", "Account", "0"), strict("stream", "changes", "Account")):
        assert [{name: row[name] for name in wanted[0]} for row in changes] == wanted
    assert strict("stream", "row", "Account", "1")["row"] == {**wanted[0], "Counts": [["a", "NaN"]]}
    assert json.loads(json.dumps(json_value(tenant.stream("Account").read(as_="arrow").to_pylist()))) == [
        {**row, "Counts": row["Counts"] and [["a", "NaN"]]} for row in wanted
    ]
