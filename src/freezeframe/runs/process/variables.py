"""Environment variables of a script's process: built for the job, not inherited.

A script gets hotglue's variables, its parameters under one prefix, our settings without the secret ones,
and of the environment of who runs it only what programs need to work at all, and what that one names. So
a request, which may come from a stranger, chooses no variable that a program listens to, and neither the
master key nor the service's credentials are in the hands of everything that a script starts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from freezeframe.engine.environment import REMOTE, foreign_remote
from freezeframe.errors import InvalidOption
from freezeframe.runs.model.job_root import JobRoot
from freezeframe.runs.model.request import RunRequest, Scalar, is_variable_text
from freezeframe.settings import Settings

_NEEDED = frozenset(
    {
        *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR", "TZ", "LANG", "LANGUAGE", "TERM", "NO_COLOR"),
        *("JAVA_HOME", "SPARK_HOME", "SPARK_CONF_DIR", "SPARK_LOCAL_IP", "SPARK_REMOTE", "LD_LIBRARY_PATH"),
        *(
            "VIRTUAL_ENV",
            "PYSPARK_PYTHON",
            "PYTHONPATH",
            "PYTHONWARNINGS",
            "PYTHONHASHSEED",
            "PYTHONDONTWRITEBYTECODE",
        ),
        *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"),
        *("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY"),
        *("http_proxy", "https_proxy", "no_proxy", "all_proxy"),
    }
)
# A parameter's variable is this prefix and its name. No program reads such variables.
PARAMETER_PREFIX = "PARAM_"
_LOCALE_PREFIX = "LC_"
_BUCKET_PREFIX = "AWS_"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_RESERVED = frozenset(
    {
        *("ROOT_DIR", "ROOT", "JOB_ROOT", "snapshot_dir", "base_input_dir", "output_dir", "tmp_dir"),
        *("TENANT", "USER_ID", "FLOW", "ENV_ID", "JOB_ID"),
    }
)
_RESERVED_PREFIXES = ("FREEZEFRAME_", "PYTHON", "LD_", "DYLD_")


def script_environment(
    request: RunRequest, root: JobRoot, settings: Settings, inherited: Mapping[str, str]
) -> dict[str, str]:
    """All variables of the script's process; ``inherited`` is the environment of who runs it."""
    given = {name: _as_text(value) for name, value in request.parameters.items() if value is not None}
    return {
        **_inherit(inherited, request, settings),
        **_settings_variables(settings),
        **_bucket_variables(request, settings),
        **{f"{PARAMETER_PREFIX}{name}": text for name, text in given.items()},
        **_job_variables(request, root),
    }


def require_variables(variables: Mapping[str, str]) -> None:
    """Check variables that who runs a script adds to its environment for this one run.

    Not a protection: the environment is theirs. It refuses what the run would overwrite.
    """
    for name, value in variables.items():
        if not _NAME.fullmatch(name) or not is_variable_text(value):
            raise InvalidOption(
                f"{name!r} cannot be a variable.",
                remedy="Use letters, digits and underscores for its name, and a text without NUL characters.",
            )
        if name in _RESERVED or name.startswith(_RESERVED_PREFIXES):
            raise InvalidOption(
                f"The variable {name} cannot be given.",
                cause="The run itself says where the job is, whose it is and which program runs it.",
                remedy="Use another name.",
            )


def _inherit(inherited: Mapping[str, str], request: RunRequest, settings: Settings) -> dict[str, str]:
    named = {name.strip() for name in settings.script_variables.split(",")}
    # The script's process commits to the store itself, so it needs what opens the bucket.
    is_bucket = "://" in request.root
    return {
        name: value
        for name, value in inherited.items()
        if (name in _NEEDED and (name != REMOTE or foreign_remote(inherited)))
        or name in named
        or name.startswith(_LOCALE_PREFIX)
        or (is_bucket and name.startswith(_BUCKET_PREFIX))
    }


def _settings_variables(settings: Settings) -> dict[str, str]:
    """The settings as variables, so that the library in the script has the same ones."""
    values = settings.model_dump(mode="json")
    return {
        f"FREEZEFRAME_{name.upper()}": value if isinstance(value, str) else json.dumps(value)
        for name, value in values.items()
        if value not in (None, "") and not is_secret(name)
    }


def _bucket_variables(request: RunRequest, settings: Settings) -> dict[str, str]:
    """The key of the bucket that the script's process commits to; of another store none."""
    if "://" not in request.root:
        return {}
    names = ("s3_access_key_id", "s3_secret_access_key", "s3_session_token")
    return {f"FREEZEFRAME_{name.upper()}": value for name in names if (value := getattr(settings, name))}


def is_secret(name: str) -> bool:
    """Whether a setting is a secret, the way to one, or the service's business alone."""
    extra: Any = Settings.model_fields[name].json_schema_extra
    return name.startswith(("master_key", "service_")) or bool(
        isinstance(extra, dict) and extra.get("secret")
    )


def _job_variables(request: RunRequest, root: JobRoot) -> dict[str, str]:
    place = str(root.path)
    has_state = root.state.is_file()
    found = {
        "ROOT_DIR": place,
        "ROOT": place,
        "JOB_ROOT": place,
        "TENANT": request.tenant,
        "USER_ID": request.tenant,
        "FLOW": request.flow,
        "ENV_ID": request.environment,
        "JOB_ID": request.job_id,
        "SYNC_TYPE": request.sync_type or ("incremental_sync" if has_state else "full_sync"),
        "JOB_TYPE": request.job_type,
        "CONNECTOR_ID": request.connector_id,
        "base_input_dir": str(root.input),
        "snapshot_dir": str(root.snapshots),
        "output_dir": str(root.output),
        "tmp_dir": str(root.temporary),
        "today": datetime.now(UTC).strftime("%Y%m%d"),
        "PYTHONUNBUFFERED": "1",
    }
    # Values missing from the request are not set, as a script that reads them with a default expects.
    return {name: value for name, value in found.items() if value}


def _as_text(value: Scalar) -> str:
    return value if isinstance(value, str) else json.dumps(value)
