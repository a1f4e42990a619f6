"""Variables that begin as settings do and are none, such as mistyped ones (pure)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from freezeframe.configuration.gone import SETTINGS
from freezeframe.configuration.layers import nearest

PREFIX = "FREEZEFRAME_"
# What the command, its own processes, the build and the tests listen to beside the settings.
_OTHERS = frozenset(
    {
        *("CONFIG", "DEBUG", "OWN_REMOTE", "SERVED_ROOT", "SKIP_CONSOLE"),
        *("CONFORMANCE", "SAMPLES", "SCREENSHOTS", "MACHINE_STEPS", "TEST_DATABASE", "TEST_PLACE"),
    }
)


@dataclass(frozen=True, slots=True)
class UnknownVariable:
    """An unknown variable and the most similar known one; empty where none is similar."""

    name: str
    meant: str

    @property
    def remedy(self) -> str:
        """The remedy for a message."""
        went = SETTINGS.get(self.name.upper().removeprefix(PREFIX).lower())
        if went:
            return went
        return f"Did you mean {self.meant}?" if self.meant else "freezeframe config show lists all settings."


def unknown_variables(environment: Mapping[str, str], settings: Iterable[str]) -> tuple[UnknownVariable, ...]:
    """Return the variables of an environment that are meant for us and are not settings, by name."""
    known = [name.upper() for name in settings]
    # In whatever letters, as the settings themselves are read.
    short_names = {name: name.upper().removeprefix(PREFIX) for name in sorted(environment)}
    return tuple(
        UnknownVariable(name, next((f"{PREFIX}{item}" for item in nearest(rest, known)), ""))
        for name, rest in short_names.items()
        if name.upper().startswith(PREFIX) and rest not in _OTHERS and rest not in known
    )
