"""Which options a server of ours starts with: the user's file replaces what is a choice."""

import pytest

from freezeframe.engine.configuration import (
    cores,
    server_configuration,
    session_configuration,
    user_defaults,
)
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
