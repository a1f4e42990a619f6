"""The public names are where people guess them, and cost nothing until they are used."""

import importlib
import subprocess
import sys

import pytest

GUESSES = {
    "freezeframe": "Store Tenant Stream Job Files Settings DeltaLog Receipt open spark "
    "get_snapshot update_snapshot read_csv_folder read_json_folder read_parquet_folder "
    "open_tenant __version__",
    "freezeframe.asgi": "create_application",
    "freezeframe.control": "ControlDatabase JobQueue",
    "freezeframe.engine": "SparkEngine",
    "freezeframe.log": "DeltaLog",
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
