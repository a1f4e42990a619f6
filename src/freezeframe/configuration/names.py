"""Names of settings, variables and commands: similar ones, and removed ones with what replaces them."""

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

_REQUESTS = "Use service_requests_per_second, for each key and process; a proxy limits addresses."
_BYTES = "A proxy limits how quickly bodies and answers move; service_tenant_stored_bytes_max what is kept."
REMOVED_SETTINGS = {
    "service_requests_per_minute": _REQUESTS,
    "service_tenant_requests_per_minute": _REQUESTS,
    "service_tenant_upload_bytes_per_minute": _BYTES,
    "service_tenant_download_bytes_per_minute": _BYTES,
    "audit_sink": "Ship the log: each entry of the audit is a line of the logger freezeframe.audit.",
    "maven_repository": "Name the mirror to Spark (spark.jars.repositories in spark-defaults.conf), "
    "or put the jars into the folder of spark_jars_dir.",
    "notify_secret_file": "Put a token into notify_url; notifications are not signed any more.",
}
REMOVED_COMMANDS = {
    "audit trim": "The audit is only added to; freezeframe audit export writes what is kept elsewhere.",
    "audit verify --heads": "freezeframe audit verify --log FILE, with lines of the log (freezeframe.audit).",
    "audit verify --tenant": "The audit of all tenants is one chain: freezeframe audit verify.",
    "audit verify --env": "The audit of all tenants is one chain: freezeframe audit verify.",
    "key rotate-pepper": "Keys do not depend on the service's secret any more. To replace a secret that was "
    "stolen, stop the service and put 32 random bytes into its file.",
    "person": "Sign in with a key (freezeframe key create --scope admin), with the link that freezeframe "
    "serve prints, or at an identity provider (service_oidc_issuer).",
    "spark jars": "Spark fetches spark.jars.packages by itself; without a network put the jars into the "
    "folder of the setting spark_jars_dir.",
    "notify": "Set notify_url: workers post each failed job. Drift and stale tenants are on the overview.",
    "tenant export": "Use tenant clone SOURCE TARGET --to-root ROOT, or copy the folder of the store.",
    "tenant import": "Use tenant clone SOURCE TARGET --to-root ROOT, or copy the folder of the store.",
    "log": "Use freezeframe delta.",
    "demo": "Run freezeframe init shop, then the commands that it prints.",
}
"""By the words of a command, and of a command with an option."""
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
    """Return what to use for a removed command or option, or another tool's; empty if there is none."""
    names = [word.partition("=")[0] for word in words]
    for removed, remedy in (REMOVED_COMMANDS | COMMANDS_ELSEWHERE).items():
        *command, last = removed.split()
        is_option = last.startswith("-")
        wanted = command if is_option else [*command, last]
        plain = [name for name in names if not name.startswith("-")]
        if plain[: len(wanted)] == wanted and (not is_option or last in names):
            return remedy
    return ""


PREFIX = "FREEZEFRAME_"
# Variables that the command, its own processes, the build and the tests read beside the settings.
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
        replacement = REMOVED_SETTINGS.get(self.name.upper().removeprefix(PREFIX).lower())
        if replacement:
            return replacement
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
