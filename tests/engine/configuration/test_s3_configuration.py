"""What Spark is told of a bucket, where, and what it is not told."""

import tomllib
from fnmatch import fnmatch
from pathlib import Path

import pytest

from freezeframe.engine.configuration import (
    EXCLUDES,
    PACKAGES,
    bucket_variables,
    server_configuration,
    server_options,
    session_options,
)
from freezeframe.settings import Settings

OWN = {"s3_access_key_id": "mine", "s3_secret_access_key": "s3cr3t", "s3_endpoint": "https://store"}


@pytest.fixture(autouse=True)
def _no_variables(monkeypatch):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def jars(tmp_path):
    """A folder with jars."""
    for name in ("hadoop-aws-3.4.2.jar", "s3-2.29.52.jar"):
        (tmp_path / name).write_bytes(b"")
    return tmp_path


def test_a_server_knows_of_buckets(jars):
    """With a folder of jars it has them all, without one Spark fetches them; no secret is in its options."""
    settings = Settings(root="s3://bucket/x", spark_jars_dir=jars, **OWN)
    without = settings.model_copy(update={"spark_jars_dir": None})
    fetched = server_options(without)
    assert (PACKAGES, EXCLUDES) == (fetched["spark.jars.packages"], fetched["spark.jars.excludes"])
    assert server_options(without.model_copy(update={"root": "data"})) == {}
    options = server_options(settings)
    assert [f"{jars}/hadoop-aws-3.4.2.jar", f"{jars}/s3-2.29.52.jar"] == options["spark.jars"].split(",")
    assert "spark.jars.packages" not in options
    assert options["spark.hadoop.fs.s3a.endpoint"] == "https://store"
    assert "s3cr3t" not in str(server_configuration(settings, "local[2]"))
    assert bucket_variables(settings) == {"AWS_ACCESS_KEY_ID": "mine", "AWS_SECRET_ACCESS_KEY": "s3cr3t"}
    assert bucket_variables(settings.model_copy(update={"root": "data"})) == {}


def test_what_spark_fetches_is_what_the_image_has():
    """The packages are among the pinned jars, in their versions; none of those is excluded."""
    pins = (Path(__file__).parents[3] / "tools" / "jars.toml").read_text()
    pinned = [load["coordinate"] for load in tomllib.loads(pins)["jar"] if load["set"] == "s3"]
    excluded = [tuple(item.split(":")) for item in EXCLUDES.split(",")]

    assert set(PACKAGES.split(",")) <= set(pinned)
    for coordinate in pinned:
        group, artifact, _ = coordinate.split(":")
        assert not any(fnmatch(group, one) and fnmatch(artifact, two) for one, two in excluded), coordinate


def test_other_keys_mean_another_server_where_the_store_is_a_bucket(jars):
    """A server holds on to the keys that it met first; jobs of a directory share one."""
    settings = Settings(root="s3://bucket/x", spark_jars_dir=jars, **OWN)
    other = settings.model_copy(update={"s3_secret_access_key": "another"})
    assert server_options(settings) != server_options(other)
    here = {"root": "data"}
    assert server_options(settings.model_copy(update=here)) == server_options(other.model_copy(update=here))


@pytest.mark.parametrize(
    ("server", "is_told"),
    [
        ("auto", True),
        ("spark://host:7077", True),
        ("sc://localhost:15002", True),
        ("sc://host:15002/;use_ssl=true;token=t", True),
        ("sc://host:15002", False),
    ],
)
def test_a_session_gets_the_keys_where_nobody_can_listen(server, is_told):
    """The settings' own keys, over loopback or TLS."""
    options = session_options(Settings(root="s3://bucket", **OWN), server)
    assert is_told == (options.get("fs.s3a.secret.key") == "s3cr3t")
    assert options["fs.s3a.endpoint"] == "https://store"


def test_variables_of_this_machine_are_not_sent_elsewhere(monkeypatch):
    """They say who this machine is; a server elsewhere has a role of its own."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "id")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s3cr3t")
    there = session_options(Settings(root="s3://bucket"), "sc://host/;use_ssl=true")
    assert "s3cr3t" not in there.values()
    assert "fs.s3a.aws.credentials.provider" not in there
    assert "s3cr3t" in session_options(Settings(root="s3://bucket"), "auto").values()
    assert session_options(Settings(root="data"), "auto") == {}
