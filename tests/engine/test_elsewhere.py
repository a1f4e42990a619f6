"""Spark that is not ours: a Connect server and a standalone cluster give what the warm server gives."""

import contextlib
import os
import socket
import ssl
import subprocess
import sys
import threading
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address

import pyarrow as pa
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from tests import given
from tests.one_session import EXPECTED, answered, facts, plain_environment
from tests.spark_processes import COUNTS, ROWS_AND_UPDATE, connect_server, standalone_cluster

from freezeframe import open_tenant
from freezeframe.engine.connect import connect
from freezeframe.errors import FreezeframeError
from freezeframe.identifiers import StreamName
from freezeframe.settings import Settings
from freezeframe.storage import LocalStorage
from freezeframe.store.tenant_log.roll_forward import table_snapshot

pytestmark = [pytest.mark.spark, pytest.mark.nightly]

# An insert, an upsert, a full extract and a frame of Spark's own: each goes its own way through the engine.
JOB = (
    """
import json, sys
import pandas as pd
from freezeframe import open_tenant
from freezeframe.engine.connect import connect
from freezeframe.errors import FreezeframeError
from freezeframe.settings import Settings

stream = open_tenant(sys.argv[1]).stream("Account")
"""
    + ROWS_AND_UPDATE
    + """try:
    update(rows)
    update(rows.assign(Name=None, Size=rows.Size + 1).tail(300))
    update(rows.iloc[100:].assign(Name="m"), mode="full")
    session = connect(Settings(), lambda _: None)
    update(session.session.range(950, 1050).selectExpr("format_string('A%04d', id) AS Id", "'s' AS Name"))
    session.close()
except FreezeframeError as error:
    told.append(error.to_json())
try:
    found = stream.read(as_="pandas").sort_values("Id").to_dict("split")["data"]
except FreezeframeError:
    found = None
print(json.dumps([told, found]))
"""
)


def answers(folder, spark, **environment):
    """What the job was told, and the rows that the stream has then."""
    variables = {"FREEZEFRAME_SPARK": spark, "FREEZEFRAME_ENGINE": "spark", **environment}
    return answered(JOB, folder, environment={**os.environ, **variables})


@pytest.fixture(scope="module")
def expected(spark_settings, tmp_path_factory):
    """What the warm server gives."""
    told, rows = answers(tmp_path_factory.mktemp("local"), "auto")
    assert told == COUNTS
    assert len(rows) == 950
    return [told, rows]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """The port of a Connect server that somebody started, with a token, and a folder that it does not see."""
    folder = tmp_path_factory.mktemp("elsewhere")
    hidden = folder / "hidden"
    hidden.mkdir()
    # In a view of the file system of its own, as in a container.
    apart = ["unshare", "--mount", "sh", "-c", f'mount -t tmpfs none "{hidden}" && exec "$@"', "sh"]
    token = {"SPARK_CONNECT_AUTHENTICATE_TOKEN": "the-token"}
    with connect_server(folder / "log", *(apart if can_be_apart() else ()), environment=token) as port:
        yield port, hidden


def can_be_apart():
    """Whether this system lets this user mount."""
    return not subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False).returncode


def test_a_connect_server_gives_what_the_warm_server_gives(server, expected, tmp_path):
    """Every route of an update, the same counts and rows."""
    assert answers(tmp_path, f"sc://localhost:{server[0]}/;token=the-token") == expected


def test_a_connect_server_behind_tls_does_too(server, expected, tmp_path):
    """A certificate of an own authority, named as gRPC wants it; without the name it is refused."""
    roots, key = certificate(tmp_path)
    with tls_in_front_of(server[0], roots, key) as port:
        url = f"sc://127.0.0.1:{port}/;use_ssl=true;token=the-token"
        found = answers(tmp_path / "t", url, GRPC_DEFAULT_SSL_ROOTS_FILE_PATH=str(roots))
        assert found == expected
        told, _ = answers(tmp_path / "u", url)
    assert "cannot be spoken to over TLS" in told[-1]["problem"]
    assert told[-1]["remedy"]


@pytest.mark.parametrize(
    ("url", "code", "problem"),
    [
        ("sc://localhost:{port}/;token=guessed", "SETUP", "does not take this token"),
        ("sc://localhost:1/;token=the-token", "ENGINE_UNAVAILABLE", "does not answer"),
    ],
)
def test_what_is_wrong_is_told_and_nothing_is_changed(server, expected, tmp_path, url, code, problem):
    """A wrong token, and a server that is not there: an error with a remedy, the tenant as it was."""
    told, rows = answers(tmp_path, url.format(port=server[0]))
    error = told[-1]
    assert (code, True) == (error["code"], problem in error["problem"])
    assert error["cause"]
    assert error["remedy"]
    assert None is rows or COUNTS[: len(told) - 1] == told[:-1]


def test_a_server_that_sees_other_files_is_refused(server, tmp_path):
    """The first step that needs Spark finds it out; what was there before stays."""
    if not can_be_apart():
        pytest.skip("this user may not mount")
    told, rows = answers(server[1] / "tenant", f"sc://localhost:{server[0]}/;token=the-token")
    assert told[-1]["code"] == "STORAGE_NOT_SHARED"
    assert told[-1]["remedy"]
    assert COUNTS[: len(told) - 1] == told[:-1]
    assert (1000 if told[:-1] else None) == (rows and len(rows))


