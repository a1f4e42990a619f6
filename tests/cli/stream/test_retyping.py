"""``freezeframe stream retype``: a column's type, on the command line."""

import pandas as pd
import pytest

from freezeframe.cli.main import main
from freezeframe.script import open_tenant

GROUP = "stream"


@pytest.fixture
def snapshots(tmp_path):
    """A tenant with one stream."""
    rows = pd.DataFrame({"Id": [1, 2], "zip": ["3000", "0800"]})
    open_tenant(tmp_path).stream("Account").update(rows, key=["Id"])
    return str(tmp_path)


def test_a_column_is_retyped_after_a_look(told, snapshots):
    """A dry run tells the same and writes nothing; the command is one version, with who and why."""
    expected = {"stream": "Account", "column": "Id", "type_before": "long", "type_after": "string", "rows": 2}
    looked = told("retype", "Account", "Id", "string", "--dry-run")
    assert {**expected, "tenant_version": 0, "committed": False} == looked
    done = told("retype", "Account", "Id", "string", "--who", "ada", "--message", "Ticket 4711")
    assert {**expected, "tenant_version": 1, "committed": True} == done

    tenant = open_tenant(snapshots)
    entry = next(tenant.history())
    assert (entry.who, entry.message) == ("ada", "retype Account.Id as string: Ticket 4711")
    assert list(tenant.stream("Account").read()["Id"]) == ["1", "2"]


def test_what_would_be_lost_is_told_by_its_key(capsys, snapshots):
    """Exit code 2 for a value, a type or an option that does not do, 4 for what is not there."""
    assert main(["stream", "retype", "Account", "zip", "long", "--dir", snapshots]) == 2
    assert "Id 2, value '0800'" in capsys.readouterr().err
    assert main(["stream", "retype", "Account", "zip", "uuid", "--dir", snapshots]) == 2
    assert main(["stream", "retype", "Account", "nope", "long", "--dir", snapshots]) == 2
    assert main(["stream", "retype", "Nobody", "Id", "string", "--dir", snapshots]) == 4
    assert open_tenant(snapshots).version == 0
