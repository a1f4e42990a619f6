"""Watching long works: what is said in them reaches whoever watches, and nobody else."""

from pathlib import Path

import pandas as pd
import pytest

import freezeframe
from freezeframe import progress


class Notes:
    """A watcher that writes down what it is told."""

    def __init__(self):
        self.parts = []

    def begin(self, doing, unit, total):
        self.parts.append([doing, unit, total, 0])

    def advance(self, count):
        self.parts[-1][3] += count

    def wait_for(self, what):
        self.parts.append(what)


def test_a_watcher_hears_its_own_block_only():
    """Before, after, and without a watcher, saying something does nothing."""
    notes = Notes()
    progress.begin("before", "files", 1)
    with progress.watched_by(notes):
        progress.begin("copying", "bytes")
        assert list(progress.count_bytes([b"ab", b"c"])) == [b"ab", b"c"]
        progress.advance()
        progress.wait_for("Spark")
    progress.advance(7)
    progress.wait_for("nobody")

    assert notes.parts == [["copying", "bytes", None, 4], "Spark"]


@pytest.fixture
def store(tmp_path):
    """A store whose tenant acme has a stream and a file."""
    store = freezeframe.open(tmp_path / "store")
    tenant = store.tenant("acme", create=True)
    tenant.stream("Account").update(pd.DataFrame({"Id": ["1", "2"], "Name": ["a", "b"]}), key="Id")
    tenant.files.write("a.bin", b"x" * 100_000)
    return store


def test_long_works_say_how_far_they_are(store, tmp_path):
    """Copying, erasing: each says its parts, and what it had announced is done."""
    from freezeframe.script.inputs.transfer import export_stream

    works = {
        "copying": lambda: store.clone_tenant("acme", "third"),
        "rewriting": lambda: store.tenant("third").erase("Account", ["1"]),
    }
    for doing, work in works.items():
        notes = Notes()
        with progress.watched_by(notes):
            work()
        told = {part[0]: part for part in notes.parts}
        _, unit, total, done = told[doing]
        assert done >= (1 if unit == "rows" else 100_000), doing
        assert total in {None, done}, doing
    notes = Notes()
    with progress.watched_by(notes):
        export_stream(store.tenant("acme").stream("Account"), Path(tmp_path))
    assert notes.parts == [["writing", "rows", 2, 2]]
