"""One warm Spark server for the whole run, the product's own; beside it one in which Delta answers."""

import gc
import os
import signal
from pathlib import Path

import pytest
from tests import examples  # noqa: F401 - loads the profile of hypothesis
from tests.quick_java import JAVA_OPTIONS, with_classes
from tests.spark_server import delta_server, spark_defaults, spark_environment

from freezeframe.control.database import ControlDatabase
from freezeframe.engine.connect import connect
from freezeframe.script.tenants import shared_engine
from freezeframe.settings import Settings


def pytest_sessionstart():
    """SIGTERM ends a run as Ctrl-C does: servers, databases and browsers of fixtures end with it."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    # A shell starts what runs in the background with SIGINT ignored, and so would all that tests start.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # Most tests need no Spark; those of the default engine ask for `default_engine` or `asked_spark`.
    os.environ["FREEZEFRAME_ENGINE"] = "auto"


def pytest_collection_finish():
    """Collections of garbage pass over the modules and cases, which live as long as the run."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 20, 20)


@pytest.fixture(scope="session", autouse=True)
def run_home(tmp_path_factory):
    """A home of the run's own, where defaults of paths lead: no test reads or writes that of the user."""
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("UV_CACHE_DIR", os.environ.get("UV_CACHE_DIR", str(cache / "uv")))  # downloads are kept
        patch.delenv("XDG_CONFIG_HOME", raising=False)
        folder = tmp_path_factory.mktemp("home")
        patch.setenv("HOME", str(folder))
        yield folder
    started = list((folder / ".cache" / "freezeframe").glob("spark-*"))
    assert not started, "a test started Spark without a state folder of its own"


@pytest.fixture
def no_variables(monkeypatch):
    """No setting comes from the environment, whatever earlier tests set for the whole run."""
    for name in [name for name in os.environ if name.startswith("FREEZEFRAME_")]:
        monkeypatch.delenv(name)


@pytest.fixture
def default_engine(monkeypatch):
    """The engine is what a user has who sets none; in child processes as well."""
    monkeypatch.delenv("FREEZEFRAME_ENGINE", raising=False)


@pytest.fixture
def spark_state(tmp_path, monkeypatch):
    """The state folder of servers that are this test's alone, and are up sooner without jars for buckets."""
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", JAVA_OPTIONS)
    monkeypatch.setenv("SPARK_CONF_DIR", str(spark_defaults(tmp_path / "conf", {})))
    return with_classes(tmp_path / "state")


@pytest.fixture(scope="session")
def spark_settings(tmp_path_factory):
    """Settings of a server of this run alone; child processes find the same one by the environment."""
    with pytest.MonkeyPatch.context() as patch:
        spark_environment(tmp_path_factory.mktemp("state"), patch)
        yield Settings()


@pytest.fixture(autouse=True)
def run_server(request):
    """Let a test with the mark `spark` find the server of this run."""
    if request.node.get_closest_marker("spark"):
        request.getfixturevalue("spark_settings")


@pytest.fixture(scope="session")
def spark_engine(spark_settings):
    """The engine of this process, on the run's server."""
    engine = shared_engine()
    yield engine
    engine.close()


@pytest.fixture
def asked_spark(monkeypatch):
    """Keys are looked for by Spark, however few rows there are; in child processes as well."""
    monkeypatch.setenv("FREEZEFRAME_ENGINE", "spark")


@pytest.fixture(params=["this process", pytest.param("Spark", marks=pytest.mark.spark)])
def searcher(request):
    """Who looks for keys: each in turn."""
    if request.param == "Spark":
        request.getfixturevalue("asked_spark")
    return request.param


@pytest.fixture
def database(tmp_path):
    """An empty control database."""
    opened = ControlDatabase.open(f"sqlite:///{tmp_path / 'control.db'}")
    yield opened
    opened.close()


@pytest.fixture(scope="session")
def spark_session(spark_settings):
    """A session as a user would have one, on the same server."""
    connection = connect(spark_settings, lambda _: None)
    yield connection.session
    connection.close()


@pytest.fixture(scope="session")
def delta_session(tmp_path_factory):
    """A session in which Delta's own implementation answers, by a Spark of its own."""
    with delta_server(tmp_path_factory.mktemp("delta")) as session:
        yield session


@pytest.fixture(scope="session")
def conformance():
    """The folder of tables with Spark's own answers."""
    return _folder("FREEZEFRAME_CONFORMANCE", "conformance data")


@pytest.fixture(scope="session")
def samples():
    """The folder of real sync output."""
    return _folder("FREEZEFRAME_SAMPLES", "samples")


def _folder(variable, what):
    folder = Path(os.environ.get(variable, "absent"))
    if not folder.is_dir():
        pytest.skip(f"{what} not found at {folder} ({variable}): skipped")
    return folder
