"""The IPython shell of an in-process notebook: cells, magics, displays, top-level ``await``."""

from __future__ import annotations

import sys
import types
from pathlib import Path
from typing import Any

from IPython.core.displayhook import DisplayHook
from IPython.core.displaypub import DisplayPublisher
from IPython.core.interactiveshell import ExecutionResult, InteractiveShell
from traitlets import Type
from traitlets.config import Config

from freezeframe.engine.java import without_jvm_stack
from freezeframe.runs.process.cell_output import CellOutput, Echo


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
