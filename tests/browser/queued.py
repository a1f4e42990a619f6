"""Jobs as workers leave them, most without having run: what they did is not what these tests look at."""

import json
from contextlib import contextmanager

from freezeframe.control.database import ControlDatabase, database_url
from freezeframe.control.queue import JobQueue
from freezeframe.control.submission import Submission
from freezeframe.runs.job_root import make_job_root
from freezeframe.runs.queue.attempt import JobAttempt, Times
from freezeframe.runs.request import RunRequest, parse_run_request, request_tenant
from freezeframe.runs.running import run
from freezeframe.settings import load_settings
from freezeframe.store.model.directory import job_roots_folder

NOTEBOOK = {
    "cells": [
        {"cell_type": "markdown", "source": ["# Invoices"]},
        {
            "cell_type": "code",
            "source": "invoices.head()",
            "execution_count": 1,
            "outputs": [
                {
                    "output_type": "execute_result",
                    "data": {
                        "text/plain": "   Id State\n0   7  paid",
                        "text/html": "<img src=x onerror=\"document.title='taken over'\">",
                    },
                }
            ],
        },
        {
            "cell_type": "code",
            "source": "1 / 0",
            "execution_count": 2,
            "outputs": [
                {
                    "output_type": "error",
                    "ename": "ZeroDivisionError",
                    "evalue": "division by zero",
                    "traceback": ["\u001b[31mZeroDivisionError\u001b[0m: division by zero"],
                }
            ],
        },
    ],
    "metadata": {},
    "nbformat": 4,
    "nbformat_minor": 5,
}


class Worker:
    """What a worker does to the queue of a served store, step by step."""

    def __init__(self, root, scripts):
        self._root, self._scripts = root, scripts
        self._settings = load_settings(root=str(root))
        self._database = ControlDatabase.open(database_url(self._settings, str(root)))
        self.queue = JobQueue(self._database)

    def close(self):
        self._database.close()

    def submit(self, tenant, job_id, script="etl.py"):
        """A job of the script that waits."""
        request = RunRequest(
            root=str(self._root),
            environment="default",
            tenant=tenant,
            script=self._scripts / script,
            job_id=job_id,
        )
        text = json.dumps(request.to_json())
        return self.queue.submit(Submission(text, environment="default", tenant=tenant, job_id=job_id))

    def claim(self, job_id):
        """The job, which runs now; those that were before it have failed."""
        while (job := self.queue.claim("worker", lease_seconds=600)).job_id != job_id:
            self.queue.finish(job, "failed", "{}")
        return job

    def perform(self, job_id):
        """The job after it was run as workers do, with its input kept."""
        place = self._scripts.parent
        own = {"state_dir": place / "state", "master_key_file": place / "master.key"}
        own |= {"service_scripts_dir": self._scripts, "keep_inputs_days": 30, "runner_idle_seconds": 0}
        settings = self._settings.model_copy(update=own)
        return JobAttempt(self.queue, self.claim(job_id), run, settings, Times(), lambda: False).perform()

    @contextmanager
    def running(self, tenant, job_id):
        """The job while it runs: a function that writes a line of its log, and one that ends it."""
        request = self.submit(tenant, job_id).request
        job = self.claim(job_id)
        parsed = parse_run_request(request)
        storage = request_tenant(parsed, self._settings).context.storage
        root = make_job_root(job_roots_folder(storage, self._settings), parsed)

        def write(line):
            with root.log.open("a") as file:
                file.write(f"{line}\n")

        def end(status):
            notebook = root.path / "etl.ipynb"
            notebook.write_text(json.dumps(NOTEBOOK))
            outcome = {"log": str(root.log), "notebook": str(notebook)}
            return self.queue.finish(job, status, json.dumps(outcome))

        yield write, end
