"""The files beside a stream follow it, whichever door changes it, and an erasure leaves none behind."""

import pandas as pd
import pytest

import freezeframe
import freezeframe.gluestick as gs
from freezeframe import update_snapshot
from freezeframe.cli.main import main

PEOPLE = pd.DataFrame({"Id": ["anna-4711", "bert-4712"], "n": [1, 2]})


def left(folder, suffix):
    """gluestick's functions leave the file."""
    gs.snapshot_records(PEOPLE, "People", folder, pk="Id", use_csv=suffix == "csv")


def adopted(folder, suffix):
    """The file was there before the stream."""
    path = folder / f"People.snapshot.{suffix}"
    (PEOPLE.to_csv if suffix == "csv" else PEOPLE.to_parquet)(path, index=False)
    update_snapshot(folder, "People", ["Id"], PEOPLE)


@pytest.fixture(params=[(made, suffix) for made in (left, adopted) for suffix in ("csv", "parquet")])
def place(request, tmp_path):
    """A tenant of a store, its folder on the disk, and the file beside its stream."""
    made, suffix = request.param
    store = freezeframe.open(tmp_path / "store")
    tenant = store.tenant("acme", create=True)
    folder = tmp_path / "store/tenants" / store.folder("acme")
    made(folder, suffix)
    return tenant, folder, folder / f"People.snapshot.{suffix}"


def keys(path):
    """The keys in a file; None: there is no file."""
    if not path.exists():
        return None
    return sorted((pd.read_csv if path.suffix == ".csv" else pd.read_parquet)(path)["Id"])


def by_handle(tenant, folder):
    """Through the store's tenant."""
    return tenant.erase("People", ["anna-4711"]).left.to_json()


def by_folder(_, folder):
    """Through the script's directory."""
    return freezeframe.open_tenant(folder).erase("People", ["anna-4711"]).left.to_json()


def by_command(tenant, folder):
    """Through the command."""
    root = ["--root", str(folder.parent.parent), "--tenant", "acme"]
    code = main(["tenant", "erase", "People", "--key", "anna-4711", "--yes", *root])
    return {"remaining": code, "files": []}


@pytest.mark.parametrize("door", [by_handle, by_folder, by_command])
def test_an_erased_row_goes_from_the_file_at_every_door(place, door):
    """The file has the stream's rows; none of the bytes beside the stream has the erased key."""
    tenant, folder, file = place
    outcome = door(tenant, folder)
    assert (outcome["remaining"], outcome["files"], keys(file)) == (0, [], ["bert-4712"])
    whole = [path.read_bytes() for path in folder.rglob("*") if path.is_file()]
    assert [content for content in whole if b"anna-4711" in content] == []


def test_a_file_that_another_program_changed_is_named(place, capsys):
    """It is no copy of ours, so it stays as it is; the receipt names it and the command ends with 1."""
    tenant, folder, _ = place
    PEOPLE.assign(n=[5, 6]).to_csv(folder / "People.snapshot.csv", index=False)
    assert tenant.erase("People", ["anna-4711"], dry_run=True).left.files == ("People.snapshot.csv",)
    done = tenant.erase("People", ["anna-4711"])
    assert (done.left.files, done.left.is_clean) == (("People.snapshot.csv",), False)
    root = ["--root", str(folder.parent.parent), "--tenant", "acme"]
    assert main(["tenant", "erase", "People", "--key", "bert-4712", "--yes", *root]) == 1
    assert "People.snapshot.csv" in capsys.readouterr().out


def in_job(tenant):
    """An update that is committed with others."""
    with tenant.job() as job:
        job.stream("People").update(PEOPLE.assign(Id=["c", "d"]))


CHANGES = {
    "update": lambda tenant: tenant.stream("People").update(PEOPLE.assign(Id=["c", "d"])),
    "override": lambda tenant: tenant.stream("People").update(PEOPLE.head(1), "Id", override=True),
    "job": in_job,
    "restore": lambda tenant: tenant.restore(tenant.history()[-1].version),
    "retype": lambda tenant: tenant.stream("People").retype("n", "string"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_the_file_follows_each_change(place, change):
    """Also of a door that knows nothing of files: it has the stream's rows after the commit."""
    tenant, _, file = place
    update_snapshot(file.parent, "People", "Id", PEOPLE.assign(Id=["x", "y"]))
    CHANGES[change](tenant)
    assert keys(file) == sorted(tenant.stream("People").read()["Id"])


def test_the_file_goes_with_a_dropped_stream_and_comes_back_with_it(place):
    """A script does not find the rows of a dropped stream again; a restored one has its file again."""
    tenant, folder, file = place
    version = tenant.version
    tenant.drop_stream("People")
    assert (keys(file), freezeframe.get_snapshot(folder, "People")) == (None, None)
    tenant.restore(version)
    assert keys(file) == ["anna-4711", "bert-4712"]
    assert sorted(freezeframe.get_snapshot(folder, "People")["Id"]) == ["anna-4711", "bert-4712"]
