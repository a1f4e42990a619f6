"""``freezeframe config``: show settings and their sources, and change one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from freezeframe.cli.places.place import Json
from freezeframe.cli.terminal.output import Output
from freezeframe.errors import InvalidOption

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


def _to_stored(name: str, given: str, checked: Any, folder: Path) -> str | int | float | bool:
    """A value as it is written to a file; a path is relative to the file's folder."""
    from freezeframe.configuration.layers import is_place
    from freezeframe.settings import Settings

    if not is_place(Settings, name) or "://" in given:
        return given if isinstance(checked, str | Path) else checked
    if not given:
        raise InvalidOption(f"The setting {name!r} cannot be empty.", remedy="Name a file or folder.")
    absolute = Path.cwd() / Path(given).expanduser()
    return str(absolute.relative_to(folder) if absolute.is_relative_to(folder) else absolute)


def _text(value: Any) -> str:
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
