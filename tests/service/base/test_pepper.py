"""The service's secret: made once, kept private, rotated while services run."""

import json
import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from freezeframe.errors import InvalidOption, SetupError
from freezeframe.service.base.cursors import Cursors
from freezeframe.service.base.pepper import (
    Pepper,
    accepted_path,
    load_pepper,
    prepare_rotation,
    rotate_pepper,
    secret_path,
)
from freezeframe.settings import Settings

LABEL = b"test"


@pytest.fixture
def file(tmp_path):
    """The file of a service's secret, which is there."""
    path = tmp_path / "service.secret"
    load_pepper(Settings(service_secret_file=path), str(tmp_path))
    return path


def pepper(file):
    return load_pepper(Settings(service_secret_file=file), "unused")


def test_the_secret_is_made_once(tmp_path):
    """In the store's own folder, for its owner only; every process has the same."""
    first, second = (load_pepper(Settings(), str(tmp_path)).current(LABEL) for _ in range(2))

    assert first == second
    assert secret_path(Settings(), str(tmp_path)).stat().st_mode & 0o777 == 0o600


def test_a_running_service_follows_a_rotation(file):
    """New signatures are made with the new secret, those from before stay valid for the overlap."""
    running, cursors = pepper(file), Cursors(pepper(file))
    old, cursor = running.current(LABEL), cursors.encode("rows", 7)

    rotate_pepper(file, overlap_hours=1)

    assert running.current(LABEL) != old
    assert running.accepted(LABEL) == (running.current(LABEL), old)
    assert cursors.read("rows", cursor) == 7
    assert accepted_path(file).stat().st_mode & 0o777 == 0o600


def test_without_an_overlap_only_hashes_stay_valid(file):
    """Whoever stole the old secret can sign nothing with it; keys and the audit can still be checked."""
    running, cursors = pepper(file), Cursors(pepper(file))
    old, cursor = running.current(LABEL), cursors.encode("rows", 7)

    rotate_pepper(file, overlap_hours=0)

    assert running.accepted(LABEL) == (running.current(LABEL),)
    assert running.accepted(LABEL, lasting=True) == (running.current(LABEL), old)
    with pytest.raises(InvalidOption):
        cursors.read("rows", cursor)


def test_a_prepared_secret_is_accepted_before_it_is_used(file):
    """So that machines with copies of the files can be told one after the other; to prepare twice is once."""
    running = pepper(file)
    old = running.current(LABEL)

    prepare_rotation(file)
    prepare_rotation(file)
    (current, following) = running.accepted(LABEL)
    rotate_pepper(file, overlap_hours=1)

    assert current == old
    assert running.accepted(LABEL) == (following, old)


def test_every_secret_ever_used_is_kept(file):
    """Entries of the audit from before several rotations can be checked."""
    running = pepper(file)
    used = [running.current(LABEL)]
    for _ in range(3):
        rotate_pepper(file, overlap_hours=0)
        used.append(running.current(LABEL))

    assert running.accepted(LABEL, lasting=True) == tuple(reversed(used))


@pytest.mark.parametrize("cut_before", [2, 3])
def test_a_rotation_that_is_cut_off_loses_no_secret(file, monkeypatch, cut_before):
    """Before the current file is replaced, the accepted ones hold both; rotating again finishes."""
    running = pepper(file)
    old = running.current(LABEL)
    replace, calls = os.rename, []

    def rename(*arguments, **options):
        calls.append(arguments)
        if len(calls) == cut_before:
            raise KeyboardInterrupt
        replace(*arguments, **options)

    monkeypatch.setattr(os, "rename", rename)
    with pytest.raises(KeyboardInterrupt):
        rotate_pepper(file, overlap_hours=1)
    monkeypatch.undo()

    assert old in running.accepted(LABEL)
    prepare_rotation(file)  # what the cut left is no next secret
    seen = set(running.accepted(LABEL, lasting=True))
    before = running.current(LABEL)
    rotate_pepper(file, overlap_hours=1)
    assert running.current(LABEL) != before
    assert seen <= set(running.accepted(LABEL, lasting=True))


def test_rotations_at_once_lose_no_secret(file):
    """They wait for each other: every secret that was current is accepted afterwards."""
    running = pepper(file)
    seen = {running.current(LABEL)}

    def rotate(_):
        rotate_pepper(file, overlap_hours=1)
        seen.add(pepper(file).current(LABEL))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(rotate, range(12)))

    assert seen <= set(running.accepted(LABEL, lasting=True))
    assert len(running.accepted(LABEL, lasting=True)) == 13


@pytest.mark.parametrize("content", [b"[", b'[{"secret": "zz"}]', b"{}x", b"[1]"])
def test_damaged_accepted_secrets_are_named(file, content):
    """Nothing is believed of a damaged file, and the service does not start with it."""
    accepted_path(file).touch(mode=0o600)
    accepted_path(file).write_bytes(content)

    with pytest.raises(SetupError, match="accepted secrets"):
        pepper(file)


def test_files_that_others_may_read_are_refused(file):
    """Of the accepted secrets as of the current one."""
    prepare_rotation(file)
    for path in (accepted_path(file), file):
        path.chmod(0o640)
        with pytest.raises(SetupError, match="by others"):
            pepper(file)
        path.chmod(0o600)


def test_bad_input_changes_nothing(file, tmp_path):
    """A negative overlap, a secret that is too short, a place where none can be made."""
    before = file.read_bytes()
    with pytest.raises(InvalidOption):
        rotate_pepper(file, overlap_hours=-1)
    assert file.read_bytes() == before
    assert not accepted_path(file).exists()
    file.write_bytes(b"short")
    with pytest.raises(SetupError, match="too short"):
        rotate_pepper(file, overlap_hours=1)
    (tmp_path / "plain").write_text("")
    with pytest.raises(SetupError, match="cannot be made"):
        pepper(tmp_path / "plain" / "secret")


def test_the_record_has_no_more_than_is_needed(file):
    """The file's format: a list of secrets as hex, with their end and whether they are the next one."""
    prepare_rotation(file)

    (record,) = json.loads(accepted_path(file).read_text())
    assert sorted(record) == ["is_next", "secret", "until_ms"]


def test_a_fixed_pepper_has_one_secret():
    """For services that live in a test."""
    fixed = Pepper.of(b"s" * 32)
    assert fixed.accepted(LABEL, lasting=True) == (fixed.current(LABEL),)
