"""``freezeframe.open``: what can be a store's place, and a job of streams and files in it."""

import pandas as pd
import pytest

import freezeframe
from freezeframe.errors import InvalidName, InvalidOption


def test_a_directory_need_not_exist(tmp_path):
    """Opening writes nothing; the first tenant makes the directory, and others find it there."""
    store = freezeframe.open(tmp_path / "new" / "store")
    assert not (tmp_path / "new").exists()
    store.tenant("acme", create=True)
    assert freezeframe.open(str(tmp_path / "new" / "store")).tenants() == ("acme",)
    assert freezeframe.open(tmp_path / "new" / "store", environment="staging").tenants() == ()


@pytest.mark.parametrize(
    "root",
    ["", "s3://", "gs://b", "ftp://host/x", "file:///x", "https://x/y", "http://169.254.169.254/latest"],
)
def test_what_is_no_place_is_refused(root):
    """An empty path and other URLs are refused."""
    with pytest.raises(InvalidOption):
        freezeframe.open(root)


def test_a_file_is_no_store(tmp_path):
    """A file where the directory should be, and an environment that cannot be one, are refused."""
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(InvalidOption):
        freezeframe.open(tmp_path / "file")
    with pytest.raises(InvalidName):
        freezeframe.open(tmp_path, environment="../other")


def test_spark_works_in_a_tenants_folder(tmp_path):
    """Rows are merged in a tenant of a store and in its clone; the two go their own ways."""
    store = freezeframe.open(tmp_path)
    acme = store.tenant("acme", create=True)
    with acme.job("first") as job:
        job.stream("Account").update(pd.DataFrame({"Id": ["007", "8"], "N": [1, 2]}), key="Id")
        job.files.write_json("tenant-config.json", {"a": 1})
    clone = store.clone_tenant("acme", "copy")
    receipt = clone.stream("Account").update(pd.DataFrame({"Id": ["8", "9"], "N": [20, 30]}))
    assert (receipt.inserted, receipt.updated, receipt.version) == (1, 1, 1)
    assert dict(clone.stream("Account").read().set_index("Id")["N"]) == {"007": 1, "8": 20, "9": 30}
    acme.stream("Account").update(pd.DataFrame({"Id": ["007"], "N": [5]}))
    assert dict(acme.stream("Account").read().set_index("Id")["N"]) == {"007": 5, "8": 2}
    assert clone.files.read_json("tenant-config.json") == {"a": 1}
