"""Requests and outcomes of runs."""

import json
from datetime import date
from pathlib import Path

import pytest

from freezeframe.errors import InputNotFound, InvalidName, InvalidOption
from freezeframe.runs.request import (
    RunOutcome,
    RunRequest,
    dated_input,
    given_input,
    input_folder,
    parse_run_request,
)


def request(**changes):
    given = {"root": "store", "environment": "default", "tenant": "acme", "script": "etl.py", "job_id": "1"}
    return RunRequest(**{**given, **changes})


def test_a_request_comes_back_from_its_json():
    """All fields survive the way through the queue."""
    asked = request(
        flow="qbo",
        input_dir=Path("in"),
        parameters={"limit": 5, "full": True, "none": None, "text": "ü"},
        timeout_seconds=2.5,
        memory_bytes=10,
        state=Path("state.json"),
        dry_run=True,
    )
    assert asked == parse_run_request(json.dumps(asked.to_json()))
    assert asked == parse_run_request(asked.to_json())


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"tenant": "../other"}, InvalidName),
        ({"environment": "a/b"}, InvalidName),
        ({"script": "etl.sh"}, InvalidOption),
        ({"job_id": ""}, InvalidOption),
        ({"job_id": "x" * 501}, InvalidOption),
        ({"job_id": "a\0b"}, InvalidOption),
        ({"root": ""}, InvalidOption),
        ({"parameters": {"a b": 1}}, InvalidOption),
        ({"parameters": {"a": [1]}}, InvalidOption),
        ({"parameters": {"x" * 101: 1}}, InvalidOption),
        ({"parameters": {"a=b": 1}}, InvalidOption),
        ({"parameters": {"a": "\0"}}, InvalidOption),
        ({"parameters": {"a": "\ud800"}}, InvalidOption),
        ({"parameters": {"a": "x" * 100_001}}, InvalidOption),
        ({"flow": "\ud800"}, InvalidOption),
        ({"timeout_seconds": 0}, InvalidOption),
        ({"memory_bytes": True}, InvalidOption),
        ({"dry_run": "no"}, InvalidOption),
    ],
)
def test_what_cannot_be_run_is_refused(changes, error):
    """Each bad field is a typed error before anything is written."""
    with pytest.raises(error):
        request(**changes)


def test_variables_of_a_former_version_are_parameters():
    """A job that waited in the queue when the version changed can be run."""
    former = {**request(parameters={"limit": 5}).to_json(), "variables": {"IMPORT_OPTIONS": "{}"}}
    assert "dry_run" not in former  # the same request as before
    assert request(parameters={"limit": 5, "IMPORT_OPTIONS": "{}"}) == parse_run_request(former)


DAY = date(2026, 11, 27)


@pytest.mark.parametrize(
    ("text", "folder"),
    [
        ("data/acme/2026-11-27", "data/acme/2026-11-27"),
        ("data/{tenant}/{date}", "data/acme/2026-11-27"),
        ("data/{tenant}/{newest}", "data/acme/sync-10"),
        ("data/{tenant}/2026-{newest}", "data/acme/2026-12-01"),
        ("data/{tenant}/{newest}-01", "data/acme/2026-12-01"),
        ("data/{newest}", "data/7{braces}"),
        ("data/7{braces}", "data/7{braces}"),
    ],
)
def test_placeholders_of_an_input_name_a_folder(tmp_path, monkeypatch, text, folder):
    """Of a tenant, a day, the newest by the numbers in the names; a folder that is there is itself."""
    monkeypatch.chdir(tmp_path)
    for name in ("2026-11-27", "2026-12-01", "2026-1-3", "sync-9", "sync-10", "zone", ".99", "_98"):
        Path("data/acme", name).mkdir(parents=True)
    Path("data/acme/sync-11").touch()
    Path("data/7{braces}").mkdir()

    found = dated_input(given_input(Path(text)), DAY)
    assert input_folder(found, "acme", DAY) == tmp_path / folder


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        ("data/{tenat}", InvalidOption, "{tenat} is not a placeholder"),
        ("data/{newest}{newest}", InvalidOption, "more than once"),
        ("dta/{tenant}", InputNotFound, "There is no folder .*dta"),
        ("nothing", InputNotFound, "nothing"),
    ],
)
def test_an_input_that_cannot_be_is_refused_at_once(tmp_path, monkeypatch, text, error, words):
    """Before anything is queued: an unknown placeholder, or a folder above the first that is not there."""
    monkeypatch.chdir(tmp_path)
    Path("data").mkdir()

    with pytest.raises(error, match=words):
        given_input(Path(text))


@pytest.mark.parametrize("text", ["{tenant}/{newest}", "{tenant}/{date}", "b/{newest}"])
def test_a_folder_that_is_not_there_yet_is_named(tmp_path, text):
    """A tenant without a sync's folder, or without one of that day."""
    (tmp_path / "acme" / "archive").mkdir(parents=True)

    with pytest.raises(InputNotFound, match=r"acme|b/"):
        input_folder(tmp_path / text, "acme", DAY)


def test_other_json_is_refused():
    """What is not a request says so."""
    with pytest.raises(InvalidOption):
        parse_run_request("{}")
    with pytest.raises(InvalidOption):
        parse_run_request("no json")


def outcome(**changes):
    given = {
        "status": "succeeded",
        "job_id": "1",
        "job_root": Path("/r"),
        "seconds": 1.0,
        "tenant_version": 3,
        "receipt": {"streams": {}},
        "error": None,
        "log": Path("/r/script.log"),
        "notebook": None,
        "exit_code": 0,
    }
    return RunOutcome(**{**given, **changes})


@pytest.mark.parametrize(
    "changes",
    [
        {"status": "done"},
        {"receipt": None},
        {"error": {"code": "X"}},
        {"status": "failed"},
        {"status": "failed", "receipt": None, "error": None},
    ],
)
def test_an_outcome_cannot_contradict_itself(changes):
    """A success has a receipt and no error, anything else the reverse."""
    with pytest.raises(InvalidOption):
        outcome(**changes)
