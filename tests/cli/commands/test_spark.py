"""`freezeframe spark`: what runs, and starting and stopping it. Java here is a script that only listens."""

import json
import sys

import pytest
from tests.listening_java import use_listener

from freezeframe.cli.commands import checks
from freezeframe.cli.main import main
from freezeframe.engine.connect import connect
from freezeframe.engine.java import find_java
from freezeframe.engine.server import launch
from freezeframe.engine.server.launch import class_archive
from freezeframe.settings import load_settings


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A state folder of this test alone, and a Java that is none."""
    use_listener(tmp_path, monkeypatch)
    monkeypatch.setenv("FREEZEFRAME_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("FREEZEFRAME_SPARK", "auto")
    monkeypatch.setenv("FREEZEFRAME_RUNNER_IDLE_SECONDS", "0")
    monkeypatch.delenv("SPARK_REMOTE", raising=False)
    yield tmp_path
    main(["spark", "stop", "--now"])


def told(capsys, *words):
    """The exit code and the JSON that was printed."""
    capsys.readouterr()
    code = main(["spark", *words, "--json"])
    printed = capsys.readouterr()
    return code, json.loads(printed.out or printed.err)


def test_doctor_tells_where_the_jars_for_a_bucket_come_from(machine, tmp_path, monkeypatch):
    """From the folder of the settings, else from Spark's own fetching; an empty folder is an error."""
    monkeypatch.setenv("FREEZEFRAME_ROOT", "s3://bucket/store")
    fetched = checks.jars(load_settings())
    (tmp_path / "jars").mkdir()
    monkeypatch.setenv("FREEZEFRAME_SPARK_JARS_DIR", str(tmp_path / "jars"))
    empty = checks.jars(load_settings())
    (tmp_path / "jars" / "hadoop-aws-3.4.2.jar").write_bytes(b"")
    own = checks.jars(load_settings())

    assert [item.level for item in (fetched, empty, own)] == ["ok", "error", "ok"]
    assert "spark-hadoop-cloud" in fetched.found


def test_a_server_is_started_ahead_seen_and_stopped(machine, capsys):
    """It is there before the first job, stays as long as it is told to, and goes when it is told to."""
    assert told(capsys, "status")[1]["servers"] == []
    code, started = told(capsys, "start", "--idle-seconds", "500")
    assert {"servers", "runner"} == started.keys()
    (server,) = started["servers"]
    assert (code, server["clients"], server["is_retiring"]) == (0, 0, False)
    assert told(capsys, "start")[0] == 0  # nothing happens to one that runs
    code, seen = told(capsys, "status")
    assert [server["process"]] == [item["process"] for item in seen["servers"]]
    assert main(["spark", "status"]) == 0
    assert f"127.0.0.1:{server['port']}" in capsys.readouterr().out
    code, log = told(capsys, "logs")
    assert (code, len(log["lines"])) == (0, 1)
    assert told(capsys, "stop") == (0, {"stopped": 1, "still_used": 0})
    assert told(capsys, "status")[1]["servers"] == []
    assert told(capsys, "stop") == (0, {"stopped": 0, "still_used": 0})


def test_without_a_log_there_is_a_remedy(machine, capsys):
    """Nothing was ever started: not found, and what to do."""
    code, found = told(capsys, "logs")
    assert (code, "freezeframe spark start" in found["error"]["remedy"]) == (4, True)


def test_a_server_elsewhere_is_not_started_from_here(machine, capsys, monkeypatch):
    """With sc:// there is nothing to start; status says where jobs go, without the token."""
    monkeypatch.setenv("FREEZEFRAME_SPARK", "sc://spark.example.com:15002/;token=secret")
    assert main(["spark", "start"]) == 0
    assert main(["spark", "status"]) == 0
    printed = capsys.readouterr().out
    assert "sc://spark.example.com:15002/." in printed
    assert "secret" not in printed


def test_a_start_says_how_later_ones_will_be_faster(machine, capsys):
    """As long as there is no archive of the classes, and a server that stays long enough to make one."""
    assert main(["spark", "start"]) == 0
    assert "freezeframe spark archive" in capsys.readouterr().out
    archive = class_archive(machine / "state", find_java())
    archive.touch()
    assert main(["spark", "start"]) == 0
    assert "freezeframe spark archive" not in capsys.readouterr().out
    assert told(capsys, "archive")[1].items() >= {"archive": str(archive), "bytes": 0}.items()


@pytest.mark.spark
def test_doctor_asks_spark_though_its_classes_cannot_be_archived(spark_settings, tmp_path, monkeypatch):
    """The reason is a warning: jobs run without the archive, only later."""
    connect(spark_settings, print).close()
    monkeypatch.setattr(launch, "JAVA_OPTIONS", [*launch.JAVA_OPTIONS, "-Dthere=is none yet"])
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    found = checks.started_spark(spark_settings)

    assert "warning" == found.level
    assert "answers (1 row), but its classes are not archived: " in found.found
