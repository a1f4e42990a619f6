"""A notebook is run in the job's own process: parameters, outputs, magics, and one commit at its end."""

import json

import nbformat
import pytest

from freezeframe.settings import load_settings

pytestmark = pytest.mark.long


@pytest.fixture
def notebook(runs):
    """Makes a notebook of cells, each the source of a code cell or a (source, tags) pair."""

    def make(*cells, kernel="python3"):
        made = nbformat.v4.new_notebook()
        made.metadata.kernelspec = {"name": kernel, "display_name": kernel, "language": "python"}
        for cell in cells:
            source, tags = cell if isinstance(cell, tuple) else (cell, [])
            made.cells.append(nbformat.v4.new_code_cell(source, metadata={"tags": tags}))
        path = runs.script("", name="etl.ipynb")
        nbformat.write(made, path)
        return path

    return make


def outputs(done):
    """The outputs of each cell of the executed notebook."""
    return [cell.outputs for cell in nbformat.read(done.notebook, 4).cells if cell.cell_type == "code"]


def test_a_notebook_is_run_with_parameters(runs, notebook):
    """Cells are run in order, with what Jupyter offers; what they show is in the executed notebook."""
    script = notebook(
        ("limit = 1\nname = 'x'", ["parameters"]),
        "import os\nprint('limit', limit, os.getcwd() == os.environ['ROOT_DIR'], __name__)",
        "%%capture kept\nprint('unseen')",
        "import asyncio\nawait asyncio.sleep(0)\ndisplay({'a': 1})\nname",
        "!echo from a shell",
        ("1 / 0", ["raises-exception"]),
        "open('snapshots/a.txt', 'w').write(f'{limit} {name}')\nNone",
        kernel="no-such-kernel",
    )
    done = runs.run(script, parameters={"limit": 5, "name": "ü"})
    assert done.status == "succeeded", done.error
    assert runs.tenant.files.read_text("a.txt") == "5 ü"
    assert "limit 5 True __main__" in runs.lines
    shown = outputs(done)
    assert shown[2][0].text == "limit 5 True __main__\n"
    assert shown[3] == []
    assert [item.output_type for item in shown[4]] == ["display_data", "execute_result"]
    assert shown[4][1].data["text/plain"] == "'ü'"
    assert "from a shell" in shown[5][0].text
    assert shown[6][0].ename == "ZeroDivisionError"


def test_a_cell_that_fails_keeps_the_notebook_and_nothing_else(runs, notebook):
    """The executed notebook shows where; cells after it are not run and nothing is committed."""
    done = runs.run(
        notebook("open('snapshots/a', 'w').write('1')", "raise ValueError('schlécht')", "print('on')")
    )
    assert (
        done.status,
        done.error["code"],
        done.error["cause"],
    ) == ("failed", "SCRIPT_FAILED", "ValueError: schlécht")
    assert "on" not in runs.lines
    assert [item.ename for cell in outputs(done) for item in cell if item.output_type == "error"] == [
        "ValueError"
    ]
    assert runs.tenant.version == -1


def test_an_exit_ends_a_notebook(runs, notebook):
    """Code 0 is a good end and the cells after it are not run; any other code is a failure."""
    good = runs.run(notebook("import sys\nsys.exit(0)", "print('on')"))
    assert (good.status, "on" in runs.lines) == ("succeeded", False)
    bad = runs.run(notebook("import sys\nsys.exit(4)", "print('on')"))
    assert (bad.status, bad.exit_code, "on" in runs.lines) == ("failed", 4, False)


def test_a_cell_that_forks_is_run_once(runs, notebook):
    """A fork ends with its cell; what comes after is the notebook's own process's."""
    done = runs.run(notebook("import os\nif os.fork():\n    os.wait()\nprint('cell')", "print('after')"))
    assert done.status == "succeeded"
    assert (runs.lines.count("cell"), runs.lines.count("after")) == (2, 1)


def test_a_cell_that_prints_much_is_cut_in_the_notebook_alone(runs, notebook):
    """The notebook keeps a million characters of a cell's text; the log has all."""
    done = runs.run(notebook("for _ in range(300):\n    print('x' * 9_999)"))
    assert done.notebook.stat().st_size < 1_200_000
    assert done.log.stat().st_size == 3_000_000


def test_what_is_no_notebook_is_refused(runs):
    """A damaged file is named; nothing was run."""
    for text in ("{", "{}", "[]", json.dumps({"cells": 1})):
        done = runs.run(runs.script(text, name="etl.ipynb"))
        assert (done.status, done.error["code"]) == ("failed", "UNREADABLE_INPUT")
        assert "object" not in done.error["cause"]


@pytest.mark.spark
def test_the_cells_of_a_notebook_have_one_spark_session(runs, notebook, spark_settings):
    """What one cell registers, the library's frames of the next one are joined with."""
    script = notebook(
        "from pyspark.sql import SparkSession\nspark = SparkSession.builder.getOrCreate()",
        "from freezeframe import get_snapshot, update_snapshot\n"
        "sent = spark.createDataFrame([('1', 'a')], 'Id string, v string')\n"
        "after = update_snapshot('snapshots', 'Lead', 'Id', sent)\n"
        "sent.createOrReplaceTempView('sent')",
        "kept = get_snapshot('snapshots', 'Lead', as_='spark')\n"
        "kept.createOrReplaceTempView('kept')\n"
        "print(after.join(sent, 'Id').count(), spark.sql('select * from kept join sent using (Id)').count())",
    )
    done = runs.run(script, settings=load_settings(runner_idle_seconds=20))
    assert done.status == "succeeded", done.error
    assert "1 1" in runs.lines
