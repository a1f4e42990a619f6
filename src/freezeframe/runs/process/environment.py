"""Environment variables of a script's process: built for the job, not inherited.

A script gets hotglue's variables, its parameters under one prefix, our settings without the secret ones, and
of the caller's environment what programs need to work, and the variables that `script_variables` names. So a
request, which may come from a stranger, sets no variable that a program reads, and the programs that a script
starts get neither the master key nor the service's credentials.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from freezeframe.engine.configuration import REMOTE, foreign_remote, own_remote, warm_master
from freezeframe.engine.server.job_database import VARIABLE, claim
from freezeframe.engine.server.server import Address, attach, living_address, server_folder
from freezeframe.errors import FreezeframeError, InvalidOption
from freezeframe.runs.job_root import JobRoot
from freezeframe.runs.request import RunRequest, is_variable_text
from freezeframe.script.spark_format import spark
from freezeframe.settings import Settings

if TYPE_CHECKING:
    from freezeframe.store import Tenant


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
        *("TENANT", "USER_ID", "FLOW", "ENV_ID", "JOB_ID", "DRY_RUN"),
    }
)
_RESERVED_PREFIXES = ("FREEZEFRAME_", "PYTHON", "LD_", "DYLD_")


def script_environment(
    request: RunRequest, root: JobRoot, settings: Settings, inherited: Mapping[str, str]
) -> dict[str, str]:
    """Return all variables of the script's process; ``inherited`` is the environment of who runs it."""
    parameters = {
        name: (value if isinstance(value, str) else json.dumps(value))
        for name, value in request.parameters.items()
        if value is not None
    }
    return {
        **_inherit(inherited, request, settings),
        **_settings_variables(settings),
        **_bucket_variables(request, settings),
        **{f"{PARAMETER_PREFIX}{name}": text for name, text in parameters.items()},
        **_job_variables(request, root),
    }


def require_variables(variables: Mapping[str, str]) -> None:
    """Check variables that the caller adds to a script's environment for this run.

    This is no protection, since the caller owns the environment: it refuses what the run would overwrite.
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
                cause="The run sets this variable itself.",
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
    """Return the settings as variables, so that the library in the script has the same ones."""
    values = settings.model_dump(mode="json")
    return {
        f"FREEZEFRAME_{name.upper()}": value if isinstance(value, str) else json.dumps(value)
        for name, value in values.items()
        if value not in (None, "") and not is_secret(name)
    }


def _bucket_variables(request: RunRequest, settings: Settings) -> dict[str, str]:
    """Return the key of the bucket that the script's process commits to; of another store none."""
    if "://" not in request.root:
        return {}
    names = ("s3_access_key_id", "s3_secret_access_key", "s3_session_token")
    return {f"FREEZEFRAME_{name.upper()}": value for name in names if (value := getattr(settings, name))}


def is_secret(name: str) -> bool:
    """Return whether a setting is a secret, the way to one, or the service's business alone."""
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
        "DRY_RUN": "1" if request.dry_run else "",
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


def master_of(settings: Settings, environment: Mapping[str, str]) -> str | None:
    """Return the master of a run's warm server; None where its settings or variables mean another Spark."""
    return None if foreign_remote(environment) else warm_master(settings.spark)


def speaks_to_spark(script: Path) -> bool:
    """Return whether the script, or a module in its ``lib/``, names PySpark."""
    files = [script, *sorted((script.parent / "lib").glob("*.py"))]
    return any(b"pyspark" in file.read_bytes() for file in files)


def start_beside_runner(script: Path, settings: Settings, progress: Callable[[str], None]) -> None:
    """Start the server for a script that speaks to Spark, while the warm runner does its imports.

    Not for a script with requirements: its server may have to run another Python.
    """
    master = master_of(settings, os.environ)
    with contextlib.suppress(OSError):
        if master and speaks_to_spark(script) and not (script.parent / "requirements.txt").exists():
            _start_in_thread(settings, master, progress)


def start_early(settings: Settings, master: str, tenant: Tenant, progress: Callable[[str], None]) -> None:
    """Start the server in a thread where the job's updates will need it: the tenant has stored rows.

    What goes wrong is reported by the update that needs the server.
    """
    if settings.engine == "spark" and tenant.streams():
        _start_in_thread(settings, master, progress)


def _start_in_thread(settings: Settings, master: str, progress: Callable[[str], None]) -> None:
    threading.Thread(target=_start, args=(settings, master, progress), daemon=True).start()


def _start(settings: Settings, master: str, progress: Callable[[str], None]) -> None:
    with contextlib.suppress(FreezeframeError, OSError):
        attach(settings, master, progress).close()


# The Spark server of a script's own ``SparkSession``: the warm one where it is available or required.
#
# A plain script needs no Spark, and none is started for it; what the library needs, it starts by itself
# when an update has rows to move. A script that speaks to Spark itself finds the session of its process,
# which
# is made before it, and the warm server is held while it runs; ``SPARK_REMOTE`` names it to further
# processes.


@contextmanager
def script_spark(
    script: Path,
    settings: Settings,
    environment: Mapping[str, str],
    progress: Callable[[str], None],
    tenant: Tenant,
) -> Iterator[dict[str, str]]:
    """Variables by which the script finds Spark; the warm server is held until the block ends.

    Beside a script that does not speak to Spark itself, a server that its updates will need is started.
    """
    if settings.spark.startswith("sc://"):
        yield {REMOTE: settings.spark}
        return
    master = master_of(settings, environment)
    if master is None:
        yield {}
        return
    if not speaks_to_spark(script):
        folder = server_folder(settings, master)
        address = living_address(folder)
        if address is None:
            start_early(settings, master, tenant, progress)
            yield {}
            return
        with claim(folder) as database:
            yield _spark_variables(address, database)
        return
    attachment = attach(settings, master, progress)
    try:
        with claim(attachment.folder) as database:
            yield _spark_variables(attachment.address, database)
    finally:
        attachment.close()


def begin_session(script: Path) -> None:
    """Make the Spark session of the script's process before a script that asks for one."""
    if speaks_to_spark(script):
        spark()


def _spark_variables(address: Address, database: Path) -> dict[str, str]:
    return {**own_remote(address.url), VARIABLE: str(database)}
