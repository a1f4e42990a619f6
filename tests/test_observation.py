"""Lines of the log with their context, in both formats, and operations as observers hear of them."""

import json
import logging
import re
import subprocess
import sys
import threading

import pyarrow as pa
import pytest
from tests.recorded_spans import spans  # noqa: F401 - a fixture

import freezeframe
from freezeframe.errors import ConflictError
from freezeframe.observation import configure_logging, log_context, note, observe, observe_with

LOGGER = logging.getLogger("freezeframe.tests")


@pytest.fixture
def lines(capsys):
    """A function that gives what was logged since; the root logger is put back."""
    root = logging.getLogger()
    before, level = root.handlers[:], root.level
    root.handlers[:] = []

    def begin(kind, least="info"):
        configure_logging(kind, least)
        return told

    def told():
        return capsys.readouterr().err.splitlines()

    yield begin
    root.handlers[:] = before
    root.setLevel(level)


def test_a_json_line_has_its_context(lines):
    """Fields of the block, those that were noted within it, and the line's own; none after the block."""
    told = lines("json")
    with log_context(request="r1", tenant="acme"):
        note(principal="key:1")
        LOGGER.info("Done", extra={"seconds": 0.5})
    note(principal="nobody")
    LOGGER.info("After")
    first, second = map(json.loads, told())

    assert {"request": "r1", "tenant": "acme", "principal": "key:1", "seconds": 0.5}.items() <= first.items()
    assert (first["level"], first["logger"], first["message"]) == ("info", "freezeframe.tests", "Done")
    assert second.keys() == {"time", "level", "logger", "message"}


@pytest.mark.parametrize(("least", "is_told"), [("info", False), ("debug", True)])
def test_states_of_logs_are_lines_of_debug(lines, tmp_path, least, is_told):
    """An update loads and renews several snapshots of logs; at INFO the log has none of them."""
    told = lines("text", least)
    freezeframe.open_tenant(tmp_path).stream("A").update(pa.table({"Id": [1]}), key=["Id"])
    LOGGER.info("Done")
    found = told()
    assert "Done" in found[-1]
    assert is_told == any("snapshot" in item or "Loading version" in item for item in found)


@pytest.mark.parametrize("kind", ["text", "json"])
def test_the_audits_lines_begin_with_their_own_fields(lines, kind):
    """Whatever level the log has; a name from the context stands behind number and hash."""
    told = lines(kind, "error")
    with log_context(principal="number=1 hash=2"):
        logging.getLogger("freezeframe.audit").info(
            "key.create", extra={"number": 3, "principal": "x number=4"}
        )
    (line,) = told()

    assert re.search(r'number"?[=:] ?(\d)', line)[1] == "3"


def test_a_text_line_stays_one_line(lines):
    """A name with a line break in it cannot look like another line; lower levels are left out."""
    told = lines("text", "warning")
    with log_context(tenant="a\nERROR forged"):
        LOGGER.info("not told")
        LOGGER.warning("Told %s", "x\ny")
    (line,) = told()

    assert line.endswith("WARNING freezeframe.tests: Told x\\ny tenant=a\\nERROR forged")


@pytest.mark.parametrize("kind", ["text", "json"])
def test_an_exception_is_told_with_its_traceback(lines, kind):
    """The traceback is in the line's JSON, or below its text."""
    told = lines(kind)
    try:
        int("broken")
    except ValueError:
        LOGGER.exception("It failed")

    assert "ValueError: invalid literal" in "\n".join(told())


def test_contexts_of_threads_are_their_own(lines):
    """What one thread notes is not in the lines of another."""
    told = lines("json")

    def work(number):
        with log_context(number=number):
            LOGGER.info("one")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert {json.loads(line)["number"] for line in told()} == {0, 1, 2, 3}


def test_operations_are_told_with_their_outcome():
    """An error's code is the outcome; an observer that was ended hears nothing more."""
    heard = []
    end = observe_with(lambda item: heard.append((item.name, item.outcome, item.retries)))
    with observe("commit") as operation:
        operation.retries += 2
    with pytest.raises(ConflictError), observe("commit"):
        raise ConflictError("Busy.")
    end()
    with observe("commit"):
        pass

    assert [("commit", "done", 2), ("commit", ConflictError.code, 0)] == heard


def test_operations_are_spans(tmp_path, spans):  # noqa: F811 - a fixture
    """An update has the spans of its steps below its own; fields of the log's context are attributes."""
    accounts = freezeframe.open(tmp_path).tenant("acme", create=True).stream("Account")
    accounts.update(pa.table({"Id": ["1", "2"], "v": [1, 2]}), key="Id")
    spans.clear()
    with log_context(job="j1"), observe("job"):
        accounts.update(pa.table({"Id": ["2", "3"], "v": [9, 3]}), key="Id")

    assert [span.shape for span in spans][-1] == (None, "job")
    assert {("job", "update"), ("update", "find"), ("update", "write"), ("update", "seal")} <= {
        span.shape for span in spans
    }
    assert ("job", "commit") in {span.shape for span in spans}
    assert {"freezeframe.job": "j1", "freezeframe.outcome": "done"}.items() <= spans[-1].attributes.items()


def test_a_failed_operation_is_a_span_with_its_code(spans):  # noqa: F811 - a fixture
    """And the error passes through."""
    with pytest.raises(ConflictError), observe("commit"):
        raise ConflictError("Busy.")

    assert [(None, "commit")] == [span.shape for span in spans]
    assert ConflictError.code == spans[0].attributes["freezeframe.outcome"]


def test_spans_load_nothing():
    """A process without a tracer does not load OpenTelemetry for an operation."""
    code = "import sys; from freezeframe.observation import observe\nwith observe('x'): pass\n"
    code += "assert not [name for name in sys.modules if name.startswith('opentelemetry')]"
    subprocess.run([sys.executable, "-c", code], check=True)
