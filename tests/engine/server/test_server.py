"""The warm server: started once, shared, replaced when it dies, gone when nobody needs it."""

import contextlib
import fcntl
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from dataclasses import asdict
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.waiting import is_alive, until

from freezeframe.engine.configuration import local_master
from freezeframe.engine.java import find_java
from freezeframe.engine.protocol import WindowTask
from freezeframe.engine.server import server
from freezeframe.engine.server.server import Address, StartLimit, attach, living_address, server_folder
from freezeframe.engine.spark import SparkEngine
from freezeframe.errors import EngineUnavailable, InvalidOption, JavaNotFound
from freezeframe.log.format.schema import arrow_to_delta
from freezeframe.settings import Settings

MASTER = local_master()

ATTACH = f"""
import sys
from pathlib import Path
from freezeframe.engine.server.server import attach
from freezeframe.settings import Settings
attachment = attach(Settings(), "{MASTER}", lambda text: None)
print(attachment.address.start, flush=True)
sys.stdin.read()
"""

FOLDER = """
from freezeframe.engine.server.server import server_folder
from freezeframe.settings import Settings
print(server_folder(Settings(), "local[1]").name)
"""


def test_jars_that_are_fetched_do_not_count(tmp_path, monkeypatch):
    """As long as jars come, a start may take any time; it is told once, and then the limit holds again."""
    monkeypatch.setattr(server, "_TOLD_AFTER_SECONDS", 0.3)
    told = []
    limit = StartLimit(tmp_path, 0.4, told.append)
    with (tmp_path / "server.log").open("a") as log:
        for line in (":: resolving dependencies :: a", *["downloading b"] * 7, ":: retrieving :: a"):
            log.write(f"{line}\n")
            log.flush()
            limit.require()
            time.sleep(0.1)
        assert told == ["Spark fetches jars (spark.jars.packages; once for each machine)"]
        time.sleep(0.4)
        log.write("INFO SparkContext\n")
        log.flush()
        with pytest.raises(EngineUnavailable, match="SPARK_START_SECONDS"):
            limit.require()


def test_a_server_that_is_dying_is_not_believed(tmp_path):
    """Its port takes connections until the memory of its Java is freed, and resets them then."""
    with socket.create_server(("127.0.0.1", 0)) as listener, (tmp_path / "server.lock").open("a") as life:
        fcntl.flock(life, fcntl.LOCK_EX)
        address = Address(listener.getsockname()[1], "token", "start", os.getpid(), os.getpid())
        (tmp_path / "address.json").write_text(json.dumps(asdict(address)))
        end = threading.Timer(0.3, listener.close)
        end.start()
        assert living_address(tmp_path) is None
        end.join()


@pytest.fixture
def own(spark_state, monkeypatch):
    """Settings of a server that is this test's alone."""
    environment = {
        "FREEZEFRAME_STATE_DIR": str(spark_state),
        "FREEZEFRAME_SPARK_MEMORY": "1g",
        "FREEZEFRAME_SPARK_IDLE_SECONDS": "1",
    }
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("SPARK_REMOTE", raising=False)
    return Settings()


def fake_java(folder, monkeypatch, otherwise):
    command = folder / "bin" / "java"
    command.parent.mkdir()
    version = "echo 'openjdk version \"17.0.1\"' >&2"
    command.write_text(f"#!/bin/sh\ncase $1 in -version) {version};; *) {otherwise};; esac")
    command.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(folder))


