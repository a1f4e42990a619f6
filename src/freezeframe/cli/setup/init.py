"""``freezeframe init``: a new project with a script, settings and two syncs."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Annotated, Any

import typer

from freezeframe.cli.places.place import Json
from freezeframe.cli.terminal.output import Output
from freezeframe.errors import InvalidOption

_HERE = Path()
_SYNCS = ("sync-1", "sync-2")
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

    It gets freezeframe.toml, a PySpark script, .gitignore, and two small syncs to run it with. Nothing
    that is there is overwritten.
    """
    script = "etl.ipynb" if notebook else "etl.py"
    examples = _examples()
    code = _text(examples / ("pandas" if pandas else "pyspark") / "etl.py")
    texts = {
        "freezeframe.toml": _text(examples / "freezeframe.toml"),
        script: _notebook(code) if notebook else code,
        ".gitignore": _text(examples / ".gitignore"),
    }
    made = [*texts, *_SYNCS]
    _require_free(directory, made)
    syncs = [file for name in _SYNCS for file in sorted((examples / name).glob("*.csv"))]
    _write(directory, texts | {f"{file.parent.name}/{file.name}": _text(file) for file in syncs})
    steps = [] if directory.resolve() == Path.cwd() else [f"cd {directory}"]
    steps += [f"freezeframe run {script} --tenant {_TENANT} --input {name}" for name in _SYNCS]
    steps.append(f"freezeframe stream history --tenant {_TENANT}")
    _tell(Output(as_json=as_json), directory, made, steps)


def _examples() -> Path:
    """Return the folder of the examples: in the package, or the checkout's ``examples``."""
    installed = Path(str(resources.files("freezeframe"))) / "examples"
    return installed if installed.is_dir() else Path(__file__).parents[4] / "examples"


def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8")


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
    """Write all of the project, or leave the folder as it was: half of a project would be in the way."""
    made = [folder for folder in (*reversed(directory.parents), directory) if not folder.exists()]
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for name in _SYNCS:
            (directory / name).mkdir()
            made.append(directory / name)
        for name, text in texts.items():
            with (directory / name).open("x", encoding="utf-8") as file:
                made.append(directory / name)
                file.write(text)
    except OSError as error:
        from freezeframe.storage.local import failure

        for path in reversed(made):
            with contextlib.suppress(OSError):
                path.rmdir() if path.is_dir() else path.unlink()
        raise failure("make", str(directory), error) from error


def _tell(output: Output, directory: Path, made: list[str], steps: list[str]) -> None:
    if output.as_json:
        output.record({"directory": str(directory.resolve()), "files": made, "next": steps})
        return
    output.record({"project": str(directory.resolve()), "files": made})
    output.line("\nNext:\n" + "\n".join(f"  {step}" for step in steps))


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
