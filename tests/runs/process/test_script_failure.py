"""An error of Spark in a script is told as problem, cause and remedy; the JVM's stack ends the log."""

import nbformat
import pytest

from freezeframe.settings import load_settings

SESSION = "import freezeframe\nfrom pyspark.sql import functions as F\nspark = freezeframe.spark()\n"
UNKNOWN = f"{SESSION}print('begun')\nspark.range(5).select('nope').show()"
MALFORMED = (
    f"{SESSION}print('begun')\n"
    "spark.createDataFrame([('1',), ('x',)], ['t']).select(F.col('t').cast('int')).collect()"
)
ABSENT = f"{SESSION}print('begun')\nspark.read.parquet('/nowhere/a.parquet').show()"


def notebook(runs, code):
    path = runs.script("", "etl.ipynb")
    nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code)]), path)
    return path


@pytest.mark.spark
@pytest.mark.parametrize(
    ("is_notebook", "code", "cause", "remedy"),
    [
        pytest.param(
            *(False, UNKNOWN, "[UNRESOLVED_COLUMN.WITH_SUGGESTION] ", "Correct the script"),
            marks=pytest.mark.nightly,
        ),
        pytest.param(
            *(True, UNKNOWN, "[UNRESOLVED_COLUMN.WITH_SUGGESTION] ", "Correct the script"),
            marks=pytest.mark.nightly,
        ),
        (False, MALFORMED, "[CAST_INVALID_INPUT] The value 'x'", "Correct the script"),
        pytest.param(
            *(
                False,
                ABSENT,
                "[PATH_NOT_FOUND] Path does not exist: file:/nowhere",
                "Name a path that Spark sees",
            ),
            marks=pytest.mark.nightly,
        ),
    ],
    ids=["analysis", "notebook", "task", "file"],
)
def test_the_stack_is_in_the_log_once(runs, spark_settings, is_notebook, code, cause, remedy):
    """The message and the lines have what Spark said; the log has its stack as well, at the end."""
    script = notebook(runs, code) if is_notebook else code
    outcome = runs.run(script, settings=load_settings(runner_idle_seconds=20))
    error, log = outcome.error, outcome.log.read_text()

    assert (outcome.status, error["code"]) == ("failed", "SCRIPT_FAILED")
    assert error["problem"] == "Spark could not execute a step of the script; nothing of the run was kept."
    assert error["cause"].startswith(cause)
    assert error["remedy"].startswith(remedy)
    printed = "\n".join(runs.lines)
    assert "begun" in runs.lines
    assert cause in printed
    assert not [text for text in (printed, *error.values()) if "\tat org." in str(text) or "JVM" in str(text)]
    assert log.count("\nThe stack of Spark's JVM:\norg.apache.spark.") == 1
    assert log.rstrip().splitlines()[-1].startswith("\tat org.apache.spark.sql.connect.")
    if is_notebook:
        assert "\\tat org." not in outcome.notebook.read_text()


REFUSED = """import pandas as pd
from freezeframe import update_snapshot

def keep(rows):
    update_snapshot("snapshots", "Lead", "Id", rows)

keep(pd.DataFrame({"Id": [None]}))
"""


@pytest.mark.parametrize("level", ["warning", "debug"])
def test_a_refused_call_is_shown_by_the_scripts_own_lines(runs, level):
    """The package's frames are printed for those who ask for them; what went wrong is told in any case."""
    outcome = runs.run(REFUSED, settings=runs.settings.model_copy(update={"log_level": level}))
    printed = "\n".join(runs.lines)

    assert outcome.error["code"] == "NULL_KEY"
    assert 'etl.py", line 5, in keep' in printed
    assert "NullKeyError: Stream 'Lead': The key column 'Id' is null in 1 of 1 rows" in printed
    assert (level == "debug") == ("snapshots.py" in printed)


def test_an_error_inside_of_the_package_that_is_none_of_ours_keeps_its_frames(runs):
    """What nobody expected is shown whole."""
    runs.run("from freezeframe import update_snapshot\nupdate_snapshot(1, 2, 3, 4)")
    assert "snapshots.py" in "\n".join(runs.lines)
