"""Removed settings, commands and options, and what to use instead (pure)."""

from __future__ import annotations

from collections.abc import Sequence

_REQUESTS = "Use service_requests_per_second, for each key and process; a proxy limits addresses."
_BYTES = "A proxy limits how quickly bodies and answers move; service_tenant_stored_bytes_max what is kept."
SETTINGS = {
    "service_requests_per_minute": _REQUESTS,
    "service_tenant_requests_per_minute": _REQUESTS,
    "service_tenant_upload_bytes_per_minute": _BYTES,
    "service_tenant_download_bytes_per_minute": _BYTES,
    "audit_sink": "Ship the log: each entry of the audit is a line of the logger freezeframe.audit.",
    "maven_repository": "Name the mirror to Spark (spark.jars.repositories in spark-defaults.conf), "
    "or put the jars into the folder of spark_jars_dir.",
    "notify_secret_file": "Put a token into notify_url; notifications are not signed any more.",
}
COMMANDS = {
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
    """Return what to use in place of a command line whose command or option went; empty if none did."""
    names = [word.partition("=")[0] for word in words]
    for gone, remedy in COMMANDS.items():
        *command, last = gone.split()
        is_option = last.startswith("-")
        wanted = command if is_option else [*command, last]
        plain = [name for name in names if not name.startswith("-")]
        if plain[: len(wanted)] == wanted and (not is_option or last in names):
            return remedy
    return ""