@pytest.mark.parametrize("options", [{}, {"mode": "full", "max_delete_ratio": 1.0}])
def test_a_frame_whose_session_sees_other_files_is_refused(server, spark_engine, options):
    """Our own Spark sees the store and the frame's does not: nothing is committed or written."""
    if not can_be_apart():
        pytest.skip("this user may not mount")
    port, hidden = server
    stream = open_tenant(hidden / f"own-{len(options)}").stream("Account")
    with pytest.raises(FreezeframeError) as caught:
        stream.update(elsewhere(port, "1 AS Id"), key=["Id"])
    assert (caught.value.error_code, stream.version) == ("STORAGE_NOT_SHARED", -1)
    assert caught.value.cause
    assert caught.value.remedy
    stream.update(pa.table({"Id": [1, 2]}), key=["Id"])
    with pytest.raises(FreezeframeError, match="does not see"):
        stream.update(elsewhere(port, "3 AS Id"), **options)
    assert stream.read(as_="arrow")["Id"].to_pylist() == [1, 2]
    listed = "not exists(collect_list(path), one -> one like '%parquet')"
    files = elsewhere(port, "1").sparkSession.read.format("binaryFile").option("recursiveFileLookup", "true")
    assert files.load(str(hidden)).selectExpr(listed).first()[0]


def elsewhere(port, columns):
    """A frame of one row, of a session on the server that does not see the folder."""
    settings = Settings(spark=f"sc://localhost:{port}/;token=the-token")
    return connect(settings, lambda _: None).session.sql(f"select {columns}")


CLASSIC = """
import json, sys
from pathlib import Path
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from freezeframe import open_tenant
from freezeframe.errors import FreezeframeError

spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
stream = open_tenant(sys.argv[1]).stream("Account")
def update(frame):
    receipt = stream.update(frame, key=["Id"])
    return [receipt.inserted, receipt.updated, receipt.unchanged]
frame = spark.sql("select id Id, timestamp'2026-01-01 00:00:00' + make_interval(0,0,0,id) at from range(5)")
told = [update(frame), update(frame.union(frame)), update(frame.where("Id > 9"))]
kinds = {
    pq.read_metadata(file).row_group(0).column(1).physical_type
    for file in Path(sys.argv[1]).rglob("*.parquet")
}
print(json.dumps([told, sorted(kinds), spark.conf.get("spark.sql.parquet.outputTimestampType")]))
"""


def test_frames_of_a_spark_in_the_scripts_own_process_land(spark_settings, tmp_path):
    """Classic PySpark: rows are counted on their way, its setting stays INT96, and no file has INT96."""
    told, kinds, setting = answered(
        CLASSIC, tmp_path, environment=plain_environment(SPARK_CONF_DIR=str(tmp_path))
    )
    assert told == [[5, 0, 0], [0, 0, 5], [0, 0, 0]]
    assert (kinds, setting) == (["INT64"], "INT96")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """A master and two workers of this machine, with the settings of a driver that is small."""
    folder = tmp_path_factory.mktemp("cluster")
    with standalone_cluster(folder) as (address, settings):
        yield folder, address, settings


def test_a_standalone_cluster_gives_what_the_warm_server_gives(cluster, expected, tmp_path):
    """A master and two workers: the warm server is the cluster's driver, its tasks run on both."""
    folder, master, settings = cluster
    assert answers(tmp_path, master, **settings) == expected
    for number in range(2):
        assert any((folder / f"work-{number}").glob("app-*/*/stderr"))


def test_a_process_has_one_session_on_a_cluster(cluster, tmp_path):
    """Frames of the library and of Spark's builder join; views and SQL see both."""
    _, master, settings = cluster
    assert {**EXPECTED, "kind": ".connect"} == facts(
        tmp_path, "library", FREEZEFRAME_SPARK=master, **settings
    )


