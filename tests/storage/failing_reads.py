"""Run under ``failing_reads.c``: each read of an operation fails once; what came of it, as JSON.

Usage: failing_reads.py FOLDER OPERATION ...
"""

import ctypes
import json
import shutil
import sys
from pathlib import Path

import pandas as pd

from freezeframe.errors import FreezeframeError, TryAgain
from freezeframe.log import DeltaLog
from freezeframe.log.table.verification import verify_log
from freezeframe.script.formats.columnar_files import ParquetFormat
from freezeframe.script.formats.csv_rows import CsvFormat
from freezeframe.script.reading import read_csv_folder, read_parquet_folder
from freezeframe.script.snapshots import update_snapshot
from freezeframe.settings import Settings
from freezeframe.storage import LocalStorage
from freezeframe.store import Tenant
from freezeframe.store.diff.counts import ArrowEngine
from freezeframe.store.tenants import clone_into

SETTINGS = Settings(checkpoint_interval=2)
NEW = pd.DataFrame({"Id": ["1", "9"], "v": [1.5, 2.5]})


def tenant(folder):
    DeltaLog.clear_cache()
    storage = LocalStorage(folder)
    return Tenant(storage, ArrowEngine(), SETTINGS)


def operations(base):
    """By name: what is done to ``base/work``, a copy of a tenant, or to the files of a sync."""
    work, given = base / "work", base / "given"
    return {
        "read": lambda: tenant(work).stream("A").read(),
        "first": lambda: tenant(work / "new").stream("A").update(NEW, key="Id"),
        "update": lambda: tenant(work).stream("A").update(NEW, key="Id"),
        "override": lambda: tenant(work).stream("A").update(NEW, key="Id", override=True),
        "restore": lambda: tenant(work).restore(0),
        "history": lambda: list(tenant(work).history()),
        "file": lambda: tenant(work).files.read("f.json"),
        "gc": lambda: tenant(work).gc(),
        "erase": lambda: tenant(work).erase("A", ["1"]),
        "verify": lambda: sound(work),
        "clone": lambda: clone_into(LocalStorage(work), LocalStorage(work / "new"), SETTINGS),
        "adopt": lambda: update_snapshot(work / "old", "P", ["Id"], NEW),
        "csv": lambda: (read_csv_folder(given), CsvFormat().streamed(given / "X-1.csv").read_all()),
        "parquet": lambda: (
            read_parquet_folder(given),
            ParquetFormat().streamed(given / "Y.parquet").read_all(),
        ),
    }


def sound(work):
    assert verify_log(LocalStorage(work), "A.snapshot/_delta_log") == []


def make(base):
    filled = tenant(base / "made")
    for number in range(3):
        rows = pd.DataFrame(
            {"Id": [str(item) for item in range(number, number + 5)], "v": [float(number)] * 5}
        )
        filled.stream("A").update(rows, key="Id")
    filled.files.write("f.json", b"{}")
    (base / "made" / "old").mkdir()
    NEW.to_csv(base / "made" / "old" / "P.snapshot.csv", index=False)
    (base / "given").mkdir()
    NEW.to_csv(base / "given" / "X-1.csv", index=False)
    NEW.to_parquet(base / "given" / "Y.parquet", index=False)


def outcome(operation, base, number):
    """None where it went well or may be tried again; else what it was."""
    shutil.rmtree(base / "work", ignore_errors=True)
    shutil.copytree(base / "made", base / "work")
    library = ctypes.CDLL(None)
    library.fail_read(str(base).encode(), number)
    wrong = None
    try:
        operation()
    except TryAgain:
        pass
    except (FreezeframeError, OSError, AssertionError) as error:
        wrong = f"read {number}: {type(error).__name__}: {error}"
    seen = library.reads_seen()
    library.fail_read(b"", 0)
    return seen, wrong


def main(folder, *names):
    base = Path(folder)
    make(base)
    told = {}
    for name in names:
        number, seen, wrong = 0, 0, []
        while seen >= number:
            number += 1
            seen, found = outcome(operations(base)[name], base, number)
            wrong += [found] if found else []
        told[name] = {"reads": number - 1, "wrong": wrong}
    sys.stdout.write(json.dumps(told))


main(*sys.argv[1:])
