"""Processor time of an hourly sync: what a machine needs for how many tenants.

Each of a few tenants has three streams; a sync brings rows of each, a queued job runs a script that updates
the streams, and a worker runs the jobs one after the other. What is counted is processor time, of the
worker, the warm runner with its jobs, and the warm Spark server with its Python workers: so the result does
not depend on other work of the machine as seconds by the clock do.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import tempfile
from pathlib import Path

from measured import batch, keep, rows
from processes import family, processor_seconds

STREAMS = ("Account", "Contact", "Invoice")
SCRIPT = """
import os
import freezeframe as ff
{imports}
root = os.environ["ROOT_DIR"]
for name, rows in ff.read_csv_folder(f"{{root}}/sync-output", as_="{kind}").items():
    ff.update_snapshot(f"{{root}}/snapshots", name, ["Id"], rows)
"""
KINDS = {
    "PySpark": ("from pyspark.sql import functions", "spark", "spark"),
    "pandas, engine=auto": ("", "pandas", "auto"),
}


def freezeframe(*arguments: str, **variables: str) -> str:
    """Run a command; return what it prints."""
    done = subprocess.run(
        ["freezeframe", *arguments], env=os.environ | variables, check=True, stdout=subprocess.PIPE, text=True
    )
    return done.stdout


def used_seconds() -> float:
    """Return the processor time so far of all commands, the warm runner and the warm server."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    status = json.loads(freezeframe("spark", "status", "--json"))
    runner = status["runner"] or {}
    roots = [runner.get("process"), *(server["process"] for server in status["servers"])]
    below = processor_seconds(family(*filter(None, roots))) if any(roots) else 0
    return used.ru_utime + used.ru_stime + below


def measure(kind: str, tenants: int, stored: int, sent: int, syncs: int) -> dict[str, object]:
    """Return the processor time of a job, the first load of each tenant left out."""
    imports, frames, engine = KINDS[kind]
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "etl.py").write_text(SCRIPT.format(imports=imports, kind=frames))
        per_job = []
        for sync in range(syncs + 1):
            for tenant in range(tenants):
                sync_output = root / f"sync-{tenant}-{sync}"
                sync_output.mkdir()
                for name in STREAMS:
                    brought = batch(sync, stored, sent) if sync else rows(range(stored), seed=tenant)
                    brought.round({"Revenue": 2, "Score": 2}).to_csv(sync_output / f"{name}.csv", index=False)
                store = ("--root", str(root / "store"), "--tenant", f"t{tenant}")
                freezeframe("job", "submit", str(root / "etl.py"), *store, "--input", str(sync_output))
            before = used_seconds()
            freezeframe("worker", "--drain", "--root", str(root / "store"), FREEZEFRAME_ENGINE=engine)
            if sync:
                per_job.append((used_seconds() - before) / tenants)
        counts = json.loads(freezeframe("job", "list", "--root", str(root / "store"), "--json"))
    jobs = counts if isinstance(counts, list) else counts["jobs"]
    assert {job["status"] for job in jobs} == {"succeeded"}, jobs
    return {"processor_seconds_per_job": [round(seconds, 3) for seconds in per_job]}


def main() -> None:
    """Measure both kinds of script and keep the result."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    for name, default in (("tenants", 10), ("stored", 10_000), ("sent", 500), ("syncs", 3)):
        parser.add_argument(f"--{name}", type=int, default=default)
    arguments = vars(parser.parse_args())
    keep("tenant_hour", {**arguments, "kinds": {kind: measure(kind, **arguments) for kind in KINDS}})


if __name__ == "__main__":
    main()
