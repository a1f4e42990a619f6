"""Snapshot files that a tenant's streams adopted, in the working copies of runs."""

from functools import partial

import pandas as pd
import pytest
from tests import given
from tests.working_copies import run_in_working_copy

from freezeframe.script import get_snapshot, update_snapshot
from freezeframe.storage import LocalStorage

NAME = "Account.snapshot.csv"
CSV = "Id,Name\n007,Ann\n8,Bo\n"


@pytest.fixture
def tenant(tmp_path):
    """A tenant with a snapshot file that no stream has adopted yet."""
    made = given.tenant(LocalStorage(tmp_path / "tenant"))
    made.files.write_text(NAME, CSV)
    return made


@pytest.fixture
def run(tenant, tmp_path):
    """Do what a run does with a script's working copy; gives the run's receipt."""
    return partial(run_in_working_copy, tenant, tmp_path)


def update(**rows):
    """A script that updates the stream."""
    frame = pd.DataFrame({"Id": list(rows), "Name": list(rows.values())})
    return lambda folder: update_snapshot(folder, "Account", "Id", frame)


def names(tenant):
    """The stream's rows."""
    return dict(tenant.stream("Account").read().sort_values("Id").to_numpy().tolist())


def test_what_freezeframe_exported_is_no_version_of_the_file(tenant, run):
    """The stream has the new rows and each run's copy shows them; the tenant's file is what was adopted."""
    seen = []
    for rows in ({"9": "Cy"}, {"9": "Di"}):
        receipt = run(
            lambda folder, rows=rows: (
                seen.append((folder / NAME).read_text()),
                update(**rows)(folder),
                seen.append((folder / NAME).read_text()),
            )
        )
        assert receipt.files_written == ()
    assert seen == [CSV, CSV + "9,Cy\n", CSV + "9,Cy\n", CSV + "9,Di\n"]
    assert tenant.files.read_text(NAME) == CSV
    assert len(list(tenant.files.history(NAME))) == 1
    assert names(tenant) == {"007": "Ann", "8": "Bo", "9": "Di"}


def test_changes_of_the_stream_by_others_outlast_an_older_copy(tenant, run):
    """What came to the stream without the file is in the next run's copy; no run brings old rows back."""
    run(update(**{"9": "Cy"}))
    tenant.stream("Account").update(pd.DataFrame({"Id": ["8", "9"], "Name": ["Bob", "Cyd"]}))
    copies = []
    run(lambda folder: copies.append((folder / NAME).read_text()))
    assert copies == ["Id,Name\n007,Ann\n8,Bob\n9,Cyd\n"]
    run(update(**{"007": "Anna"}))
    assert names(tenant) == {"007": "Anna", "8": "Bob", "9": "Cyd"}


def test_what_the_script_wrote_is_kept_and_adopted_once(tenant, run):
    """Over our copy, before an update of the same run or by itself; nothing is taken over a second time."""
    run(update(**{"9": "Cy"}))

    def write_and_update(folder):
        (folder / NAME).write_text("Id,Name\n2,New\n")
        update(**{"3": "Row"})(folder)

    assert run(write_and_update).files_written == (NAME,)
    assert tenant.files.read_text(NAME) == "Id,Name\n2,New\n"
    assert names(tenant) == {"2": "New", "3": "Row"}
    seen = []
    receipt = run(lambda folder: seen.append(len(get_snapshot(folder, "Account"))))
    assert (seen, dict(receipt.streams), receipt.files_written) == ([2], {}, ())

    receipt = run(lambda folder: (folder / NAME).write_text("Id,Name\n2,Newer\n"))
    assert ((NAME,), ["Account"]) == (receipt.files_written, list(receipt.streams))
    assert names(tenant) == {"2": "Newer"}
    assert run(update(**{"4": "Four"})).files_written == ()
    assert names(tenant) == {"2": "Newer", "4": "Four"}


def test_a_refreshed_copy_is_no_read_of_the_stream(tenant, run):
    """A run that writes without reading meets no conflict with who was quicker."""
    run(update(**{"9": "Cy"}))

    def quicker(_):
        tenant.stream("Account").update(pd.DataFrame({"Id": ["8"], "Name": ["Bob"]}))

    assert run(quicker).files_written == ()
    assert names(tenant)["8"] == "Bob"


def test_a_file_that_was_removed_or_is_none_of_a_stream_is_left(tenant, run):
    """Removed by a script it is gone for the tenant too; other names mean nothing."""
    tenant.files.write_text("Other.snapshot.csv", "Id\n1\n")
    tenant.files.write_text("maps/Account.snapshot.csv", CSV)
    run(update(**{"9": "Cy"}))
    receipt = run(lambda folder: (folder / NAME).unlink())
    assert (receipt.files_deleted, receipt.files_written) == ((NAME,), ())
    assert [item.path for item in tenant.files.list(recursive=True)] == [
        "Other.snapshot.csv",
        "maps/Account.snapshot.csv",
    ]
