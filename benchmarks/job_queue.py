"""How many jobs get through the queue, and is every one of them done exactly once?

- The queue alone: submit, and claim + finish, per second, of one process.
- 100 jobs of 20 tenants through 2 workers, each a process of its own: scripts that write a file and need
  no Spark. Then, with ``--spark``, the same with an update of a stream in every fifth job.

Each script adds its job's id to a file of its tenant; afterwards that file must hold each id once, in the
order of submission. ``FREEZEFRAME_TEST_DATABASE`` names a PostgreSQL database, empty, to be measured as well.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from measured import keep

from freezeframe.control.database import ControlDatabase
from freezeframe.control.queue import JobQueue
from freezeframe.control.submission import Submission
from freezeframe.runs.request import RunRequest, request_store
from freezeframe.settings import Settings

JOBS, TENANTS, WORKERS = 100, 20, 2
ALONE = 400
ENVIRONMENT, LEDGER = "default", "ledger.txt"
SCRIPT = f"""
import os
with open(os.path.join(os.environ["ROOT_DIR"], "snapshots", "{LEDGER}"), "a") as ledger:
    ledger.write(os.environ["JOB_ID"] + "\\n")
if os.environ.get("PARAM_update") == "true":
    import freezeframe, pandas
    rows = pandas.DataFrame({{"Id": [str(n) for n in range(1000)], "Job": os.environ["JOB_ID"]}})
    freezeframe.update_snapshot(os.environ["snapshot_dir"], "Account", "Id", rows)
"""


def main(arguments: list[str]) -> int:
    with tempfile.TemporaryDirectory(prefix="freezeframe-bench-", dir=os.environ.get("TMPDIR")) as folder:
        root = Path(folder)
        urls = {"sqlite": f"sqlite:///{root / 'alone.db'}"}
        if named := os.environ.get("FREEZEFRAME_TEST_DATABASE"):
            urls["postgresql"] = named
        result: dict[str, object] = {
            "queue_alone": {name: queue_alone(url) for name, url in urls.items()},
            "files": through_workers(root / "files", spark_every=0),
        }
        if "--spark" in arguments:
            result["files_and_updates"] = through_workers(root / "mixed", spark_every=5)
    keep("job_queue", result)
    runs = [item for item in result.values() if "exactly_once_in_order" in item]
    return 0 if all(run["exactly_once_in_order"] for run in runs) else 1


def queue_alone(url: str) -> dict[str, float]:
    database = ControlDatabase.open(url)
    queue = JobQueue(database)
    started = time.perf_counter()
    for number in range(ALONE):
        queue.submit(Submission("{}", "dev", f"t{number % TENANTS}", f"{number}"))
    submitted = time.perf_counter()
    while (job := queue.claim("worker")) is not None:
        queue.finish(job, "succeeded")
    ended = time.perf_counter()
    database.close()
    return {
        "submitted_per_second": round(ALONE / (submitted - started), 1),
        "claimed_and_finished_per_second": round(ALONE / (ended - submitted), 1),
    }


def through_workers(folder: Path, spark_every: int) -> dict[str, object]:
    folder.mkdir()
    (folder / "etl.py").write_text(SCRIPT)
    root, url = folder / "store", f"sqlite:///{folder / 'control.db'}"
    database = ControlDatabase.open(url)
    queue = JobQueue(database)
    for number in range(JOBS):
        updates = bool(spark_every) and number % spark_every == 0
        submit(queue, root, f"t{number % TENANTS}", f"job-{number}", folder / "etl.py", updates=updates)
    command = [sys.executable, "-c", "import sys; from freezeframe.cli.main import main; sys.exit(main())"]
    environment = {**os.environ, "FREEZEFRAME_DATABASE_URL": url}
    started = time.perf_counter()
    workers = [
        subprocess.Popen(
            [*command, "worker", "--drain", "--poll", "0.2", "--root", root],
            env=environment,
            stdout=subprocess.DEVNULL,
        )
        for _ in range(WORKERS)
    ]
    codes = [worker.wait() for worker in workers]
    seconds = time.perf_counter() - started
    jobs = queue.list(limit=1000).jobs
    database.close()
    runs = sorted(job.outcome["seconds"] for job in jobs if job.outcome)
    return {
        "jobs": JOBS,
        "tenants": TENANTS,
        "workers": WORKERS,
        "with_spark": sum(bool(json.loads(job.request)["parameters"]) for job in jobs),
        "seconds": round(seconds, 1),
        "jobs_per_minute": round(60 * JOBS / seconds, 1),
        "median_run_seconds": round(runs[len(runs) // 2], 2),
        "longest_run_seconds": round(runs[-1], 2),  # the first one, which starts the warm process
        "succeeded": sum(job.status == "succeeded" for job in jobs),
        "retried": sum(job.attempts > 1 for job in jobs),
        "exit_codes": codes,
        "exactly_once_in_order": all(
            ledger(root, f"t{tenant}") == [f"job-{number}" for number in range(tenant, JOBS, TENANTS)]
            for tenant in range(TENANTS)
        ),
    }


def submit(queue: JobQueue, root: Path, tenant: str, job_id: str, script: Path, *, updates: bool) -> None:
    parameters = {"update": True} if updates else {}
    request = RunRequest(str(root), ENVIRONMENT, tenant, script, job_id, parameters=parameters)
    queue.submit(Submission(json.dumps(request.to_json()), ENVIRONMENT, tenant, job_id))


def ledger(root: Path, tenant: str) -> list[str]:
    store = request_store(RunRequest(str(root), ENVIRONMENT, tenant, Path("etl.py"), "-"), Settings())
    return store.tenant(tenant).files.read(LEDGER).decode().split()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
