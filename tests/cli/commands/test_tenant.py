"""``freezeframe tenant list|create|delete|clone|export|import``: the tenants of a store."""

import json

import pandas as pd
import pytest

import freezeframe
from freezeframe.cli.main import main
from freezeframe.control.database import ControlDatabase
from freezeframe.control.queue import JobQueue
from freezeframe.control.schedules import Schedules
from freezeframe.control.submission import Submission


@pytest.fixture
def root(tmp_path):
    """A store that is not there yet."""
    return str(tmp_path / "store")


@pytest.fixture
def told(capsys, root):
    """Run a command on the store and give the JSON that it prints."""

    def run(*arguments):
        assert main(["tenant", *arguments, "--root", root, "--json"]) == 0
        return json.loads(capsys.readouterr().out)

    return run


def filled(root):
    """Make the tenant acme with a stream and a file."""
    with freezeframe.open(root).tenant("acme", create=True).job() as job:
        job.stream("Account").update(pd.DataFrame({"Id": ["007"]}), key="Id")
        job.files.write("a/b.txt", b"text")


def test_tenants_are_made_once_and_listed_by_pages(capsys, told, root):
    """Making one again changes nothing; a page goes on after its last id; environments are apart."""
    assert main(["tenant", "list", "--root", root]) == 4
    for name in ("acme", "acme", "globex", "initech"):
        assert (name, -1) == tuple(told("create", name)[field] for field in ("tenant", "version"))
    told("create", "hidden", "--env", "test")

    assert told("list")["tenants"] == ["acme", "globex", "initech"]
    assert told("list", "--after", "acme", "--limit", "1")["tenants"] == ["globex"]
    assert told("list", "--prefix", "x")["tenants"] == []
    assert main(["tenant", "create", "../x", "--root", root]) == 2
    capsys.readouterr()
    assert main(["tenant", "list", "--root", root, "--limit", "1"]) == 0
    assert "--after acme" in capsys.readouterr().out


def test_delete_needs_a_yes_and_says_what_went(capsys, told, root):
    """A dry run tells what is there; then nothing is left, and an unknown tenant is not found."""
    filled(root)
    assert tuple(told("delete", "acme", "--dry-run")[name] for name in ("streams", "files")) == (
        ["Account"],
        ["a/b.txt"],
    )
    assert main(["tenant", "delete", "acme", "--root", root]) == 2
    assert told("list")["tenants"] == ["acme"]

    removed = told("delete", "acme", "--yes")

    assert tuple(removed[name] for name in ("tenant", "streams", "files")) == ("acme", 1, 1)
    assert told("list")["tenants"] == []
    assert main(["tenant", "delete", "acme", "--yes", "--root", root]) == 4


def test_jobs_go_with_their_tenant(capsys, told, root):
    """What waits in the store's queue for a tenant is not for the next one of its id; schedules end too.

    A tenant that is not there is told before anything is taken away: jobs may wait for it to be made.
    """
    filled(root)
    database = ControlDatabase.open(f"sqlite:///{root}/_freezeframe/control.db")
    queue = JobQueue(database)
    queue.submit(Submission("{}", environment="default", tenant="acme", job_id="j"))
    queue.submit(Submission("{}", environment="default", tenant="globex", job_id="j"))
    create = ["schedule", "create", "s", __file__, "--cron", "@daily", "--root", root, "--tenant"]
    assert [main([*create, tenant]) for tenant in ("acme", "globex")] == [0, 0]
    capsys.readouterr()
    schedules = Schedules(database)
    mine = schedules.get("default", "acme", "s").definition
    assert mine.incarnation == freezeframe.open(root).folder("acme")

    told("delete", "acme", "--yes")
    assert main(["tenant", "delete", "globex", "--yes", "--root", root]) == 4

    assert [job.tenant for job in queue.list().jobs] == ["globex"]
    assert [(item.definition.tenant, item.definition.incarnation) for item in schedules.list()] == [
        ("globex", "")
    ]
    database.close()


def test_a_clone_has_the_newest_state(capsys, told, root):
    """Streams and files are there; an id that is taken is refused."""
    filled(root)
    told("clone", "acme", "copy")

    copy = freezeframe.open(root).tenant("copy")
    assert (copy.stream("Account").read()["Id"].tolist(), copy.files.read("a/b.txt")) == (["007"], b"text")
    assert main(["tenant", "clone", "acme", "copy", "--root", root]) == 2
    assert main(["tenant", "clone", "nope", "other", "--root", root]) == 4


def test_a_clone_goes_to_another_store(capsys, told, root, tmp_path):
    """Its newest state, sealed files under the new tenant's key; what went is named with what to use now."""
    filled(root)
    other = str(tmp_path / "elsewhere")
    told("clone", "acme", "acme", "--to-root", other, "--to-env", "test")

    copy = freezeframe.open(other, environment="test").tenant("acme")
    assert (copy.stream("Account").read()["Id"].tolist(), copy.files.read("a/b.txt")) == (["007"], b"text")
    assert (
        main(["tenant", "clone", "acme", "acme", "--root", root, "--to-root", other, "--to-env", "test"]) == 2
    )
