"""The environment of a script is built: what it needs, what the job says, and no secret of ours."""

import pytest

from freezeframe.engine.configuration import own_remote
from freezeframe.errors import InvalidOption
from freezeframe.runs.job_root import JobRoot
from freezeframe.runs.process.environment import is_secret, require_variables, script_environment
from freezeframe.runs.request import RunRequest
from freezeframe.settings import Settings

# Variables that a program which a script starts, or Python itself, takes orders from.
_HEARD = (
    *("BASH_ENV", "ENV", "PATH", "HOME", "JAVA_HOME", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "SPARK_REMOTE"),
    *("SPARK_HOME", "AWS_ENDPOINT_URL", "AWS_SECRET_ACCESS_KEY", "GIT_SSH_COMMAND", "LD_PRELOAD", "TMPDIR"),
    *("PYTHONPATH", "PYTHONSTARTUP", "PERL5OPT", "NODE_OPTIONS", "IFS", "https_proxy", "SSL_CERT_FILE"),
    *("FREEZEFRAME_ROOT", "FREEZEFRAME_MASTER_KEY_COMMAND", "ROOT_DIR", "TENANT", "snapshot_dir", "LC_ALL"),
)


def _environment(root="store", inherited=None, parameters=None, **settings):
    request = RunRequest(
        root=root,
        environment="default",
        tenant="acme",
        script="etl.py",
        job_id="1",
        parameters=parameters or {},
    )
    return script_environment(request, JobRoot(request.script.parent), Settings(**settings), inherited or {})


def test_no_way_to_a_secret_is_handed_on(tmp_path):
    """Every setting that is a secret, or tells where one is, stays out; the others go along."""
    settings = {"database_url": "postgresql://u:hunter2@h/d", "master_key_command": "echo hunter2"}
    found = _environment(**settings, state_dir=tmp_path, service_secret_file=tmp_path / "hunter2")
    assert "hunter2" not in repr(found)
    assert str(tmp_path) == found["FREEZEFRAME_STATE_DIR"]
    secret = {name for name in Settings.model_fields if is_secret(name)}
    assert {"database_url", "master_key_file", "master_key_command", "service_secret_file"} <= secret


def test_credentials_of_a_bucket_go_only_where_the_store_is_one():
    """The script's process commits to the store itself; a local store needs no credentials."""
    inherited = {"AWS_SECRET_ACCESS_KEY": "k", "PATH": "/bin", "LC_ALL": "C", "DATABASE_PASSWORD": "p"}
    local = _environment(inherited=inherited)
    assert {name: local[name] for name in inherited if name in local} == {"PATH": "/bin", "LC_ALL": "C"}
    bucket = _environment(root="s3://bucket/prefix", inherited=inherited)
    assert (bucket["AWS_SECRET_ACCESS_KEY"], "DATABASE_PASSWORD" in bucket) == ("k", False)
    key = {"s3_access_key_id": "hunter2", "s3_secret_access_key": "hunter3"}
    assert "hunter" not in repr(_environment(**key))
    opened = _environment(root="s3://bucket/prefix", **key)
    assert tuple(opened[f"FREEZEFRAME_{name.upper()}"] for name in key) == ("hunter2", "hunter3")


def test_only_the_spark_that_a_user_named_is_handed_on():
    """The address that the library has set in this process is not the user's wish for a run."""
    theirs = {"SPARK_REMOTE": "sc://elsewhere"}
    assert _environment(inherited=theirs)["SPARK_REMOTE"] == "sc://elsewhere"
    assert "SPARK_REMOTE" not in _environment(inherited=own_remote("sc://localhost:1/;token=t"))


def test_what_a_request_does_not_say_is_absent():
    """A script that asks with a default gets its default."""
    found = _environment()
    assert (found["SYNC_TYPE"], "FLOW" in found, "JOB_TYPE" in found) == ("full_sync", False, False)


def test_parameters_are_variables_of_one_prefix():
    """Whatever a parameter is called, no variable that another program listens to is changed or added."""
    without = _environment(inherited={"PATH": "/bin"})
    found = _environment(inherited={"PATH": "/bin"}, parameters=dict.fromkeys(_HEARD, "forged"))
    assert {f"PARAM_{name}": "forged" for name in _HEARD} == {
        name: text for name, text in found.items() if without.get(name) != text
    }
    assert without.keys() == {name for name in found if not name.startswith("PARAM_")}


@pytest.mark.parametrize(
    ("name", "value"),
    [("ROOT_DIR", "/"), ("FREEZEFRAME_ROOT", "x"), ("LD_PRELOAD", "x.so"), ("a-b", "1"), ("A", "\0")],
)
def test_a_variable_of_ones_own_that_cannot_be(name, value):
    """What the run itself would set, and what is not a variable, is refused."""
    with pytest.raises(InvalidOption):
        require_variables({name: value})
