"""The DAG and the asset of the page about orchestrators run, with Airflow and Dagster beside the package."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import freezeframe

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(1800)]

REPOSITORY = Path(__file__).parent.parent.parent
PAGE = REPOSITORY / "docs" / "how-to" / "orchestrators.md"
UV = REPOSITORY / ".cache" / "uv" / "bin" / "uv"
ORCHESTRATORS = ["apache-airflow>=3,<4", "apache-airflow-providers-standard", "dagster>=1.13,<2"]
OFFLINE = re.compile(r"failed to fetch|error sending request|dns error|network", re.IGNORECASE)

SCRIPT = """
import os
from freezeframe.script import read_csv_folder, update_snapshot
rows = read_csv_folder(os.environ["ROOT_DIR"] + "/sync-output")
update_snapshot(os.environ["ROOT_DIR"] + "/snapshots", "Account", ["Id"], rows["Account"])
"""


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """The programs of an environment with the package, its queue, and both orchestrators."""
    if not UV.is_file():
        pytest.skip(f"there is no {UV}, with which `make` installs packages")
    place = tmp_path_factory.mktemp("orchestrators") / "venv"
    subprocess.run([sys.executable, "-m", "venv", place], check=True)
    command = [UV, "pip", "install", "--quiet", "--python", place / "bin" / "python"]
    environment = {**os.environ, "FREEZEFRAME_SKIP_CONSOLE": "1", "UV_SYSTEM_CERTS": "1"}
    packages = [*ORCHESTRATORS, f"freezeframe[jobs] @ file://{REPOSITORY}"]
    run = subprocess.run([*command, *packages], env=environment, capture_output=True, text=True, check=False)
    if run.returncode and "No solution found" not in run.stderr and OFFLINE.search(run.stderr):
        pytest.skip(f"the registry of packages cannot be reached: {run.stderr.strip().splitlines()[0]}")
    assert run.returncode == 0, run.stderr
    return place / "bin"


@pytest.fixture
def project(tmp_path, programs):
    """A folder with the page's two examples, a script and two syncs, and the environment of its programs."""
    examples = re.findall(r"^```py\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    (tmp_path / "dags").mkdir()
    (tmp_path / "dagster").mkdir()
    for name, text in zip(("dags/sync.py", "assets.py"), examples, strict=True):
        (tmp_path / name).write_text(text.replace("/srv", str(tmp_path)))
    (tmp_path / "etl.py").write_text(SCRIPT)
    for sync in ("2026-11-21", "latest"):
        (tmp_path / "sync" / sync).mkdir(parents=True)
        (tmp_path / "sync" / sync / "Account-20261121T000000.csv").write_text(f"Id,From\n1,by {sync}\n")
    return {
        **os.environ,
        "PATH": f"{programs}:{os.environ['PATH']}",
        "AIRFLOW_HOME": str(tmp_path / "airflow"),
        "AIRFLOW__CORE__DAGS_FOLDER": str(tmp_path / "dags"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "DAGSTER_HOME": str(tmp_path / "dagster"),
        "DAGSTER_DISABLE_TELEMETRY": "1",
        "FREEZEFRAME_ENGINE": "auto",
        "FREEZEFRAME_STATE_DIR": str(tmp_path / "state"),
    }


def test_the_examples_run_their_jobs(tmp_path, programs, project):
    """Airflow tests the DAG, Dagster materialises the asset; each makes one version of the tenant."""
    with subprocess.Popen(
        [programs / "freezeframe", "worker", "--root", tmp_path / "data"], env=project, cwd=tmp_path
    ) as worker:
        try:
            runs = [
                subprocess.run(
                    line.split(), env=project, cwd=tmp_path, capture_output=True, text=True, check=False
                )
                for line in (
                    "airflow db migrate",
                    "airflow dags test sync 2026-11-21",
                    "dagster asset materialize -f assets.py --select acme",
                )
            ]
        finally:
            worker.terminate()
    told = [run.stdout[-2000:] + run.stderr[-2000:] for run in runs]
    tenant = freezeframe.open(tmp_path / "data").tenant("acme")
    history = list(tenant.history())

    assert [run.returncode for run in runs] == [0, 0, 0], told
    assert [
        tenant.stream("Account").read(version=item.version, as_="arrow")["From"][0].as_py()
        for item in history
    ] == ["by latest", "by 2026-11-21"]
    assert [item.job_id.startswith("acme-") for item in history] == [True, True]
