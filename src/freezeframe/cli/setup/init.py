"""``freezeframe init``: a new project with a script, settings and two syncs."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any

import typer

from freezeframe.cli.places.options import Json
from freezeframe.cli.terminal.output import Output
from freezeframe.errors import InvalidOption, StorageUnavailable

_HERE = Path()
_SYNCS = {"sync-1": 1, "sync-2": 2}
_TENANT = "acme"


def init(
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", help="The project's folder (default: the working folder).")
    ] = _HERE,
    notebook: Annotated[
        bool, typer.Option("--notebook", help="Write the script as the notebook etl.ipynb.")
    ] = False,
    pandas: Annotated[bool, typer.Option("--pandas", help="Use pandas, not PySpark.")] = False,
    as_json: Json = False,
) -> None:
    """Start a project.

    It gets freezeframe.toml, a PySpark script, .gitignore, and two invented syncs to run it with. Nothing
    that is there is overwritten.
    """
    script = "etl.ipynb" if notebook else "etl.py"
    code = _text("etl_pandas.py" if pandas else "etl.py")
    texts = {
        "freezeframe.toml": _text("freezeframe.toml"),
        script: _notebook(code) if notebook else code,
        ".gitignore": _text("gitignore"),
    }
    _require_free(directory, [*texts, *_SYNCS])
    _write(directory, texts)
    steps = [] if directory.resolve() == Path.cwd() else [f"cd {directory}"]
    steps += [f"freezeframe run {script} --tenant {_TENANT} --input {name}" for name in _SYNCS]
    steps.append(f"freezeframe stream history --tenant {_TENANT}")
    _tell(Output(as_json=as_json), directory, [*texts, *_SYNCS], steps)


def _require_free(directory: Path, names: list[str]) -> None:
    if directory.exists() and not directory.is_dir():
        raise InvalidOption(
            f"{directory} is a file.", cause="A project is a folder.", remedy="Name a folder."
        )
    taken = [name for name in names if (directory / name).exists() or (directory / name).is_symlink()]
    if taken:
        raise InvalidOption(
            f"There is {', '.join(taken)} in {directory.resolve()} already.",
            cause="Nothing is overwritten, so nothing was written.",
            remedy="Name another folder: freezeframe init DIR.",
        )


def _write(directory: Path, texts: Mapping[str, str]) -> None:
    """Write all of the project, or leave the folder as it was: half of one would be in the next one's way.

    Raises:
        StorageUnavailable: it could not be written.
    """
    is_new = not directory.exists()
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            with (directory / name).open("x", encoding="utf-8") as file:
                file.write(text)
        for name, sync in _SYNCS.items():
            _write_sync(directory / name, sync)
    except (OSError, StorageUnavailable) as error:
        for name in texts:
            (directory / name).unlink(missing_ok=True)
        for name in _SYNCS:
            shutil.rmtree(directory / name, ignore_errors=True)
        if is_new and directory.exists():
            directory.rmdir()
        if isinstance(error, OSError):
            from freezeframe.storage.local import failure

            raise failure("make", str(directory), error) from error
        raise


def _write_sync(folder: Path, sync: int) -> None:
    # A tap is a program of its own; this one invents what it brings.
    command = [sys.executable, "-m", "freezeframe.testing.tap", str(folder), f"--sync={sync}"]
    done = subprocess.run(  # noqa: S603 - our own tap
        command, check=False, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    if done.returncode:
        said = done.stderr.strip().splitlines()
        raise StorageUnavailable(
            f"The sync {folder} could not be written.",
            cause=said[-1] if said else f"The program that invents it ended with {done.returncode}.",
            remedy="Check the disk and its permissions, then run the same call again.",
        )


def _tell(output: Output, directory: Path, made: list[str], steps: list[str]) -> None:
    if output.as_json:
        output.record({"directory": str(directory.resolve()), "files": made, "next": steps})
        return
    output.record({"project": str(directory.resolve()), "files": made})
    output.line("\nNext:\n" + "\n".join(f"  {step}" for step in steps))


def _text(name: str) -> str:
    return files("freezeframe.cli.project").joinpath(name).read_text(encoding="utf-8")


def _notebook(script: str) -> str:
    """The script as a notebook: its docstring as text, and a cell for each of its parts."""
    _, words, code = script.split('"""', 2)
    parts = [part.strip() for part in code.replace("\n# ", "\0# ").split("\0")]
    cells: list[dict[str, Any]] = [
        {"cell_type": "markdown", "id": "0", "metadata": {}, "source": words.strip()}
    ]
    cells += [
        {
            "cell_type": "code",
            "id": str(number),
            "metadata": {},
            "execution_count": None,
            "outputs": [],
            "source": part,
        }
        for number, part in enumerate(parts, start=1)
    ]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    book = {"nbformat": 4, "nbformat_minor": 5, "metadata": {"kernelspec": kernel}, "cells": cells}
    return json.dumps(book, indent=1) + "\n"