def test_a_process_has_one_session_on_a_connect_server(server, tmp_path):
    """The same where somebody else started the server; a stream that it does not see is refused."""
    port, hidden = server
    place = {"FREEZEFRAME_SPARK": f"sc://localhost:{port}/;token=the-token"}
    assert {**EXPECTED, "kind": ".connect"} == facts(tmp_path, "library", **place)
    if not can_be_apart():
        return
    tenant = hidden / "unseen"
    open_tenant(tenant).stream("Account").update(pa.table({"Id": [1]}), key=["Id"])
    told = subprocess.run(
        [sys.executable, "-c", UNSEEN, str(tenant)],
        env=plain_environment(**place),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert told.stdout == "STORAGE_NOT_SHARED\n", told.stderr


UNSEEN = """
import sys
from freezeframe import get_snapshot
from freezeframe.errors import FreezeframeError
try:
    get_snapshot(sys.argv[1], "Account", as_="spark")
except FreezeframeError as error:
    print(error.error_code)
"""


LARGE = """
import json, os, signal, sys, threading, time
import pandas as pd
from freezeframe import open_tenant
from freezeframe.engine.connect import connect
from freezeframe.engine.server.server import running_servers
from freezeframe.errors import FreezeframeError
from freezeframe.settings import Settings

folder, victim, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
stream = open_tenant(folder).stream("Account")
stream.update(pd.DataFrame({"Id": pd.array([0, 1], "Int64"), "Text": ["a", "b"]}), key=["Id"])
session = connect(Settings(), lambda _: None).session
frame = session.range(count).selectExpr("id AS Id", "repeat(sha2(string(id), 512), 8) AS Text")

def victims():
    if victim == "server":
        return [one.process for one in running_servers(Settings())]
    found = []
    for name in os.listdir("/proc"):
        try:  # executors of this cluster, which work in its folder
            here = name.isdigit() and os.readlink(f"/proc/{name}/cwd").startswith(victim)
        except OSError:
            continue
        if here and "CoarseGrainedExecutorBackend" in open(f"/proc/{name}/cmdline").read():
            found.append(int(name))
    return found

def kill():
    # Once the first of its files is there, the write is under way.
    while not any(files for _, _, files in os.walk(folder) if any("part-" in one for one in files)):
        time.sleep(0.02)
    for process in victims()[:1]:
        os.kill(process, signal.SIGKILL)
        killed.append(process)

killed = []
if victim:
    threading.Thread(target=kill, daemon=True).start()
try:
    receipt = stream.update(frame)
    told = [receipt.inserted, receipt.updated]
except FreezeframeError as error:
    told = error.error_code
print(json.dumps([told, len(killed), stream.version]))
"""
ROWS = 1_000_000  # of a kilobyte each: more than twice the driver's heap


def large(cluster, folder, victim, count=ROWS):
    """What an update by a large frame was told, how many processes were killed, and the version after it."""
    _, master, settings = cluster
    environment = {**os.environ, **settings, "FREEZEFRAME_SPARK": master}
    return answered(LARGE, folder, victim, count, environment=environment, timeout=1500)


@pytest.mark.timeout(1800)
def test_a_batch_larger_than_the_drivers_heap_goes_through(cluster, tmp_path):
    """A gigabyte by a driver of 512 MB: rows go from the tasks to the storage, and past the driver."""
    assert large(cluster, tmp_path, "") == [[ROWS - 2, 2], 0, 1]


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("victim", ["executor", "server"])
def test_who_dies_in_the_middle_takes_nothing_along(cluster, tmp_path, victim):
    """An executor that is killed: the update is finished. The server: finished or cleanly failed.

    Either way the stream is as before or as after it, and no file is left that no version names.
    """
    count = 200_000
    told, killed, version = large(
        cluster, tmp_path, "server" if victim == "server" else str(cluster[0]), count
    )
    assert killed == 1
    assert (told, version) in [([count - 2, 2], 1), ("ENGINE_UNAVAILABLE", 0)]
    assert victim == "server" or version == 1
    tenant = given.tenant(LocalStorage(tmp_path), gc_grace_seconds=0, lease_dead_seconds=0)
    tenant.gc()
    tenant.gc()
    stream = tenant.stream("Account")
    assert (count if version else 2) == stream.read(columns=["Id"], as_="arrow").num_rows
    state = tenant.context.log.current_state()
    table = table_snapshot(tenant.context.log, state, StreamName("Account"))
    past = table_snapshot(tenant.context.log, state, StreamName("Account"), 0)
    named = {path for item in (table, past) for path in item.files["path"].to_pylist()}
    found = {
        str(file.relative_to(tmp_path / "Account.snapshot"))
        for file in (tmp_path / "Account.snapshot").rglob("*.parquet")
        if "_delta_log" not in file.parts
    }
    assert named == found


def certificate(folder):
    """A self-signed certificate for 127.0.0.1 and its key, as files."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "spark")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    paths = folder / "certificate.pem", folder / "key.pem"
    paths[0].write_bytes(made.public_bytes(serialization.Encoding.PEM))
    kind, plain = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    paths[1].write_bytes(key.private_bytes(serialization.Encoding.PEM, kind, plain))
    return paths


@contextlib.contextmanager
def tls_in_front_of(port, chain, key):
    """The port of a proxy that ends TLS and hands on what it hears."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(chain, key)
    context.set_alpn_protocols(["h2"])
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=_accept, args=(listener, context, port), daemon=True).start()
        yield listener.getsockname()[1]


def _accept(listener, context, port):
    while True:
        try:
            plain, _ = listener.accept()
        except OSError:
            return
        threading.Thread(target=_serve, args=(plain, context, port), daemon=True).start()


def _serve(plain, context, port):
    with contextlib.suppress(OSError):
        secure = context.wrap_socket(plain, server_side=True)
        behind = socket.create_connection(("127.0.0.1", port))
        threading.Thread(target=_hand_on, args=(behind, secure), daemon=True).start()
        _hand_on(secure, behind)


def _hand_on(source, target):
    with contextlib.suppress(OSError), source, target:
        while heard := source.recv(65536):
            target.sendall(heard)
