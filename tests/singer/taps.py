"""The output of invented taps, and the target run on it in this process."""

import io
import json
import sys

from freezeframe.cli.singer_target import main
from freezeframe.singer.config import TargetConfig
from freezeframe.singer.load import load


def schema(stream="Account", key=("Id",), **properties):
    """A SCHEMA; properties by name, ``Id`` is text unless told otherwise."""
    properties = {"Id": {"type": "string"}, **properties}
    return {
        "type": "SCHEMA",
        "stream": stream,
        "schema": {"properties": properties},
        "key_properties": list(key),
    }


def record(stream="Account", version=None, **values):
    """A RECORD."""
    told = {} if version is None else {"version": version}
    return {"type": "RECORD", "stream": stream, "record": values, **told}


def state(value):
    """A STATE."""
    return {"type": "STATE", "value": value}


def activate(version, stream="Account"):
    """An ACTIVATE_VERSION."""
    return {"type": "ACTIVATE_VERSION", "stream": stream, "version": version}


def lines(*messages):
    """Messages as a tap writes them; text is taken as it is."""
    return [
        (message if isinstance(message, str) else json.dumps(message)).encode() + b"\n"
        for message in messages
    ]


def run(root, *messages, **config):
    """The receipt and the state of a run of the target for the tenant ``acme``."""
    settings = TargetConfig(**{"root": str(root), "tenant": "acme", "engine": "auto", **config})
    return load(lines(*messages), settings)


def command(monkeypatch, arguments, *messages):
    """The exit code of the command, with the messages on its standard input."""
    monkeypatch.setattr(sys, "argv", ["target-freezeframe", *map(str, arguments)])
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"".join(lines(*messages)))))
    return main()
