"""The warm server on a machine of several users: they neither speak to it nor read what it writes."""

import contextlib
import os
import stat
import struct
import subprocess
from concurrent.futures import ThreadPoolExecutor

import psutil
import pyarrow as pa
import pytest

from freezeframe.engine.configuration import cores, server_configuration
from freezeframe.engine.server.server import attach
from freezeframe.settings import Settings
from freezeframe.storage import LocalStorage
from freezeframe.store.tenant import Tenant

# A request as Spark's transport frames one: length, type 3, its number, the length of the body, the body.
# A server that does not ask who is there reads an object from it, and says what was wrong with that.
BODY = b"\xac\xed\x00\x05" + bytes(60)
QUESTION = struct.pack(">qbqi", 21 + len(BODY), 3, 1, len(BODY)) + BODY
SPARKS_FOLDERS = ("landed", "unique")
ASK = 'exec 3<>"/dev/tcp/127.0.0.1/$1"; cat >&3; timeout 5 cat <&3'


@pytest.mark.spark
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_another_user_is_not_answered(spark_session, spark_settings):
    """Each port that Java listens on refuses who does not know the secret, before it reads an object."""
    spark_session.range(1).count()
    with contextlib.closing(attach(spark_settings, f"local[{cores()}]", lambda _text: None)) as attachment:
        server = psutil.Process(attachment.address.process)
    listening = {
        connection.laddr.port
        for connection in server.net_connections("tcp")
        if connection.status == psutil.CONN_LISTEN
    }
    assert listening

    def asked(port):
        command = ["bash", "-c", ASK, "ask", str(port)]
        done = subprocess.run(command, input=QUESTION, capture_output=True, user="nobody", check=False)
        return done.stdout

    with ThreadPoolExecutor() as pool:
        answers = list(pool.map(asked, listening))
    for answer in answers:
        assert b"NettyRpcHandler" not in answer
        assert b"StreamCorrupted" not in answer
        assert b"EOFException" not in answer


def test_a_cluster_has_a_secret_of_its_own():
    """On this machine Spark makes one; a cluster's must be the one that its executors know."""
    assert server_configuration(Settings(), "local[2]")["spark.authenticate"] == "true"
    assert "spark.authenticate" not in server_configuration(Settings(), "spark://host:7077")


@pytest.mark.spark
def test_what_spark_writes_is_the_owners_alone(tmp_path, spark_engine, spark_session, spark_settings):
    """Files and folders of a stream, whatever the umask of who started the server."""
    tenant = Tenant(LocalStorage(tmp_path / "t"), spark_engine, spark_settings)
    frame = spark_session.range(25_000).selectExpr("string(id) as Id", "1 as n")
    tenant.stream("Lead").update(frame.union(frame), key="Id")
    for number in (1, 5):
        rows = pa.table({"Id": ["1"], "n": pa.array([number], pa.int32())})
        tenant.stream("Visit").update(rows, replace_where="n >= 1")
    folder = tmp_path / "t"
    written = [path for path in folder.rglob("*") if path.suffix == ".parquet" or path.name in SPARKS_FOLDERS]
    assert {path.suffix for path in written} == {".parquet", ""}
    assert [path for path in written if stat.S_IMODE(path.stat().st_mode) & 0o077] == []
