"""Executors and the driver of a cluster are killed while a sync folder is read and a stream is updated."""

import hashlib

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pc_csv
import pytest
from tests.one_session import answered, plain_environment
from tests.spark_processes import standalone_cluster

from freezeframe import open_tenant

pytestmark = [pytest.mark.spark, pytest.mark.nightly, pytest.mark.timeout(600)]

STORED, SENT, FIRST_SENT, FILES = 75_000, 100_000, 25_000, 4

SCRIPT = """
import json, os, signal, sys, threading, time
from freezeframe import open_tenant
from freezeframe.engine.server.server import running_servers
from freezeframe.errors import FreezeframeError
from freezeframe.script import read_csv_folder
from freezeframe.settings import Settings

tenant, sync, cluster, victim, moment, mode = sys.argv[1:]
killed, stream = [], open_tenant(tenant).stream("Account")

def workers_processes(word):
    # Executors of this cluster and their Python workers work in its folder.
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            is_theirs = os.readlink(f"/proc/{name}/cwd").startswith(cluster)
            if is_theirs and word in open(f"/proc/{name}/cmdline").read():
                yield int(name)
        except OSError:
            continue

def output_folders():
    return {place for place, _, files in os.walk(tenant) if any(one.startswith("part-") for one in files)}

def has_come(before):
    if moment == "survey":
        return any(workers_processes("pyspark.daemon"))
    attempts = {os.path.relpath(place, tenant).split("/_temporary")[0] for place in output_folders() - before}
    return bool(attempts)

def kill(before):
    while not has_come(before):
        time.sleep(0.01)
    found = running_servers(Settings()) if victim == "server" else []
    processes = [one.process for one in found] or list(workers_processes("CoarseGrainedExecutorBackend"))
    os.kill(processes[0], signal.SIGKILL)
    killed.append(processes[0])

if victim:
    threading.Thread(target=kill, args=(output_folders(),), daemon=True).start()
try:
    receipt = stream.update(read_csv_folder(sync, as_="spark")["Account"], key=["Id"], mode=mode)
    told = [receipt.inserted, receipt.updated, receipt.unchanged, receipt.deleted]
except FreezeframeError as error:
    told = error.error_code
print(json.dumps([told, len(killed)]))
"""
"""Updates a stream from a folder's CSV files and kills a process of the cluster at one moment of it:
when types are found, or when the rows are written as files."""

COUNTS = {
    "upsert": [SENT - (STORED - FIRST_SENT), STORED - FIRST_SENT, 0, 0],
    "full": [SENT - (STORED - FIRST_SENT), STORED - FIRST_SENT, 0, FIRST_SENT],
}


def rows(first, count, salt):
    """Rows whose text does not compress, so that writing them takes a while."""
    numbers = range(first, first + count)
    text = [hashlib.sha512(f"{salt}{number}".encode()).hexdigest() * 2 for number in numbers]
    return pa.table({"Id": [f"A{number:07d}" for number in numbers], "n": list(numbers), "text": text})


@pytest.fixture(scope="module")
def sync(tmp_path_factory):
    """A folder with the rows of a sync, in several files."""
    folder = tmp_path_factory.mktemp("sync")
    each = SENT // FILES
    for number in range(FILES):
        pc_csv.write_csv(rows(FIRST_SENT + number * each, each, "new"), folder / f"Account-{number}.csv")
    return folder


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """(the folder, the address, settings of a small driver) of a cluster of two workers."""
    folder = tmp_path_factory.mktemp("cluster")
    with standalone_cluster(folder) as (address, settings):
        yield folder, address, settings


@pytest.mark.parametrize("victim", ["executor", "server"])
@pytest.mark.parametrize(
    ("moment", "mode"), [("survey", "upsert"), ("landing", "upsert"), ("landing", "full")]
)
def test_a_kill_in_the_middle_of_a_read_and_an_update(cluster, sync, tmp_path, victim, moment, mode):
    """A killed executor: the update is finished. The driver: finished, or a typed error and no change.

    Never is a row missing, there twice, or of the other version.
    """
    folder, master, settings = cluster
    stored, sent = rows(0, STORED, "old"), rows(FIRST_SENT, SENT, "new")
    stream = open_tenant(tmp_path).stream("Account")
    stream.update(stored, key=["Id"])
    told, killed = answered(
        SCRIPT,
        tmp_path,
        sync,
        folder,
        victim,
        moment,
        mode,
        environment=plain_environment(FREEZEFRAME_SPARK=master, **settings),
    )
    assert killed == 1
    assert told in ([COUNTS[mode]] if victim == "executor" else [COUNTS[mode], "ENGINE_UNAVAILABLE"])
    kept = stored if told == "ENGINE_UNAVAILABLE" else sent
    if mode == "upsert" and kept is sent:
        kept = pa.concat_tables([stored.slice(0, FIRST_SENT), sent])
    assert stream.version == int(told != "ENGINE_UNAVAILABLE")
    found = stream.read(as_="arrow").sort_by("Id")
    assert len(kept) == len(found)
    assert all(pc.all(pc.equal(kept[name], found[name])).as_py() for name in kept.column_names)
