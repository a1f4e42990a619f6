"""Where Spark is, and how a process gets a session there."""

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest
from pyspark.sql.connect import proto
from pyspark.sql.connect.proto import base_pb2_grpc
from pyspark.sql.connect.session import SparkSession

from freezeframe.engine.configuration import OWN_REMOTE, cores, session_configuration
from freezeframe.engine.connect import connect
from freezeframe.engine.server.server import attach, server_folder
from freezeframe.errors import InvalidOption, JavaUnsupported, SetupError
from freezeframe.settings import Settings

# A job in a process of its own: where it was, what it computed, and that it ends by itself.
JOB = """
import json
from freezeframe.engine.connect import connect
from freezeframe.settings import Settings
told = []
connection = connect(Settings(), told.append)
rows = connection.session.range(5).count()
print(json.dumps([connection.attachment.address.start, rows, told]))
"""


@pytest.fixture
def address(spark_engine, spark_settings):
    """Where the run's server listens."""
    attachment = attach(spark_settings, f"local[{cores()}]", lambda _: None)
    yield attachment.address
    attachment.close()


@pytest.mark.spark
def test_a_second_process_finds_the_server_that_runs(address):
    """It starts nothing, tells of no start, and ends without a word though it closed nothing."""
    done = subprocess.run([sys.executable, "-c", JOB], capture_output=True, text=True, timeout=60, check=True)
    assert [address.start, 5, []] == json.loads(done.stdout)
    assert done.stderr == ""


@pytest.mark.spark
def test_a_session_is_configured_and_nobodys_default(spark_settings, spark_session):
    """What merges rely on is set, and a user's own session stays the user's."""
    connection = connect(spark_settings, lambda _: None)
    try:
        expected = session_configuration("local[2]")
        assert expected == {name: connection.session.conf.get(name) for name in expected}
        assert connection.session is not SparkSession._default_session
        assert connection.session.session_id != spark_session.session_id
    finally:
        connection.close()


@pytest.mark.spark
@pytest.mark.parametrize("variable", ["FREEZEFRAME_SPARK", "SPARK_REMOTE"])
def test_a_named_server_is_used_as_it_is(address, tmp_path, monkeypatch, variable):
    """With sc:// nothing is started or held, and the state folder is not touched."""
    monkeypatch.delenv(OWN_REMOTE, raising=False)
    monkeypatch.setenv(variable, address.url)
    monkeypatch.setenv("FREEZEFRAME_STATE_DIR", str(tmp_path / "state"))
    connection = connect(Settings(), lambda _: None)
    assert connection.session.range(3).count() == 3
    assert (connection.attachment, connection.log_tail()) == (None, "")
    connection.close()
    assert not (tmp_path / "state").exists()


@pytest.mark.spark
def test_the_setting_wins_over_sparks_variable(address, spark_settings, monkeypatch):
    """SPARK_REMOTE fills in only what the setting leaves open."""
    monkeypatch.setenv("SPARK_REMOTE", "sc://localhost:1")
    url = address.url
    connection = connect(spark_settings.model_copy(update={"spark": url}), lambda _: None)
    assert connection.session.range(1).count() == 1
    connection.close()


@pytest.mark.spark
def test_without_the_token_nobody_gets_in(address, spark_settings):
    """Another user of the machine, who can reach the port, is refused."""
    url = f"sc://localhost:{address.port}/;token=guessed"
    with pytest.raises(SetupError, match=r"does not take this token"):
        connect(spark_settings.model_copy(update={"spark": url}), lambda _: None)


@pytest.mark.parametrize("spark", ["", "yarn", "localhost:15002", "LOCAL"])
def test_a_place_that_is_none_is_refused(spark_settings, spark):
    """The forms that there are stand in the remedy."""
    with pytest.raises(InvalidOption, match="auto, local, sc://"):
        connect(spark_settings.model_copy(update={"spark": spark}), lambda _: None)


@pytest.mark.parametrize("spark", ["auto", "local", "spark://localhost:7077"])
def test_a_java_too_old_is_told_before_anything_starts(tmp_path, monkeypatch, spark):
    """Whatever would need a server of ours: the error names the Java, and no process is left."""
    command = tmp_path / "bin" / "java"
    command.parent.mkdir()
    command.write_text("#!/bin/sh\necho 'java version \"1.8.0_392\"' >&2\n")
    command.chmod(0o755)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.delenv("SPARK_REMOTE", raising=False)
    monkeypatch.setenv("PATH", f"{command.parent}:/usr/bin:/bin")
    # What the machine has installed beside it must not help out.
    monkeypatch.setattr("freezeframe.engine.java.find_java.__defaults__", (None, ()))
    told = []
    with pytest.raises(JavaUnsupported, match="is Java 8"):
        connect(Settings(spark=spark, state_dir=tmp_path / "state"), told.append)
    assert told == []
    assert [path for path in (tmp_path / "state").rglob("*") if path.name in LEFT_BY_A_START] == []


class OldServer(base_pb2_grpc.SparkConnectServiceServicer):
    """A Spark Connect server of another release, as far as a client asks before its first rows."""

    def Config(self, request, _context):  # noqa: N802 - the protocol's name
        return proto.ConfigResponse(session_id=request.session_id, server_side_session_id="s")

    def AnalyzePlan(self, request, _context):  # noqa: N802 - the protocol's name
        version = proto.AnalyzePlanResponse.SparkVersion(version="3.5.4")
        return proto.AnalyzePlanResponse(
            session_id=request.session_id, server_side_session_id="s", spark_version=version
        )


def test_a_server_of_another_release_is_refused(spark_settings):
    """Both versions are named; nothing is asked of it."""
    server = grpc.server(ThreadPoolExecutor(1))
    base_pb2_grpc.add_SparkConnectServiceServicer_to_server(OldServer(), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        with pytest.raises(SetupError, match=r"version 3\.5\.4, and PySpark here of") as raised:
            connect(spark_settings.model_copy(update={"spark": f"sc://127.0.0.1:{port}"}), lambda _: None)
    finally:
        server.stop(None)
    assert raised.value.cause
    assert "Use a server of Spark" in raised.value.remedy


LEFT_BY_A_START = ("launch.json", "watcher.log", "server.log", "address.json")


def test_the_folder_of_a_server_depends_on_what_it_is_started_with(tmp_path, monkeypatch):
    """Other memory, another master or another Java is another server; the same is the same."""
    ours = Settings(state_dir=tmp_path / "state", spark_memory="1g")
    other = ours.model_copy(update={"spark_memory": "2g"})
    before = server_folder(ours, "local[1]")
    assert before == server_folder(ours.model_copy(), "local[1]")
    folders = [before, server_folder(ours, "local[2]"), server_folder(other, "local[1]")]
    monkeypatch.setenv("JAVA_HOME", "/another/java")
    folders.append(server_folder(ours, "local[1]"))
    assert len(set(folders)) == 4
