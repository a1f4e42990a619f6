"""A store to run scripts for, with a warm runner that this session's runs share."""

import textwrap
import uuid

import pytest
from tests.quick_java import with_classes

from freezeframe.control.queue import Backoff, JobQueue
from freezeframe.runs.request import RunRequest
from freezeframe.runs.running import run
from freezeframe.script import tenants
from freezeframe.settings import Settings


@pytest.fixture(scope="session")
def run_settings(tmp_path_factory):
    """Settings with a state folder of this session; they are the same for all, so one runner serves all."""
    return Settings(
        state_dir=with_classes(tmp_path_factory.mktemp("runs") / "state"),
        runner_idle_seconds=20,
        lease_heartbeat_seconds=5,
    )


@pytest.fixture
def settings(tmp_path):
    """Settings of a machine of its own."""
    return Settings(state_dir=tmp_path / "state")


@pytest.fixture
def queue(database):
    """Its jobs; failed ones wait for nothing."""
    return JobQueue(database, Backoff(0, 0))


class Runs:
    """Scripts written and run for one tenant of one store."""

    def __init__(self, folder, settings):
        self.folder = folder
        self.root = str(folder / "store")
        self.settings = settings
        self.lines = []

    def script(self, body, name="etl.py"):
        """A script of that text, in a folder of its own."""
        path = self.folder / "scripts" / uuid.uuid4().hex / name
        path.parent.mkdir(parents=True)
        path.write_text(textwrap.dedent(body), encoding="utf-8")
        return path

    def request(self, body, **given):
        """A request for a script, given as its path or its text."""
        script = body if not isinstance(body, str) else self.script(body)
        named = {"environment": "default", "tenant": "acme", "job_id": uuid.uuid4().hex, **given}
        return RunRequest(root=self.root, script=script, **named)

    def run(self, body, is_cancelled=lambda: False, settings=None, variables=None, **given):
        """Run a script to its outcome; what it prints is in ``lines``."""
        self.lines = []
        request = self.request(body, **given)
        return run(
            request,
            settings=settings or self.settings,
            variables=variables or {},
            on_line=self.lines.append,
            is_cancelled=is_cancelled,
        )

    @property
    def tenant(self):
        """The tenant as others see it."""
        return tenants.open(self.root).tenant("acme", create=True)


@pytest.fixture
def runs(tmp_path, run_settings):
    """A new store, and a way to run scripts for its tenant ``acme``."""
    return Runs(tmp_path, run_settings)
