"""`freezeframe init` and `config`: a new project, and the settings."""

import contextlib
import json
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Annotated, Any

import typer

from freezeframe.cli.options import Json
from freezeframe.cli.output import Output
from freezeframe.errors import InvalidOption

_WORKING_FOLDER = Path()
_SYNCS = ("sync-1", "sync-2")
_TENANT = "acme"


def init(
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", help="The project's folder (default: the working folder).")
    ] = _WORKING_FOLDER,
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
    code = _read(examples / ("pandas" if pandas else "pyspark") / "etl.py")
    texts = {
        "freezeframe.toml": _read(examples / "freezeframe.toml"),
        script: _notebook(code) if notebook else code,
        ".gitignore": _read(examples / ".gitignore"),
    }
    made = [*texts, *_SYNCS]
    _require_free(directory, made)
    syncs = [file for name in _SYNCS for file in sorted((examples / name).glob("*.csv"))]
    _write(directory, texts | {f"{file.parent.name}/{file.name}": _read(file) for file in syncs})
    steps = [] if directory.resolve() == Path.cwd() else [f"cd {directory}"]
    steps += [f"freezeframe run {script} --tenant {_TENANT} --input {name}" for name in _SYNCS]
    steps.append(f"freezeframe stream history --tenant {_TENANT}")
    _show_steps(Output(as_json=as_json), directory, made, steps)


def _examples() -> Path:
    """Return the folder of the examples: in the package, or the checkout's ``examples``."""
    installed = Path(str(resources.files("freezeframe"))) / "examples"
    return installed if installed.is_dir() else Path(__file__).parents[4] / "examples"


def _read(file: Path) -> str:
    return file.read_text(encoding="utf-8")


def _require_free(directory: Path, names: list[str]) -> None:
    if directory.exists() and not directory.is_dir():
        raise InvalidOption(
            f"{directory} is a file.", cause="A project is a folder.", remedy="Name a folder."
        )
    present = [name for name in names if (directory / name).exists() or (directory / name).is_symlink()]
    if present:
        raise InvalidOption(
            f"There is {', '.join(present)} in {directory.resolve()} already.",
            cause="Existing files are not overwritten; nothing was written.",
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


def _show_steps(output: Output, directory: Path, made: list[str], steps: list[str]) -> None:
    if output.as_json:
        output.record({"directory": str(directory.resolve()), "files": made, "next": steps})
        return
    output.record({"project": str(directory.resolve()), "files": made})
    output.line("\nNext:\n" + "\n".join(f"  {step}" for step in steps))


def _notebook(script: str) -> str:
    """Return the script as a notebook: its docstring as text, and a cell for each of its parts."""
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


app = typer.Typer(no_args_is_help=True)


def _names(incomplete: str) -> list[str]:
    from freezeframe.settings import Settings

    return [name for name in Settings.model_fields if name.startswith(incomplete)]


SettingName = Annotated[
    str, typer.Argument(metavar="NAME", help="A setting, for example spark.", autocompletion=_names)
]


@app.command()
def show(
    origin: Annotated[bool, typer.Option("--origin", help="Show where each value comes from.")] = False,
    as_json: Json = False,
) -> None:
    """List all settings.

    A flag wins over the environment, that over freezeframe.toml, that over the user's file, that over the
    default.
    """
    from freezeframe.configuration.masking import masked_value
    from freezeframe.settings import Settings, resolve_settings

    resolved = resolve_settings()
    values = {
        name: masked_value(Settings, name, getattr(resolved.settings, name)) for name in Settings.model_fields
    }
    output = Output(as_json=as_json)
    if not origin:
        output.record(values)
    elif as_json:
        origins = resolved.origins
        output.record(
            {
                name: {"value": value, "origin": origins[name].kind, "place": origins[name].place}
                for name, value in values.items()
            }
        )
    else:
        rows = [
            {"setting": name, "value": _text(value), "from": str(resolved.origins[name])}
            for name, value in values.items()
        ]
        output.table("Settings", rows)


@app.command()
def get(name: SettingName, as_json: Json = False) -> None:
    """Print one setting."""
    from freezeframe.configuration.layers import require_setting
    from freezeframe.configuration.masking import masked_value
    from freezeframe.settings import Settings, resolve_settings

    require_setting(Settings, name)
    resolved = resolve_settings()
    value = masked_value(Settings, name, getattr(resolved.settings, name))
    output = Output(as_json=as_json)
    if as_json:
        origin = resolved.origins[name]
        output.record({"setting": name, "value": value, "origin": origin.kind, "place": origin.place})
    else:
        output.line(_text(value))


@app.command("set")
def set_value(
    name: SettingName,
    value: Annotated[str, typer.Argument(help="Its new value.")],
    user: Annotated[bool, typer.Option("--user", help="In the user's file, for all projects.")] = False,
    as_json: Json = False,
) -> None:
    """Change one setting in a file.

    That is the project's freezeframe.toml, made here if there is none. Comments in it stay.
    """
    from freezeframe.configuration.files import FILE_NAME, project_file, user_file, write_setting
    from freezeframe.configuration.layers import resolve
    from freezeframe.configuration.masking import masked_value
    from freezeframe.settings import Settings, resolve_settings

    path = user_file() if user else project_file() or Path.cwd() / FILE_NAME
    checked = getattr(resolve(Settings, {name: value}, "freezeframe config set").settings, name)
    write_setting(path, name, _to_stored(name, value, checked, path.parent))
    resolved = resolve_settings()
    output = Output(as_json=as_json)
    output.record({"setting": name, "value": masked_value(Settings, name, checked), "file": str(path)})
    origin = resolved.origins[name]
    if not origin.place.startswith(str(path)):
        output.line(f"It has no effect here yet: {origin} comes first.")


@app.command()
def path(as_json: Json = False) -> None:
    """Show which files settings are read from."""
    from freezeframe.configuration.files import project_file, user_file

    project, user = project_file(), user_file()
    Output(as_json=as_json).record(
        {"project": None if project is None else str(project), "user": str(user) if user.is_file() else None}
        if as_json
        else {
            "project": "none; freezeframe init makes one" if project is None else str(project),
            "user": f"{user}{'' if user.is_file() else ' (not there)'}",
        }
    )


def _to_stored(name: str, text: str, checked: Any, folder: Path) -> str | int | float | bool:
    """Return a value as it is written to a file; a path is relative to the file's folder."""
    from freezeframe.configuration.layers import is_place
    from freezeframe.settings import Settings

    if not is_place(Settings, name) or "://" in text:
        return text if isinstance(checked, str | Path) else checked
    if not text:
        raise InvalidOption(f"The setting {name!r} cannot be empty.", remedy="Name a file or folder.")
    absolute = Path.cwd() / Path(text).expanduser()
    return str(absolute.relative_to(folder) if absolute.is_relative_to(folder) else absolute)


def _text(value: Any) -> str:
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
