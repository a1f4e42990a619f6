"""The public names are where people guess them, and cost nothing until they are used."""

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

CACHE = Path(__file__).parent.parent / ".mypy_cache"

GUESSES = {
    "freezeframe": "Store Tenant Stream Job Files Settings DeltaLog Receipt open spark read sql register "
    "get_snapshot update_snapshot read_csv_folder read_json_folder read_parquet_folder "
    "open_tenant __version__ BadInput ConflictError FileNotFound FreezeframeError InvalidOption NotFound "
    "OutcomeUnknown SchemaDriftError StreamNotFound TenantNotFound TooManyDeletions TryAgain VersionNotFound",
    "freezeframe.asgi": "create_application",
    "freezeframe.control": "ControlDatabase JobQueue",
    "freezeframe.engine": "SparkEngine",
    "freezeframe.log": "DeltaLog LogOptions Snapshot Transaction Add Remove",
    "freezeframe.runs": "RunRequest run",
    "freezeframe.script": "import_stream export_stream get_snapshot update_snapshot spark snapshot_views",
    "freezeframe.storage": "LocalStorage ObjectStorage Storage",
    "freezeframe.store": "Store Tenant Stream Files Job",
}


@pytest.mark.parametrize("package", GUESSES)
def test_the_names_of_a_package_can_be_imported_from_it(package):
    """``from package import name`` works for each, and ``dir`` lists it."""
    module = importlib.import_module(package)
    for name in GUESSES[package].split():
        assert getattr(module, name) is not None
        assert name in dir(module)


PROGRAM = """
import datetime
from freezeframe import Receipt, Store, StreamNotFound, Tenant, get_snapshot, open, update_snapshot

store: Store = open("store")
acme: Tenant = store["acme"]
names: list[str] = [tenant for tenant in store if "Account" in store[tenant]]
account = acme.stream("Account")
receipt: Receipt = account.update(account.head(3), "Id", on_drift="error")
inserted: int = receipt.inserted
frame = account.to_pandas(version=3, columns=["Id"], where="Id > 5")
total: float = frame["Amount"].sum()
polars = account.to_polars()
height: int = polars.height
spark = account.read(as_="spark")
spark.createOrReplaceTempView("account")
pandas = account.read(as_="pandas", dtype_backend="pyarrow")
rows: int = len(pandas.index) + len(account) + account.count(where=[("Id", "=", "1")])
key: tuple[str, ...] = account.key
columns: list[str] = account.columns
versions: list[int] = [entry.version for entry in account.history(limit=5)]
when: datetime.datetime = acme.history()[0].timestamp
deleted: int = account.diff(versions[-1]).counts.deleted
changed = account.changes(0, as_="pandas")
back: int = account.restore(versions[-1], dry_run=True).tenant_version
with acme.job("load-7") as job:
    job["Account"].update(frame, "Id")
    job.files.write("a.txt", b"text")
try:
    acme["Nothing"]
except StreamNotFound as error:
    text: str = str(error)
again = get_snapshot("folder", "Account")
update_snapshot("folder", "Account", "Id", frame)
account.upsert(frame)
wrong: str = account.count()
acme.stream("Account").to_arrow(versoin=3)
account.to_pandas().no_such_method()
account.to_polars().no_such_method()
"""


@pytest.mark.nightly  # half a minute where mypy has read nothing yet
def test_a_program_of_users_is_checked_by_mypy(tmp_path):
    """What is right passes; a wrong name, option or type is found, and in the frames that come back."""
    (tmp_path / "program.py").write_text(PROGRAM)
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--cache-dir", str(CACHE)]
    lines = PROGRAM.splitlines()

    done = subprocess.run([*command, "program.py"], cwd=tmp_path, capture_output=True, text=True, check=False)

    found = {lines[int(line.split(":")[1]) - 1] for line in done.stdout.splitlines() if ": error:" in line}
    assert found == {line for line in lines if "upsert" in line or "wrong" in line or "no_such" in line} | {
        line for line in lines if "versoin" in line
    }, done.stdout


def test_another_name_is_an_attribute_error():
    """Its message has the package and the name."""
    with pytest.raises(AttributeError, match=r"module 'freezeframe\.store' has no attribute 'nothing'"):
        importlib.import_module("freezeframe.store").__getattr__("nothing")


def test_importing_the_packages_loads_none_of_the_large_libraries():
    """Neither pandas, PyArrow, PySpark nor FastAPI: they are loaded with the names that need them."""
    packages = sorted({*GUESSES} - {"freezeframe.log"})  # it is read with PyArrow
    code = f"import sys, {', '.join(packages)}; print(*sys.modules)"

    printed = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout

    assert {"pandas", "pyarrow", "pyspark", "fastapi"}.isdisjoint(printed.split())
