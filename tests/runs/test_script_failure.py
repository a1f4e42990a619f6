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
        (False, UNKNOWN, "[UNRESOLVED_COLUMN.WITH_SUGGESTION] ", "Correct the script"),
        (True, UNKNOWN, "[UNRESOLVED_COLUMN.WITH_SUGGESTION] ", "Correct the script"),
        (False, MALFORMED, "[CAST_INVALID_INPUT] The value 'x'", "Correct the script"),
        (False, ABSENT, "[PATH_NOT_FOUND] Path does not exist: file:/nowhere", "Name a path that Spark sees"),
    ],
    ids=["analysis", "notebook", "task", "file"],
)
def test_the_stack_is_in_the_log_once(runs, spark_settings, is_notebook, code, cause, remedy):
    """The message and the lines have what Spark said; the log has its stack as well, at the end."""
    script = notebook(runs, code) if is_notebook else code
    outcome = runs.run(script, settings=load_settings(runner_idle_seconds=20))
    error, log = outcome.error, outcome.log.read_text()

    assert ("failed", "SCRIPT_FAILED") == (outcome.status, error["code"])
    assert "Spark could not do what the script asked for; nothing of the run was kept." == error["problem"]
    assert error["cause"].startswith(cause)
    assert error["remedy"].startswith(remedy)
    printed = "\n".join(runs.lines)
    assert "begun" in runs.lines
    assert cause in printed
    assert not [text for text in (printed, *error.values()) if "\tat org." in str(text) or "JVM" in str(text)]
    assert 1 == log.count("\nThe stack of Spark's JVM:\norg.apache.spark.")
    assert log.rstrip().splitlines()[-1].startswith("\tat org.apache.spark.sql.connect.")
    if is_notebook:
        assert "\\tat org." not in outcome.notebook.read_text()
