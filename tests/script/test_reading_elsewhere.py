"""Folders are read by the workers of a cluster and of a server that somebody else started."""

import datetime as dt
import json
import shutil
import subprocess

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.one_session import answered, plain_environment
from tests.spark_processes import connect_server, standalone_cluster

from freezeframe.script.inputs.spark_reading import IN_PROCESS_BYTES_MAX

pytestmark = [pytest.mark.spark, pytest.mark.nightly, pytest.mark.timeout(300)]

ROWS = 20_000
FILES = 3

SCRIPT = """
import json, sys
from pathlib import Path
from pyspark.sql import functions as F
from freezeframe.errors import FreezeframeError
from freezeframe.script import read_csv_folder, read_json_folder, read_parquet_folder

told = []
for folder in sys.argv[1:]:
    told.append({})
    for read in (read_csv_folder, read_json_folder, read_parquet_folder):
        try:
            frame = read(folder, as_="spark")["A"]
            sums = F.count("Id"), F.sum("n"), F.sum("f"), F.max("on"), F.sum(F.length("text"))
            told[-1][read.__name__] = [frame.schema.simpleString(), *map(str, frame.agg(*sums).first())]
        except FreezeframeError as error:
            place = [Path(error.details["file"]).name, error.details.get("line")]
            told[-1][read.__name__] = [error.error_code, *place]
print(json.dumps(told))
"""
"""Reads folders by each function; the sums of each frame, or its error, as JSON."""

EXPECTED = [
    "struct<Id:string,n:bigint,f:double,on:date,text:string>",
    *map(str, (FILES * ROWS, FILES * sum(range(ROWS)), FILES * ROWS * 0.5, "2026-01-01", FILES * ROWS * 100)),
]


def told(*folders, **variables):
    """What the script says of each folder in a process of its own."""
    return answered(SCRIPT, *folders, environment=plain_environment(**variables))


def write_folder(folder):
    """Files of a stream that are too large for one process, as CSV, JSON Lines and Parquet, and a schema."""
    folder.mkdir()
    rows = [
        {"Id": f"0{number}", "n": number, "f": 0.5, "on": "2026-01-01", "text": "x" * 100}
        for number in range(ROWS)
    ]
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    text = "".join(",".join(map(str, row.values())) + "\n" for row in rows)
    table = pa.Table.from_pylist(rows).drop_columns("on")
    table = table.add_column(3, "on", pa.array([dt.date(2026, 1, 1)] * ROWS))
    for number in range(FILES):
        (folder / f"A-{number}.jsonl").write_text(lines)
        (folder / f"A-{number}.csv").write_text("Id,n,f,on,text\n" + text)
        pq.write_table(table, folder / f"A-{number}.parquet", compression="none", use_dictionary=False)
    properties = {"on": {"type": "string", "format": "date"}}
    catalog = {"streams": [{"stream": "A", "schema": {"properties": properties}}]}
    (folder.parent / "catalog.json").write_text(json.dumps(catalog))
    for kind in ("csv", "jsonl", "parquet"):
        assert sum(file.stat().st_size for file in folder.glob(f"*.{kind}")) > IN_PROCESS_BYTES_MAX
    return folder


def write_folders(root):
    """Such a folder, and a copy in which one line of the last file of each kind of text is none."""
    folder = write_folder(root / "sync-output")
    damaged = root / "damaged"
    shutil.copytree(folder, damaged)
    for kind, line in (("csv", "1,2\n"), ("jsonl", "[]\n")):
        with (damaged / f"A-{FILES - 1}.{kind}").open("a") as file:
            file.write(line)
    return folder, damaged


READ = {"read_csv_folder": EXPECTED, "read_json_folder": EXPECTED, "read_parquet_folder": EXPECTED}
DAMAGED = READ | {
    "read_csv_folder": ["UNREADABLE_INPUT", f"A-{FILES - 1}.csv", ROWS + 2],
    "read_json_folder": ["UNREADABLE_INPUT", f"A-{FILES - 1}.jsonl", ROWS + 1],
}


def test_the_workers_of_a_cluster_read_folders(tmp_path):
    """Two workers read the files of a stream; a fault of a line is told as in one process."""
    folders = write_folders(tmp_path)
    with standalone_cluster(tmp_path) as (master, settings):
        assert told(*folders, FREEZEFRAME_SPARK=master, **settings) == [READ, DAMAGED]
    for number in range(2):
        assert any((tmp_path / f"work-{number}").glob("app-*/*/stderr"))


def test_the_workers_of_a_connect_server_read_folders(tmp_path):
    """A server that Spark's own variable names, and that somebody started by itself."""
    folders = write_folders(tmp_path)
    with connect_server(tmp_path / "log") as port:
        assert told(*folders, SPARK_REMOTE=f"sc://localhost:{port}") == [READ, DAMAGED]


def test_a_server_that_does_not_see_the_folder_says_so(tmp_path):
    """The file is named by the first reading; nothing is read from another place."""
    apart = ["unshare", "--mount"]
    if subprocess.run([*apart, "true"], capture_output=True, check=False).returncode:
        pytest.skip("this user may not mount")
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    folder = write_folder(hidden / "sync-output")
    words = [*apart, "sh", "-c", f'mount -t tmpfs none "{hidden}" && exec "$@"', "sh"]
    with connect_server(tmp_path / "log", *words) as port:
        (found,) = told(folder, SPARK_REMOTE=f"sc://localhost:{port}")
    assert dict.fromkeys(READ, "STORAGE_NOT_SHARED") == {name: one[0] for name, one in found.items()}
