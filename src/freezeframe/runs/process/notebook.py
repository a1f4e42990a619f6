"""Running a notebook: papermill's parameters and record, but the cells run in this process.

A kernel is a second process, but one process makes the job's commit; a second interpreter would also have to
start and import everything again. So papermill gets an engine that
runs the cells here, in an IPython shell. Decision: ``docs/decisions/0018``.
"""

from __future__ import annotations

import io
import os
import sys
import types
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO

from IPython.core.displayhook import DisplayHook
from IPython.core.displaypub import DisplayPublisher
from IPython.core.interactiveshell import ExecutionResult, InteractiveShell
from nbformat import NotebookNode
from nbformat.v4 import new_output
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
from traitlets import Type
from traitlets.config import Config

from freezeframe.engine.java import without_jvm_stack
from freezeframe.errors import UnreadableInput
from freezeframe.runs.process.script import ScriptFailure, Stopped, exit_code_of, failure_of

CELL_TEXT_MAX = 1_000_000


class CellOutput:
    """The outputs of the cell that runs now; ``begin`` goes on to the next one."""

    def __init__(self) -> None:
        self._outputs: list[NotebookNode] = []
        self._text_left = 0

    def begin(self, cell: NotebookNode) -> None:
        """Begin a cell: outputs from now on are its own."""
        cell.outputs = self._outputs = []
        self._text_left = CELL_TEXT_MAX

    def stream(self, name: str, text: str) -> None:
        """Text that was printed; beyond a million characters a cell it is in the log alone."""
        if self._text_left <= 0 or not text:
            return
        kept = text[: self._text_left]
        self._text_left -= len(text)
        if self._text_left <= 0:
            kept += "\n[the rest is in the log alone]\n"
        last = self._outputs[-1] if self._outputs else None
        if last is not None and last.output_type == "stream" and last.name == name:
            last.text += kept
        else:
            self._add("stream", name=name, text=kept)

    def display(self, data: dict[str, Any], metadata: dict[str, Any] | None = None) -> None:
        """Something that was displayed, by MIME type."""
        self._add("display_data", data=data, metadata=metadata or {})

    def result(self, number: int, data: dict[str, Any], metadata: dict[str, Any] | None = None) -> None:
        """The value of the cell's last expression, by MIME type."""
        self._add("execute_result", data=data, metadata=metadata or {}, execution_count=number)

    def error(self, name: str, value: str, lines: list[str]) -> None:
        """The exception that ended the cell."""
        self._add("error", ename=name, evalue=value, traceback=lines)

    def _add(self, kind: str, **fields: Any) -> None:
        self._outputs.append(new_output(kind, **fields))  # type: ignore[no-untyped-call]

    def drop_error(self) -> None:
        """Remove the exception that was shown last: it was a successful exit."""
        if self._outputs and self._outputs[-1].output_type == "error":
            self._outputs.pop()


class Echo(io.TextIOBase):
    """A text stream that goes on to the real one and to the cell's outputs."""

    def __init__(self, name: str, stream: TextIO, keep: Callable[[str, str], None]) -> None:
        super().__init__()
        self._name = name
        self._stream = stream
        self._keep = keep

    @property
    def buffer(self) -> Any:
        """The binary buffer of the real stream, whose bytes are in the log alone."""
        return self._stream.buffer

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """As of the real stream."""
        return self._stream.encoding

    def fileno(self) -> int:
        """As of the real stream."""
        return self._stream.fileno()

    def writable(self) -> bool:
        """True."""
        return True

    def write(self, text: str) -> int:
        """Print it and keep it."""
        self._stream.write(text)
        self._keep(self._name, text)
        return len(text)

    def flush(self) -> None:
        """Flush the real stream."""
        self._stream.flush()


class _Publisher(DisplayPublisher):
    """Displays go to the outputs of the cell."""

    shell: Any

    def publish(self, data: Any, metadata: Any = None, source: Any = None, **_: Any) -> None:  # noqa: ARG002
        self.shell.outputs.display(data, metadata)

    def clear_output(self, wait: bool = False) -> None:  # noqa: FBT001, FBT002 - IPython's signature
        """Nothing: printed output stays, since the notebook is a record."""


class _ResultHook(DisplayHook):
    """The value of a cell goes to its outputs."""

    shell: Any

    def write_output_prompt(self) -> None:
        """Nothing: there is no terminal."""

    def write_format_data(self, format_dict: dict[str, Any], md_dict: dict[str, Any] | None = None) -> None:
        self.shell.outputs.result(self.prompt_count, format_dict, md_dict)

    def finish_displayhook(self) -> None:
        """Nothing to finish."""
        self._is_active = False


class NotebookShell(InteractiveShell):
    """IPython without a terminal, a history or a folder of its own; what it shows is kept in ``outputs``."""

    display_pub_class = Type(_Publisher)
    displayhook_class = Type(_ResultHook)

    def __init__(self, folder: Path) -> None:
        self.outputs = CellOutput()
        config = Config()
        config.HistoryManager.enabled = False
        config.InteractiveShell.colors = "nocolor"
        main = types.ModuleType("__main__")
        sys.modules["__main__"] = main
        super().__init__(  # type: ignore[no-untyped-call]
            ipython_dir=str(folder), config=config, user_module=main
        )
        # Libraries get the process's only shell through its class.
        for kind in (InteractiveShell, NotebookShell):
            setattr(kind, "_instance", self)  # noqa: B010 - what SingletonConfigurable.instance() sets

    def init_sys_modules(self) -> None:
        """Nothing: the notebook's module is the main one already."""

    def run(self, source: str) -> ExecutionResult:
        """Run a cell; what it prints goes to the process's own streams and to the outputs."""
        before = sys.stdout, sys.stderr
        sys.stdout = Echo("stdout", before[0], self.outputs.stream)
        sys.stderr = Echo("stderr", before[1], self.outputs.stream)
        try:
            result: ExecutionResult = self.run_cell(  # type: ignore[no-untyped-call]
                source, store_history=True
            )
        finally:
            sys.stdout, sys.stderr = before
        return result

    def _showtraceback(self, etype: type[BaseException], evalue: BaseException, stb: Any) -> None:
        lines = without_jvm_stack("\n".join(stb) if isinstance(stb, list) else str(stb)).splitlines()
        self.outputs.error(etype.__name__, without_jvm_stack(str(evalue)), lines)
        (sys.__stderr__ or sys.stderr).write("\n".join(lines) + "\n")


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
            end = result.error_before_exec or result.error_in_exec
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
            cause=str(error).strip() if is_told else "It is JSON, but not a notebook.",
            remedy="Open and save it with Jupyter, or name another file.",
            file=str(script),
        ) from error
    return notebook
