"""``freezeframe demo``: the whole way from sync folders to kept snapshots, as a user runs it."""

import csv
import json
import shutil

import pytest
from tests.cli.test_json_output import problems

from freezeframe.cli.demo import inputs
from freezeframe.cli.demo.command import _step
from freezeframe.cli.main import main
from freezeframe.script import get_snapshot
from freezeframe.testing import sync_output

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def told(spark_settings, spark_session, tmp_path_factory):
    """The demo on invented data, run once: what it printed as JSON, and what it left."""
    keep = tmp_path_factory.mktemp("demo") / "kept"
    printed = tmp_path_factory.mktemp("printed") / "out.json"
    with printed.open("w") as file, pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.stdout", file)
        patch.delenv("FREEZEFRAME_ENGINE")
        assert main(["demo", "--json", "--keep", str(keep)]) == 0
    told = json.loads(printed.read_text())
    assert problems("demo", told) == []
    return told, keep


def test_each_job_counts_the_fate_of_its_rows(told):
    """The table's counts are those that follow from the two syncs themselves."""
    updates = {(row["tenant"], row["job_id"], row["stream"]): row for row in told[0]["updates"]}
    first, second = sync_output(1), sync_output(2)
    known = {row["Id"]: row for row in first["Lead"]}
    resent = [row for row in second["Lead"] if row == known.get(row["Id"])]
    lead = updates["acme", 2, "Lead"]

    assert updates["acme", 1, "Lead"]["inserted"] == len(first["Lead"])
    assert lead["unchanged"] == len(resent)
    assert lead["inserted"] == len([row for row in second["Lead"] if row["Id"] not in known])
    assert lead["inserted"] + lead["updated"] + lead["unchanged"] == len(second["Lead"])
    assert all(row["seconds"] > 0 for row in updates.values())


def test_the_report_holds_the_window_of_the_second_sync(told):
    """Lines before the window are those of the first sync, lines in it those of the second."""
    kept = get_snapshot(told[1] / "acme" / "snapshots", "GeneralLedgerCashReport", as_="arrow").to_pylist()
    first, second = sync_output(1), sync_output(2)
    window = min(row["Date"] for row in second["GeneralLedgerCashReport"])
    expected = [row for row in first["GeneralLedgerCashReport"] if row["Date"] < window]
    expected += second["GeneralLedgerCashReport"]

    assert sorted((str(row["Date"]), row["Amount"], row["Memo"] or "") for row in kept) == sorted(
        (row["Date"], float(row["Amount"]), row["Memo"]) for row in expected
    )


def test_text_survives_two_syncs(told):
    """Leading zeros, 20-digit ids, quoted newlines and "NA" are in the snapshot as they were sent."""
    kept = {row["Id"]: row for row in get_snapshot(told[1] / "acme" / "snapshots", "Lead").to_dict("records")}
    for row in sync_output(1)["Lead"]:
        for column in ("PostalCode", "ExternalId__c", "Segment__c", "Street", "FirstName"):
            value = kept[row["Id"]][column]
            assert row[column] == ("" if not isinstance(value, str) else value)


def test_the_demo_says_what_spark_took(told):
    """Its version, and for each job the seconds until there was a session."""
    assert told[0]["spark"].startswith("4.")
    assert all(0 < job["spark_seconds"] < job["seconds"] for job in told[0]["jobs"])


def test_the_neighbour_sees_nothing(told):
    """The other tenant's streams hold its own rows only, and a name cannot lead to the first one's."""
    acme, globex = (get_snapshot(told[1] / name / "snapshots", "Lead") for name in ("acme", "globex"))

    assert not set(acme["Id"]) & set(globex["Id"])
    assert told[0]["neighbour"]["refused"]["code"] == "INVALID_NAME"


def test_the_look_back_shows_what_changed_and_what_stayed(told):
    """The row's cells before and after are those of the two versions; an empty value cleared nothing."""
    cells = {cell["column"]: cell for cell in told[0]["look_back"]}

    assert cells["Status"]["changed"]
    assert cells["Phone"]["before"] == cells["Phone"]["after"]
    assert cells["Phone"]["after"]


def test_the_job_wrote_what_a_target_wants(told):
    """Leads of one integration with what another has billed, and the ledger's sums of all months."""
    output = told[1] / "acme" / "etl-output"
    with (output / "LeadsWithBilling.csv").open(newline="") as text:
        leads = list(csv.DictReader(text))
    with (output / "LedgerByMonth.csv").open(newline="") as text:
        months = {row["Month"] for row in csv.DictReader(text)}

    assert len(leads) == len(sync_output(1)["Lead"]) + 6
    assert any(float(row["Billed"] or 0) > 0 for row in leads)
    assert {"2026-07", "2026-08", "2026-09"} <= months


def test_a_folder_that_is_in_use_is_left_alone(capsys, tmp_path):
    """--keep takes an empty or a new folder only."""
    (tmp_path / "mine.txt").write_text("mine")

    assert main(["demo", "--keep", str(tmp_path), "--json"]) == 2
    assert json.loads(capsys.readouterr().err)["error"]["code"] == "INVALID_OPTION"
    assert [file.name for file in tmp_path.iterdir()] == ["mine.txt"]


def test_samples_of_another_layout_are_refused(capsys, tmp_path):
    """A folder without the exports that the demo knows is named, and what it looks for."""
    assert main(["demo", "--samples", str(tmp_path), "--json"]) == 4
    assert "Lead-*.csv" in json.loads(capsys.readouterr().err)["error"]["cause"]


def test_real_exports_make_two_syncs(samples, tmp_path):
    """From real exports: the files as they are, then the incremental report and derived leads."""
    inputs.from_samples(samples, tmp_path / "first", 1)
    inputs.from_samples(samples, tmp_path / "second", 2)
    streams = [
        {file.name.rpartition("-")[0] for file in (tmp_path / name).iterdir()} for name in ("first", "second")
    ]

    assert {"Lead", "Invoice", "GeneralLedgerCashReport"} <= streams[0]
    assert streams[1] == {"Lead", "GeneralLedgerCashReport"}
    shutil.rmtree(tmp_path / "first")


def test_steps_are_told_to_people_alone(capsys):
    """Each is a line on standard error; a program that reads JSON gets none."""
    for as_json in (False, True):
        with _step("acme, job 1", as_json=as_json):
            pass
    assert capsys.readouterr() == ("", "• acme, job 1\n")
