"""The order of the sources of settings: flag, environment, the project's file, the user's file, default.

pydantic-settings reads the environment and checks the values. Its own file sources cannot name the line of a
wrong value, refuse a file of another user, or resolve a path from the file's folder, so files are read here.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar, get_args

from pydantic import ValidationError
from pydantic_settings import BaseSettings, EnvSettingsSource

from freezeframe.configuration import names
from freezeframe.configuration.files import SettingsFile, project_file, read_settings_file, user_file
from freezeframe.configuration.masking import masked_value
from freezeframe.errors import InvalidOption

Kind = Literal["flag", "environment", "project", "user", "default"]
Model = TypeVar("Model", bound=BaseSettings)


@dataclass(frozen=True, slots=True)
class Origin:
    """Source of a setting's value; ``place`` is a flag, a variable, ``file:line``, or empty."""

    kind: Kind
    place: str = ""

    def __str__(self) -> str:
        return self.place or self.kind


@dataclass(frozen=True, slots=True)
class Resolved(Generic[Model]):
    """Settings with the source of each."""

    settings: Model
    origins: Mapping[str, Origin]


@dataclass(frozen=True, slots=True)
class _Layer:
    kind: Kind
    values: Mapping[str, Any]
    places: Mapping[str, str]


def resolve(model: type[Model], flags: Mapping[str, Any], place: str = "") -> Resolved[Model]:
    """Return the settings as all sources say; a flag that is None was not given.

    ``place`` is where the values of ``flags`` come from, if they are no flags.
    """
    project = project_file()
    layers = [
        *([_file_layer(model, "user", user_file())] if user_file().is_file() else []),
        *([] if project is None else [_file_layer(model, "project", project)]),
        _environment_layer(model),
        _flag_layer(model, flags, place),
    ]
    values: dict[str, Any] = {}
    origins = {name: Origin("default") for name in model.model_fields}
    for layer in layers:
        values.update(layer.values)
        origins.update({name: Origin(layer.kind, layer.places[name]) for name in layer.values})
    try:
        return Resolved(model(**values), origins)
    except ValidationError as error:
        raise _to_error(model, error, origins) from error


def require_setting(model: type[BaseSettings], name: str, place: str = "") -> None:
    """Raise ``InvalidOption`` with the nearest names unless the name is a setting."""
    if name in model.model_fields:
        return
    near = names.nearest(name, list(model.model_fields))
    raise InvalidOption(
        f"{name!r} is not a setting." if not place else f"{place}: {name!r} is not a setting.",
        remedy=f"Did you mean {' or '.join(near)}?"
        if near
        else "freezeframe config show lists all settings.",
        setting=name,
        place=place,
    )


def is_place(model: type[BaseSettings], name: str) -> bool:
    """Return whether a setting is a file or folder, or may be one where it has no ``://``."""
    field = model.model_fields[name]
    extra = field.json_schema_extra
    is_marked = isinstance(extra, dict) and extra.get("place") is True
    return is_marked or field.annotation is Path or Path in get_args(field.annotation)


def _file_layer(model: type[BaseSettings], kind: Kind, path: Path) -> _Layer:
    file = read_settings_file(path)
    for name in file.values:
        require_setting(model, name, file.place_of(name))
    values = {name: _anchor(model, name, value, file) for name, value in file.values.items()}
    return _Layer(kind, values, {name: file.place_of(name) for name in values})


def _anchor(model: type[BaseSettings], name: str, value: Any, file: SettingsFile) -> Any:
    """Return the value with a relative path resolved from the folder of its settings file."""
    if not isinstance(value, str) or not value or "://" in value or not is_place(model, name):
        return value
    return str(file.path.parent / Path(value).expanduser())


def _environment_layer(model: type[BaseSettings]) -> _Layer:
    prefix = model.model_config.get("env_prefix", "")
    values = EnvSettingsSource(model)()
    return _Layer("environment", values, {name: f"{prefix}{name.upper()}" for name in values})


def _flag_layer(model: type[BaseSettings], flags: Mapping[str, Any], place: str) -> _Layer:
    values = {name: value for name, value in flags.items() if value is not None}
    for name in values:
        require_setting(model, name)
    return _Layer("flag", values, {name: place or f"--{name.replace('_', '-')}" for name in values})


def _to_error(
    model: type[BaseSettings], error: ValidationError, origins: Mapping[str, Origin]
) -> InvalidOption:
    first = error.errors(include_url=False, include_context=False)[0]
    name = str(first["loc"][0])
    place = str(origins[name])
    value = masked_value(model, name, first["input"])
    description = (model.model_fields[name].description or "").strip()
    return InvalidOption(
        f"{place}: the setting {name!r} cannot be {value!r}.",
        cause=f"{first['msg']}.",
        remedy=f"Correct it there. {description}",
        setting=name,
        place=place,
    )
