"""Names of settings, variables and commands: similar ones, and those of other tools with ours."""

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

_JOBS = "Use freezeframe job list --tenant TENANT; job show ID and job logs ID for one."
_SCRIPTS = "A script is a file that is run from where it is: freezeframe run SCRIPT or job submit SCRIPT."
_SNAPSHOTS = "Use freezeframe export FOLDER --tenant TENANT, or stream export NAME --to FOLDER for one."
COMMANDS_ELSEWHERE = {
    "etl local-run": "Use freezeframe run SCRIPT --tenant TENANT --input FOLDER; --dry-run commits nothing.",
    "etl setup-local-run": "Use freezeframe init FOLDER: a script, settings, and two syncs to try.",
    "etl": _SCRIPTS,
    "jobs": _JOBS,
    "snapshots deploy": "Use freezeframe migrate FOLDER --tenant TENANT, or import FILE --key KEY.",
    "snapshots download": _SNAPSHOTS,
    "snapshots": "Use freezeframe stream list --tenant TENANT, and file list for its files.",
    "snapshot": "Use freezeframe stream list --tenant TENANT, and file list for its files.",
    "tenants": "Use freezeframe tenant list.",
    "streams": "Use freezeframe stream list --tenant TENANT.",
    "files": "Use freezeframe file list --tenant TENANT.",
    "schedules": "Use freezeframe schedule list --tenant TENANT.",
    "keys": "Use freezeframe key list.",
    "env": "Variables of a script are given with freezeframe run --var NAME=VALUE, or by script_variables.",
    "mapping": "A mapping is a file of the tenant: freezeframe file write mapping.json FILE --tenant TENANT.",
    "flow": "A flow is a script and a schedule: freezeframe schedule create NAME SCRIPT --tenant TENANT.",
    "flows": "A flow is a script and a schedule: freezeframe schedule list.",
    "taps": "freezeframe runs no taps: give run --input its files, or pipe it to target-freezeframe.",
    "targets": "freezeframe runs no targets: pipe the output of gs.to_singer to the target.",
    "restore": "Use freezeframe tenant restore VERSION, or stream restore NAME VERSION.",
    "vacuum": "Use freezeframe gc --tenant TENANT.",
    "optimize": "Updates keep files in order; freezeframe gc --tenant TENANT deletes old ones.",
    "history": "Use freezeframe tenant history, stream history NAME or file history PATH.",
    "verify": "Use freezeframe tenant verify, or delta verify FOLDER for a table.",
    "erase": "Use freezeframe tenant erase NAME --key KEY --tenant TENANT.",
}
"""By the words of a command of hotglue's, of Delta's, or of a group of ours."""


def command_remedy(words: Sequence[str]) -> str:
    """Return what to use for another tool's command; empty if there is none."""
    plain = [word for word in words if not word.startswith("-")]
    known = (" ".join(plain[:count]) for count in (2, 1))
    return next((COMMANDS_ELSEWHERE[name] for name in known if name in COMMANDS_ELSEWHERE), "")


PREFIX = "FREEZEFRAME_"
# Variables that the command, its own processes, the build and the tests read beside the settings.
_OTHERS = frozenset(
    {
        *("CONFIG", "DEBUG", "JOB_DATABASES", "OWN_REMOTE", "SERVED_ROOT", "SKIP_CONSOLE", "SPARK_DATABASE"),
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


def nearest(name: str, known: Sequence[str]) -> list[str]:
    """Return up to three known names that a mistyped one may mean, the likeliest first."""
    found = difflib.get_close_matches(name.casefold(), [item.casefold() for item in known], n=3, cutoff=0.6)
    by_folded = {item.casefold(): item for item in known}
    return [by_folded[item] for item in found]
