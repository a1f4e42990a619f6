"""A service of a store, and a steady load of it from one thread."""

import contextlib
import json
import os
import subprocess
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import httpx
import psutil

PLACE = "/api/v1/environments/default/tenants"
NAMES, PAUSE_SECONDS = 20, 0.03


@dataclass(frozen=True)
class Service:
    """A service that runs."""

    url: str
    key: str
    process: psutil.Process


@contextlib.contextmanager
def served(root):
    """``freezeframe serve`` with one worker, without quotas, as a process of its own."""
    command = Path(sys.executable).parent / "freezeframe"
    environment = {
        **os.environ,
        "FREEZEFRAME_SERVICE_REQUESTS_PER_SECOND": "0",
        "FREEZEFRAME_GC_GRACE_SECONDS": "20",
        "FREEZEFRAME_KEEP_VERSIONS": "200",
    }
    serve = [command, "serve", "--root", str(root), "--port", "0", "--workers", "1", "--json"]
    process = subprocess.Popen(serve, stdout=subprocess.PIPE, env=environment, text=True, cwd=root.parent)
    try:
        url = json.loads(process.stdout.readline())["url"]
        create = [command, "key", "create", "--root", str(root), "--env", "default", "--json"]
        told = subprocess.run(create, capture_output=True, check=True, cwd=root.parent, env=environment)
        yield Service(url, json.loads(told.stdout)["key"], psutil.Process(process.pid))
    finally:
        process.terminate()
        process.wait(60)
        process.stdout.close()


class Load:
    """Uploads, downloads and rows, one request after the other; what was uploaded is what is downloaded."""

    def __init__(self, service, tenants, seconds):
        self._client = httpx.Client(base_url=service.url, headers={"x-api-key": service.key}, timeout=60)
        self._tenants, self._seconds = tenants, seconds
        self.counts, self.wrong = Counter(), []
        self._may_run, self._is_over = threading.Event(), False
        self._thread = threading.Thread(target=self._run)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._is_over = True
        self._may_run.set()
        self._thread.join()
        self._client.close()

    @contextlib.contextmanager
    def running(self):
        self._may_run.set()
        yield
        self._may_run.clear()

    def _run(self):
        number = 0
        while not self._is_over:
            self._may_run.wait()
            try:
                self._request(number)
            except Exception as error:  # noqa: BLE001 - told with the piece
                self.wrong.append(f"request {number}: {type(error).__name__}: {error}")
                return
            number += 1
            time.sleep(PAUSE_SECONDS)

    def _request(self, number):
        path, sent = f"{PLACE}/served/files/{number % NAMES}.txt", f"{number} ".encode() * 500
        with self._timed("upload"):
            self._client.put(path, content=sent).raise_for_status()
        with self._timed("download"):
            found = self._client.get(path).raise_for_status().content
        if found != sent:
            self.wrong.append(f"{path} was {sent[:20]} and is {found[:20]}")
        with self._timed("rows"):
            rows = f"{PLACE}/{self._tenants[number % len(self._tenants)]}/streams/Account/rows"
            answer = self._client.get(rows, params={"limit": 20})
        if answer.status_code not in (200, 404):
            self.wrong.append(f"{rows}: {answer.status_code} {answer.text[:200]}")

    @contextlib.contextmanager
    def _timed(self, kind):
        began = time.perf_counter()
        yield
        self._seconds[kind].append(time.perf_counter() - began)
        self.counts[f"{kind} requests"] += 1
