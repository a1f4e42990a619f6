"""``freezeframe serve`` as people start it, in a process of its own."""

import json
import subprocess
import sys


class Process:
    """A service of the store at ``root``; as a context it runs, at a port that was free."""

    def __init__(self, root, environment, workers=None):
        self.root = root
        self.environment = environment
        self.url = self.sign_in = ""
        self.keys = {}
        self.process = None
        self._workers = [] if workers is None else ["--workers", str(workers)]

    def __enter__(self):
        self.start(0)
        return self

    def __exit__(self, *_):
        self.stop()

    def start(self, port):
        """Start it at the port (0: any that is free)."""
        place = ["--root", str(self.root), "--port", str(port), "--json", *self._workers]
        command = [sys.executable, "-m", "freezeframe", "serve", *place]
        self.process = subprocess.Popen(command, env=self.environment, stdout=subprocess.PIPE, text=True)
        told = json.loads(self.process.stdout.readline())
        self.url, self.sign_in = told["url"], told.get("sign_in", "")

    def stop(self):
        """Ask it to stop, and wait until it has."""
        self.process.terminate()
        self._ended()

    def kill(self):
        """End it as a power cut does."""
        self.process.kill()
        self._ended()

    def _ended(self):
        self.process.wait(timeout=120)
        self.process.stdout.close()
