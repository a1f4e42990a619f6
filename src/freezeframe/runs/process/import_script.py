"""The script that a job of the service runs to import a file into a stream.

What to import is in the parameter ``IMPORT_OPTIONS``, as JSON: ``stream``, ``file`` (a name in the input
folder), ``key``, the options of an update and, if the stream must be unchanged, ``conditions``.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from freezeframe.errors import FreezeframeError
from freezeframe.script.formats.input_parts import UnpackLimits
from freezeframe.script.inputs.transfer import import_stream
from freezeframe.script.tenants import open_tenant
from freezeframe.settings import load_settings
from freezeframe.store.model.update_options import as_parameter, say_options
from freezeframe.store.tenant import with_check
from freezeframe.store.transaction.conditions import Conditions, stream_subject


def main(variables: dict[str, str]) -> dict[str, Any]:
    """Import the file that the variables name; return the receipt's fields."""
    root = Path(variables["ROOT_DIR"])
    options = json.loads(variables["PARAM_IMPORT_OPTIONS"])
    tenant, name = open_tenant(root / "snapshots"), options.pop("stream")
    conditions = Conditions(**options.pop("conditions", {}))
    stream = with_check(tenant, conditions.at_commit(stream_subject(name))).stream(name)
    file, key = root / "sync-output" / options.pop("file"), options.pop("key")
    limits = UnpackLimits.of(load_settings())
    try:
        return import_stream(stream, file, key or None, limits=limits, **options).to_json()
    except FreezeframeError as error:
        say_options(error, as_parameter)
        raise


if __name__ == "__main__":
    print(json.dumps(main(dict(os.environ))))  # noqa: T201 - the job's log tells what was done
