"""Spark's options: what the user's file replaces, and what a store in a bucket adds."""

import tomllib
from fnmatch import fnmatch
from pathlib import Path

import pytest

from freezeframe.engine.configuration import (
    EXCLUDES,
    REMOTE,
    bucket_variables,
    cores,
    foreign_remote,
    own_remote,
    s3_packages,
    server_configuration,
    server_options,
    session_configuration,
    session_options,
    user_defaults,
)
from freezeframe.engine.java import spark_version
from freezeframe.engine.server.launch import worker_options
from freezeframe.engine.server.server import server_folder
from freezeframe.settings import Settings

PARTITIONS, UI, PAGES = "spark.sql.shuffle.partitions", "spark.ui.enabled", "spark.buffer.pageSize"
RESULT, ADAPTIVE = "spark.driver.maxResultSize", "spark.sql.adaptive.enabled"


@pytest.fixture(autouse=True)
def defaults(tmp_path, monkeypatch):
    """The user's file; empty at first."""
    file = tmp_path / "spark-defaults.conf"
    file.write_text("")
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    return file


def configuration(master="local[2]", **settings):
    return server_configuration(Settings(**settings), master)


@pytest.mark.parametrize("master", ["local[2]", "spark://host:7077"])
def test_the_users_file_replaces_our_defaults(defaults, master):
    """Not what makes the server safe for many jobs."""
    defaults.write_text(
        "spark.sql.shuffle.partitions 64\nspark.ui.enabled=true\n"
        "spark.local.dir /scratch\nspark.connect.grpc.binding.address 0.0.0.0\nspark.master yarn\n"
    )
    found = configuration(master)
    assert (found[PARTITIONS], found[UI], found["spark.local.dir"]) == ("64", "true", "/scratch")
    assert (found["spark.connect.grpc.binding.address"], found["spark.master"]) == ("127.0.0.1", master)


def test_a_cluster_plans_as_spark_does():
    """Sizes of one small machine are no options of a cluster."""
    found = configuration("spark://host:7077")
    assert not {PARTITIONS, UI, PAGES, RESULT, ADAPTIVE} & found.keys()
    assert PARTITIONS not in session_configuration("spark://host:7077")
    assert session_configuration(None)[ADAPTIVE] == "true"
    assert session_configuration("local[2]")[ADAPTIVE] == "false"


@pytest.mark.parametrize(
    ("memory", "result", "pages"),
    [("600m", 150 * 1024**2, "1m"), ("4g", 1024**3, "1m"), ("4097m", 1024**3, None), ("64G", 1024**3, None)],
)
def test_a_local_servers_limits_follow_its_heap(memory, result, pages):
    """Results leave most of the heap; small pages only where a task never needs 8,192 of them."""
    found = configuration(spark_memory=memory)
    assert (int(found[RESULT]), found.get(PAGES)) == (result, pages)
    assert int(found[PARTITIONS]) >= 2 * cores()


def test_an_edited_file_means_another_server(defaults, tmp_path):
    """The next job starts it; a comment changes nothing."""
    settings = Settings(state_dir=tmp_path / "state")
    before = server_folder(settings, "local[2]")
    defaults.write_text("# spark.ui.enabled true\n")
    assert before == server_folder(settings, "local[2]")
    defaults.write_text("spark.ui.enabled true\n")
    assert before != server_folder(settings, "local[2]")


def test_the_file_is_read_as_java_reads_properties(defaults, monkeypatch):
    """Comments, three separators, continued lines; without a folder there is no file."""
    defaults.write_text(
        "# comment\n ! comment\n\n  spark.a   one two  \nspark.b=2\n"
        "spark.c : 3\nspark.d 4,\\\n   5\nspark.e\n"
    )
    assert user_defaults() == {"spark.a": "one two", "spark.b": "2", "spark.c": "3", "spark.d": "4,5"}
    monkeypatch.delenv("SPARK_CONF_DIR")
    assert user_defaults() == {}


def test_jars_of_the_user_and_of_the_settings_are_joined(defaults, tmp_path):
    """A list of one replaces none of the other."""
    (tmp_path / "own.jar").touch()
    defaults.write_text("spark.jars /theirs.jar\n")
    assert configuration(spark_jars_dir=tmp_path)["spark.jars"] == f"{tmp_path}/own.jar,/theirs.jar"


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
    assert (s3_packages(spark_version()), EXCLUDES) == (
        fetched["spark.jars.packages"],
        fetched["spark.jars.excludes"],
    )
    assert server_options(without.model_copy(update={"root": "data"})) == {}
    options = server_options(settings)
    assert [f"{jars}/hadoop-aws-3.4.2.jar", f"{jars}/s3-2.29.52.jar"] == options["spark.jars"].split(",")
    assert "spark.jars.packages" not in options
    assert options["spark.hadoop.fs.s3a.endpoint"] == "https://store"
    assert "s3cr3t" not in str(server_configuration(settings, "local[2]"))
    assert bucket_variables(settings) == {"AWS_ACCESS_KEY_ID": "mine", "AWS_SECRET_ACCESS_KEY": "s3cr3t"}
    assert bucket_variables(settings.model_copy(update={"root": "data"})) == {}


def test_what_spark_fetches_is_what_the_image_has():
    """The packages of the locked Spark are among the pinned jars, in their versions; none is excluded."""
    pins, lock = (
        tomllib.loads((Path(__file__).parents[2] / name).read_text())
        for name in ("tools/jars.toml", "uv.lock")
    )
    (release,) = (item["version"] for item in lock["package"] if item["name"] == "pyspark")
    pinned = [load["coordinate"] for load in pins["jar"] if load["set"] == "s3"]
    excluded = [tuple(item.split(":")) for item in EXCLUDES.split(",")]
    assert set(s3_packages(release).split(",")) <= set(pinned)
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


def test_workers_of_a_server_of_this_machine_wait_for_nothing():
    """A module of ours starts them, and they are spoken to by a socket in the server's private folder."""
    ours, short, local = Settings(), Path("/a"), "local[2]"
    assert worker_options(ours, local, short)["spark.python.unix.domain.socket.dir"] == "/a"
    assert list(worker_options(ours, local, Path("/" + "long" * 20))) == ["spark.python.daemon.module"]
    assert worker_options(Settings(spark_python="/usr/bin/python3"), local, short) == {}
    assert worker_options(ours, "spark://host:7077", short) == {}


def test_a_server_of_ours_is_nobodys_wish():
    """What a run or the library has set is told from what the user has set, also where both were at it."""
    ours = own_remote("sc://localhost:1/;token=t")
    assert ours[REMOTE] == "sc://localhost:1/;token=t"
    assert "" == foreign_remote({}) == foreign_remote(ours) == foreign_remote({REMOTE: "local[2]"})
    assert foreign_remote({REMOTE: "sc://theirs"}) == "sc://theirs"
    assert foreign_remote({**ours, REMOTE: "sc://theirs"}) == "sc://theirs"
