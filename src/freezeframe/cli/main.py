"""The ``freezeframe`` command: its parts, and what becomes of an error.

Modules that take long to load are imported by the command that needs them, so that
``freezeframe --help`` answers at once.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import typer
from typer.exceptions import TyperException

from freezeframe.cli import doctor, file, log, stream, tenant
from freezeframe.cli.demo import demo
from freezeframe.cli.exit_codes import FAILED, INTERRUPTED, OK, exit_code
from freezeframe.cli.output import Output
from freezeframe.errors import FixTheRequest, FreezeframeError

app = typer.Typer(
    name="freezeframe",
    help="What an integration keeps for each of its tenants between two sync jobs.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # boxes around the help would cost more time than all else of it
)
app.command("demo")(demo)
app.command("doctor")(doctor.doctor)
app.add_typer(log.app, name="log", help="A Delta table's log: show, history, verify.")
app.add_typer(tenant.app, name="tenant", help="A store's tenants: their past, their coming and going.")
app.add_typer(stream.app, name="stream", help="The streams of a tenant: rows, history, import, custody.")
app.add_typer(file.app, name="file", help="The files of a tenant: list, read, write, history.")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; whatever happens, nobody sees a traceback."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    output = Output(as_json="--json" in given)
    try:
        return app(args=given, standalone_mode=False) or OK
    except FreezeframeError as error:
        output.error(error)
        return exit_code(error)
    except TyperException as error:
        if error.format_message():  # without arguments the help itself was the answer
            output.error(
                FixTheRequest(error.format_message(), remedy="See freezeframe --help.", code="USAGE")
            )
        return error.exit_code
    except (KeyboardInterrupt, typer.Abort):
        return INTERRUPTED
    except BrokenPipeError:
        # The reader (head, for example) has seen enough; Python must not complain at exit either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    except Exception as error:
        if os.environ.get("FREEZEFRAME_DEBUG"):
            raise
        output.error(_unexpected(error))
        return FAILED


def _unexpected(error: Exception) -> FreezeframeError:
    return FreezeframeError(
        "freezeframe met something that it did not expect.",
        cause=f"{type(error).__name__}: {error}",
        remedy="Run it again with FREEZEFRAME_DEBUG=1 and report what it prints.",
    )
