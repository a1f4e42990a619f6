"""Running a notebook: papermill's parameters and record, but the cells run in this process.

A kernel is a second process, and the job's one commit can be made by one process only; a second
interpreter would also have to be started and to import everything again. So papermill gets an engine that
runs the cells here, in an IPython shell. Decision: ``docs/decisions/0018``.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from IPython.core.interactiveshell import ExecutionResult
from nbformat import NotebookNode
from nbformat.validator import ValidationError
from papermill.engines import Engine, NotebookExecutionManager  # type: ignore[import-untyped]
from papermill.exceptions import PapermillExecutionError  # type: ignore[import-untyped]
from papermill.execute import (  # type: ignore[import-untyped]
    prepare_notebook_metadata,
    raise_for_execution_errors,
    remove_error_markers,
)
from papermill.iorw import load_notebook_node  # type: ignore[import-untyped]
from papermill.parameterize import parameterize_notebook  # type: ignore[import-untyped]

from freezeframe.errors import UnreadableInput
from freezeframe.runs.process.notebook_shell import NotebookShell
from freezeframe.runs.process.script_failure import ScriptFailure, Stopped, exit_code_of, failure_of

_KERNEL, _LANGUAGE = "python3", "python"
_MAY_FAIL = "raises-exception"


class _ScriptEngine(Engine):  # type: ignore[misc]
    """papermill's engine for this process; it ends after the first cell that fails."""

    @classmethod
    def execute_managed_notebook(
        cls, nb_man: NotebookExecutionManager, kernel_name: str, **kwargs: Any
    ) -> None:
        _ = kernel_name
        shell: NotebookShell = kwargs["shell"]
        process = os.getpid()
        for index, cell in enumerate(nb_man.nb.cells):
            if cell.cell_type != "code" or not cell.source.strip():
                continue
            nb_man.cell_start(cell, index)
            shell.outputs.begin(cell)
            result = shell.run(cell.source)
            if os.getpid() != process:
                # The cell forked: what follows belongs to the notebook's own process.
                os._exit(0 if result.success else 1)
            cell.execution_count = result.execution_count
            end = _end_of(result)
            if isinstance(end, SystemExit) and exit_code_of(end) == 0:
                shell.outputs.drop_error()
                nb_man.cell_complete(cell, cell_index=index)
                return
            if end is not None and _MAY_FAIL not in cell.metadata.get("tags", ()):
                nb_man.cell_exception(cell, cell_index=index)
                nb_man.cell_complete(cell, cell_index=index)
                raise end
            nb_man.cell_complete(cell, cell_index=index)


def run_notebook(script: Path, executed: Path, parameters: Mapping[str, Any], folder: Path) -> None:
    """Run the cells in order and keep the executed notebook, saved after each of them.

    ``folder`` is for IPython's own files. A cell tagged ``raises-exception`` may fail; ``sys.exit(0)`` is a
    good end and the cells after it are not run.
    """
    notebook = _load(script, parameters)
    notebook = remove_error_markers(
        prepare_notebook_metadata(notebook, str(script), str(executed), report_mode=False)
    )
    try:
        _ScriptEngine.execute_notebook(
            notebook, _KERNEL, output_path=str(executed), progress_bar=False, shell=NotebookShell(folder)
        )
    except (Stopped, ScriptFailure):
        raise
    except BaseException as error:
        with suppress(PapermillExecutionError):
            # It marks the cell that failed in the executed notebook.
            raise_for_execution_errors(notebook, str(executed))
        raise failure_of(error) from error


def _load(script: Path, parameters: Mapping[str, Any]) -> NotebookNode:
    try:
        notebook: NotebookNode = load_notebook_node(str(script))
        if parameters:
            notebook = parameterize_notebook(
                notebook, dict(parameters), kernel_name=_KERNEL, language=_LANGUAGE, engine_name=None
            )
    except (ValueError, KeyError, AttributeError, TypeError, ValidationError) as error:
        # nbformat raises errors about its own code for a malformed notebook.
        is_told = isinstance(error, ValueError)
        raise UnreadableInput(
            f"{script} cannot be read as a notebook.",
            cause=str(error).strip() if is_told else "It is JSON, but has not a notebook's parts.",
            remedy="Open and save it with Jupyter, or name another file.",
            file=str(script),
        ) from error
    return notebook


def _end_of(result: ExecutionResult) -> BaseException | None:
    return result.error_before_exec or result.error_in_exec