@pytest.mark.spark
def test_two_starters_share_a_server_that_is_replaced_when_it_dies(own, tmp_path, monkeypatch):
    """Processes that start at once share a server, which outlives them; a killed one is started again."""
    monkeypatch.setenv("FREEZEFRAME_SPARK", "auto")
    lines = []
    engine = SparkEngine(Settings(), lines.append)
    with contextlib.ExitStack() as stack:
        jobs = [
            stack.enter_context(
                subprocess.Popen([sys.executable, "-c", ATTACH], stdin=-1, stdout=-1, text=True)
            )
            for _ in range(2)
        ]
        starts = {job.stdout.readline() for job in jobs}
        assert len(starts) == 1
        folder = server_folder(own, MASTER)
        assert (folder / "address.json").stat().st_mode & 0o777 == 0o600
        assert folder.stat().st_mode & 0o777 == 0o700
        address = json.loads((folder / "address.json").read_text())
        command = Path(f"/proc/{address['process']}/cmdline").read_text()
        assert address["token"] not in command
        # The library that encrypts is loaded before a task can need it (`launch`): else some first jobs
        # never end.
        assert "commons-crypto" in Path(f"/proc/{address['process']}/maps").read_text()
        jobs[0].send_signal(signal.SIGKILL)
        time.sleep(1.5)
        assert is_alive(address["process"])
        assert engine._work.connection().session.range(3).count() == 3
        first = engine._work.connection().attachment.address
        assert starts == {f"{first.start}\n"}
        jobs[1].communicate()
    os.kill(first.process, signal.SIGKILL)
    until(lambda: not is_alive(first.process))
    rows = tmp_path / "in.parquet"
    pq.write_table(pa.table({"Id": [1]}), rows)
    schema = arrow_to_delta(pa.schema({"Id": pa.int64()}))
    (found,) = engine.rows_inside(WindowTask((str(rows),), schema, (), schema, schema, "Id = 1"))
    assert found.tolist() == [0]
    second = engine._work.connection().attachment.address
    assert second.start != first.start
    assert sum("Starting Spark" in text for text in lines) == 1
    engine.close()
    until(lambda: not is_alive(second.process))
    assert not (folder / "address.json").exists()
    until(lambda: not list(folder.glob("work-*")))


def test_without_java_nothing_is_started(own, tmp_path, monkeypatch):
    """The missing Java is told before a process is started or a file of a server written."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr(find_java, "__defaults__", (None, ()))
    with pytest.raises(JavaNotFound):
        attach(own, "local[1]", print)
    assert not list(own.state_dir.glob("*/server.log"))


def test_a_server_that_dies_at_start_shows_its_log(own, tmp_path, monkeypatch):
    """The error holds the end of the log, not only that it failed."""
    fake_java(tmp_path, monkeypatch, "echo 'no such heap'; exit 1")
    with pytest.raises(EngineUnavailable, match="no such heap"):
        attach(own, "local[1]", print)


def test_a_server_that_never_listens_is_given_up(own, tmp_path, monkeypatch):
    """After the time for a start the attempt ends, and so do its processes."""
    fake_java(tmp_path, monkeypatch, "exec sleep 600")
    with pytest.raises(EngineUnavailable, match="SPARK_START_SECONDS"):
        attach(own.model_copy(update={"spark_start_seconds": 1}), "local[1]", print)
    (folder,) = own.state_dir.glob("spark-*")
    until(lambda: not list(folder.glob("work-*")))


def test_other_settings_are_another_server(own):
    """A server is found by everything it is started with."""
    folders = {
        server_folder(own, "local[1]"),
        server_folder(own, "local[2]"),
        server_folder(own.model_copy(update={"spark_memory": "2g"}), "local[1]"),
    }
    assert len(folders) == 3


def test_an_unknown_place_is_refused(own):
    """`Settings.spark` is checked when Spark is first needed."""
    engine = SparkEngine(own.model_copy(update={"spark": "yarn"}))
    with pytest.raises(InvalidOption, match="yarn"):
        engine.read((), {"type": "struct", "fields": []})


@pytest.mark.long
def test_another_package_has_another_server(tmp_path):
    """A server of another checkout, or of another version, would run functions with the wrong code."""
    package = Path(server.__file__).parents[2]
    checkout = tmp_path / "checkout"
    shutil.copytree(package, checkout / "freezeframe", ignore=shutil.ignore_patterns("static", "__pycache__"))
    upgrade = tmp_path / "upgrade" / "freezeframe-999.0.dist-info"
    upgrade.mkdir(parents=True)
    (upgrade / "METADATA").write_text("Metadata-Version: 2.1\nName: freezeframe\nVersion: 999.0\n")
    paths = [package.parent, package.parent, checkout, upgrade.parent]
    first, again, elsewhere, upgraded = (folder_with(path, tmp_path) for path in paths)
    assert first == again
    assert len({first, elsewhere, upgraded}) == 3


def folder_with(path, state):
    """The server's folder for a process that finds packages there first."""
    environment = {**os.environ, "PYTHONPATH": str(path), "FREEZEFRAME_STATE_DIR": str(state)}
    command = [sys.executable, "-c", FOLDER]
    return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout
