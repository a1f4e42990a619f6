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


def command_remedy(words: Sequence[str]) -> str:
    """Return the replacement of a removed command or option in a command line; empty if there is none."""
    names = [word.partition("=")[0] for word in words]
    for removed, remedy in REMOVED_COMMANDS.items():
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
